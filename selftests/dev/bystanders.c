// SPDX-License-Identifier: MIT
/* Ranks that must not be disturbed (see bystanders.h). */
#include "isolated.h"

#include "bystanders.h"

static void *exchange(void *arg)
{
	struct bystanders *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t word = s->rounds++;

		fill(s->a.starter, 4096, word);
		CHECK_EQ(rank_do_copy(&s->a, memory_ga(&s->secret, 0), starter_ga(&s->a, 0), 8),
			 ACP_ST_ACCESS);
		CHECK_EQ(rank_do_copy(&s->a, starter_ga(&s->b, 4096), starter_ga(&s->a, 0), 4096),
			 ACP_ST_OK);
	}
	return NULL;
}

void bystanders_open(struct bystanders *s)
{
	struct setup setup;
	void *p;

	memset(s, 0, sizeof(*s));
	setup_local(&setup, 1, 3);
	rank_open(&s->a, &setup);
	setup_local(&setup, 2, 3);
	rank_open(&s->b, &setup);
	p = pages(SECRET_SIZE, PROT_READ | PROT_WRITE);
	fill(p, SECRET_SIZE, 1);
	CHECK_EQ(rank_register(&s->b, &s->secret, p, SECRET_SIZE, 0), 0);
	p = pages(SECRET_SIZE, PROT_READ | PROT_WRITE);
	fill(p, SECRET_SIZE, 2);
	CHECK_EQ(rank_register(&s->b, &s->read_only, p, SECRET_SIZE, ACP_ACCESS_READ), 0);
	CHECK_EQ(pthread_create(&s->thread, NULL, exchange, s), 0);
}

void bystanders_close(struct bystanders *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
	CHECK(s->rounds > 0);
	CHECK(filled(s->secret.addr, SECRET_SIZE, 1));
	CHECK(filled(s->read_only.addr, SECRET_SIZE, 2));
	rank_close(&s->a);
	rank_close(&s->b);
}
