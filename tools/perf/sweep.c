// SPDX-License-Identifier: MIT
/* Sweep: latency and bandwidth over many sizes, plotted as curves. */
#include "mode.h"
#include "plot.h"

const struct perf_list perf_sweep_sizes = {
	18, { 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072,
	      262144, 524288, 1048576 }
};

static const struct perf_list default_windows = { 1, { 16 } };

/* Fill in the options that the user did not give, for the two modes that are run. */
static struct perf_options complete(const struct perf_options *given)
{
	struct perf_options o = *given;

	if (o.ops == 0)
		o.ops = UINT32_C(1) << perf_op_find("put") | UINT32_C(1) << perf_op_find("get");
	o.sizes = *perf_list_or(&given->sizes, &perf_sweep_sizes);
	o.windows = *perf_list_or(&given->windows, &default_windows);
	return o;
}

void perf_sweep(struct perf_run *run)
{
	const struct perf_options *given = run->options;
	struct perf_options options = complete(given);
	struct perf_plot plot = { .options = &options, .job = &run->job, .report = &run->report };

	run->options = &options;
	perf_latency(run);
	perf_bandwidth(run);
	run->options = given;
	if (perf_plot_write(&plot) != 0 || (options.draw && perf_plot_draw(&plot) != 0))
		run->failed = true;
}
