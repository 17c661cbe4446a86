// SPDX-License-Identifier: GPL-2.0-only
/* Jobs: see job.h. */
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include "../net/aead.h"
#include "job.h"
#include "limits.h"

/* For sizes that user space chooses: charged to its control group, no warning on failure. */
#define GFP_USER_WISH (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* ---- placement and addresses ---- */

const struct acp_rank_run *acp_job_run_of(const struct acp_job *job, u32 rank)
{
	const struct acp_rank_run *r = job->rank_runs;
	u32 low = 0, high = job->n_rank_runs;

	while (high - low > 1) {
		u32 mid = low + (high - low) / 2;

		if (r[mid].first <= rank)
			low = mid;
		else
			high = mid;
	}
	return r + low;
}

/* addr += n, in network order, over the width of the address family. */
static void address_add(u8 *addr, u32 width, u32 n)
{
	u64 carry = n;

	while (width-- && carry) {
		carry += addr[width];
		addr[width] = carry;
		carry >>= 8;
	}
}

void acp_job_address(const struct acp_job *job, u32 node, u32 color, u8 addr[16])
{
	const struct acp_node_run *r = job->node_runs;
	u32 low = 0, high = job->n_node_runs;

	while (high - low > 1) {
		u32 mid = low + (high - low) / 2;

		if (r[mid].color < color || (r[mid].color == color && r[mid].first <= node))
			low = mid;
		else
			high = mid;
	}
	memcpy(addr, r[low].addr, 16);
	address_add(addr, job->family == AF_INET ? 4 : 16, node - r[low].first);
}

static bool rank_run_ok(const struct acp_rank_run *r, u32 next, const struct acp_join *j)
{
	return r->first == next && r->count && r->count <= j->nprocs - next && r->block &&
	       r->nodes && r->nodes <= j->nodes && r->node <= j->nodes - r->nodes &&
	       !r->reserved;
}

/* The runs must contain each rank once, and each node must have a rank. */
static int check_rank_runs(const struct acp_rank_run *r, const struct acp_join *j)
{
	unsigned long *used = kvcalloc(BITS_TO_LONGS(j->nodes), sizeof(*used), GFP_USER_WISH);
	u32 i, next = 0;
	int err = -EINVAL;

	if (!used)
		return -ENOMEM;
	for (i = 0; i < j->rank_runs; i++, r++) {
		if (!rank_run_ok(r, next, j))
			goto out;
		bitmap_set(used, r->node, min(r->nodes, (r->count - 1) / r->block + 1));
		next += r->count;
		if (!(i & 1023))
			cond_resched();
	}
	if (next == j->nprocs && bitmap_full(used, j->nodes))
		err = 0;
out:
	kvfree(used);
	return err;
}

/* Only link-local addresses may have a scope. */
static bool scope_ok(const struct acp_node_run *r)
{
	return !r->scope || (r->family == AF_INET6 && r->scope <= INT_MAX &&
			     r->addr[0] == 0xfe && (r->addr[1] & 0xc0) == 0x80);
}

static int check_node_runs(const struct acp_node_run *r, const struct acp_join *j)
{
	u16 family = r->family;
	u32 i, next = 0, color = 0;

	if (family != AF_INET && family != AF_INET6)
		return -EINVAL;
	if (family == AF_INET6 && !IS_ENABLED(CONFIG_IPV6))
		return -EAFNOSUPPORT;
	for (i = 0; i < j->node_runs; i++, r++) {
		if (r->family != family || !scope_ok(r) || r->color != color ||
		    r->first != next || !r->count || r->count > j->nodes - next)
			return -EINVAL;
		next += r->count;
		if (next == j->nodes) {
			next = 0;
			color++;
		}
	}
	return color == j->colors && !next ? 0 : -EINVAL;
}

static void *read_array(u64 ptr, u32 n, size_t size)
{
	void *p;

	p = kvmalloc_array(n, size, GFP_USER_WISH);
	if (!p)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(p, u64_to_user_ptr(ptr), (size_t)n * size)) {
		kvfree(p);
		return ERR_PTR(-EFAULT);
	}
	return p;
}

