// SPDX-License-Identifier: MIT
/* Sets: the public functions. The implementation is in table*.c. */
#define CONTAINER	acp_set_t
#define ITERATOR	acp_set_it_t
#define MEMBER		set
#define KIND		LIBACP_SET
#define ACP(verb)	acp_##verb##_set
#define ACP_IT(verb)	acp_##verb##_set_it

#include "containers/table_public.h"

acp_element_t acp_dereference_set_it(acp_set_it_t it)
{
	struct libacp_table_it private = private_it(it);
	struct libacp_table_content content;

	well(libacp_table_content(&private, &content));
	return content.pair.first;
}

int acp_insert_set(acp_set_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	return well(libacp_table_put(&t, key, (acp_element_t){ ACP_GA_NULL, 0 }));
}
