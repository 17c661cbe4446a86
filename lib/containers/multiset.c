// SPDX-License-Identifier: MIT
/* Multisets: the public functions. The implementation is in table*.c. */
#define CONTAINER	acp_multiset_t
#define ITERATOR	acp_multiset_it_t
#define MEMBER		set
#define KIND		LIBACP_MULTISET
#define ACP(verb)	acp_##verb##_multiset
#define ACP_IT(verb)	acp_##verb##_multiset_it

#include "containers/table_public.h"

acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it)
{
	struct libacp_table_it private = private_it(it);
	struct libacp_table_content content;

	well(libacp_table_content(&private, &content));
	return content.pair.first;
}

int acp_insert_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	return well(libacp_table_put(&t, key, (acp_element_t){ ACP_GA_NULL, 0 }));
}

void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	well(libacp_table_delete(&t, key, UINT64_MAX));
}

uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);
	uint64_t count;

	well(libacp_table_count(&t, key, &count));
	return count;
}