static int read_runs(struct acp_job *job, const struct acp_join *j)
{
	void *p;
	int err;

	p = read_array(j->rank_run_ptr, j->rank_runs, sizeof(*job->rank_runs));
	if (IS_ERR(p))
		return PTR_ERR(p);
	job->rank_runs = p;
	job->n_rank_runs = j->rank_runs;
	p = read_array(j->node_run_ptr, j->node_runs, sizeof(*job->node_runs));
	if (IS_ERR(p))
		return PTR_ERR(p);
	job->node_runs = p;
	job->n_node_runs = j->node_runs;
	err = check_rank_runs(job->rank_runs, j);
	return err ?: check_node_runs(job->node_runs, j);
}

/* ---- creation ---- */

/* The number of a run's ranks that are on a node. */
static u32 run_ranks_on(const struct acp_rank_run *r, u32 node)
{
	u64 cycle = (u64)r->block * r->nodes, place = (u64)(node - r->node) * r->block;
	u64 full = div64_u64(r->count, cycle), rest = r->count - full * cycle;

	if (node < r->node || node - r->node >= r->nodes)
		return 0;
	return full * r->block + (rest > place ? min_t(u64, rest - place, r->block) : 0);
}

static u32 ranks_on(const struct acp_job *job, u32 node)
{
	u32 i, n = 0;

	for (i = 0; i < job->n_rank_runs; i++)
		n += run_ranks_on(&job->rank_runs[i], node);
	return n;
}

static u32 children_of(const struct acp_job *job)
{
	u64 first = (u64)job->me * ACP_BARRIER_ARITY + 1;

	if (first >= job->nodes)
		return 0;
	return min_t(u64, ACP_BARRIER_ARITY, job->nodes - first);
}

/* Save the scopes of our own addresses and clear all scopes, which no other node knows. */
static void take_scopes(struct acp_job *job)
{
	struct acp_node_run *r = job->node_runs;
	u32 i;

	for (i = 0; i < job->n_node_runs; i++, r++) {
		if (job->me >= r->first && job->me - r->first < r->count)
			job->scopes[r->color] = r->scope;
		r->scope = 0;
	}
}

/* The runs have no padding, so they are digested as they are. */
static u64 digest(const struct acp_job *job)
{
	u64 sizes = ACP_FRAME_EDITION << 16 | (u64)job->colors << 8 | job->integrity;

	return siphash_3u64(siphash(job->rank_runs, job->n_rank_runs * sizeof(*job->rank_runs),
				    &job->key),
			    siphash(job->node_runs, job->n_node_runs * sizeof(*job->node_runs),
				    &job->key),
			    sizes << 32 | job->nodes, &job->key);
}

static int check(const struct acp_join *j)
{
	if (!j->nprocs || j->nprocs > ACP_RANKS_MAX || j->rank >= j->nprocs || !j->job ||
	    j->generation > U16_MAX || !j->nodes || j->nodes > j->nprocs || !j->colors ||
	    j->colors > ACP_COLORS_MAX || !j->port || j->port > U16_MAX ||
	    j->integrity > ACP_INTEGRITY_UDP || j->flags)
		return -EINVAL;
	if (!j->rank_runs || j->rank_runs > ACP_RUNS_MAX || !j->node_runs ||
	    j->node_runs > ACP_RUNS_MAX)
		return -EINVAL;
	if (j->timeout_ms < 10 || j->timeout_ms > 3600000 || j->open_timeout_ms < 10 ||
	    j->open_timeout_ms > 3600000)
		return -EINVAL;
	return 0;
}

static void init_fields(struct acp_job *job, struct acp_node *node, const struct acp_join *j)
{
	job->node = node;
	job->id = j->job;
	job->generation = j->generation;
	job->colors = j->colors;
	job->port = j->port;
	job->integrity = j->integrity;
	job->nodes = j->nodes;
	job->limit = (u64)j->timeout_ms * NSEC_PER_MSEC;
	job->open_limit = (u64)j->open_timeout_ms * NSEC_PER_MSEC;
	job->asked_limit = job->limit;
	job->asked_open_limit = job->open_limit;
	job->begun = ktime_get_ns();
	job->ga = acp_ga_layout(j->nprocs);
	job->key.key[0] = le64_to_cpup((const __le64 *)j->key);
	job->key.key[1] = le64_to_cpup((const __le64 *)(j->key + 8));
	if (job->integrity == ACP_INTEGRITY_TAG)
		acp_nh_derive(&job->nh, job->key.key);
	job->owner = current_euid();
	refcount_set(&job->refs, 1);
	xa_init_flags(&job->ranks, XA_FLAGS_LOCK_BH);
	xa_init_flags(&job->seats, XA_FLAGS_LOCK_BH);	/* shares a lockdep class with the others */
	INIT_LIST_HEAD(&job->rank_list);
	INIT_LIST_HEAD(&job->queue_list);
	xa_init_flags(&job->peers, XA_FLAGS_LOCK_BH);
	spin_lock_init(&job->barrier.lock);
	init_waitqueue_head(&job->barrier.wait);
	spin_lock_init(&job->events.lock);
	spin_lock_init(&job->wrong.lock);
	xa_init_flags(&job->events.left, XA_FLAGS_LOCK_BH);
	acp_pings_init(&job->pings);
}

static void forget_predictions(struct acp_job *job)
{
	int cpu;

	if (!job->predictions)
		return;
	for_each_possible_cpu(cpu)
		memzero_explicit(per_cpu_ptr(job->predictions, cpu), sizeof(*job->predictions));
	free_percpu(job->predictions);
}

static void job_free(struct rcu_head *rcu)
{
	struct acp_job *job = container_of(rcu, struct acp_job, rcu);

	forget_predictions(job);
	memzero_explicit(&job->key, sizeof(job->key));
	memzero_explicit(&job->nh, sizeof(job->nh));
	xa_destroy(&job->events.left);
	kvfree(job->rank_runs);
	kvfree(job->node_runs);
	kfree(job);
}

int acp_job_charge_runs(struct acp_job *job)
{
	u32 kib = (job->n_rank_runs * sizeof(*job->rank_runs) +
		   job->n_node_runs * sizeof(*job->node_runs)) >> 10;
	int err = acp_user_charge(job->user, ACP_LIMIT_USER_MEMORY, kib);

	if (!err)
		job->run_kib = kib;
	return err;
}

static void stop_counting(struct acp_job *job)
{
	acp_user_uncharge(job->user, ACP_LIMIT_USER_MEMORY, job->run_kib);
	acp_user_put(job->user);
}

void acp_job_put(struct acp_job *job)
{
	if (!refcount_dec_and_test(&job->refs))
		return;
	stop_counting(job);
	call_rcu(&job->rcu, job_free);
}

struct acp_job *acp_job_create(struct acp_node *node, const struct acp_join *j)
{
	struct acp_job *job;
	int err = check(j);

	if (err)
		return ERR_PTR(err);
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return ERR_PTR(-ENOMEM);
	job->user = acp_user_find(node);
	if (!job->user) {
		kfree(job);
		return ERR_PTR(-ENOMEM);
	}
	init_fields(job, node, j);
	err = read_runs(job, j);
	if (!err) {
		job->predictions = alloc_percpu_gfp(struct acp_predictions,
						    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		err = job->predictions ? 0 : -ENOMEM;
	}
	if (!err && acp_job_encrypted(job))
		err = acp_aead_start(job);
	if (err) {
		stop_counting(job);
		job_free(&job->rcu);
		return ERR_PTR(err);
	}
	job->family = job->node_runs[0].family;
	job->me = acp_job_node_of(job, j->rank);
	take_scopes(job);
	job->barrier.expected = ranks_on(job, job->me);
	job->barrier.children = children_of(job);
	job->digest = digest(job);
	return job;
}

/* Takes constant time. */
static bool same_key(const siphash_key_t *a, const siphash_key_t *b)
{
	return !((a->key[0] ^ b->key[0]) | (a->key[1] ^ b->key[1]));
}

int acp_job_match(const struct acp_job *job, const struct acp_job *other)
{
	if (!same_key(&other->key, &job->key) || !uid_eq(other->owner, job->owner))
		return -EACCES;
	if (other->digest != job->digest || other->ga.nprocs != job->ga.nprocs ||
	    other->me != job->me || other->port != job->port ||
	    memcmp(other->scopes, job->scopes, sizeof(job->scopes)) ||
	    other->asked_limit != job->asked_limit ||
	    other->asked_open_limit != job->asked_open_limit)
		return -EPROTO;
	return 0;
}

u8 acp_job_check_nodes(const struct acp_job *job, const struct acp_msg *m)
{
	bool together = true;

	if (acp_op_signals(m->op))
		together = acp_job_ga_node(job, m->c) == acp_job_ga_node(job, m->dst);
	else if (m->op == ACP_OP_REDUCE)
		together = acp_job_ga_node(job, m->src) == job->me &&
			   acp_job_ga_node(job, m->dst) == job->me;
	return together ? ACP_ST_OK : ACP_ST_OP;
}
