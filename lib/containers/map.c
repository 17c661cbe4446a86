// SPDX-License-Identifier: MIT
/* Maps: the public functions. The implementation is in table*.c. */
#define CONTAINER	acp_map_t
#define ITERATOR	acp_map_it_t
#define MEMBER		map
#define KIND		LIBACP_MAP
#define ACP(verb)	acp_##verb##_map
#define ACP_IT(verb)	acp_##verb##_map_it

#include "containers/table_public.h"

acp_pair_t acp_dereference_map_it(acp_map_it_t it)
{
	struct libacp_table_it private = private_it(it);
	struct libacp_table_content content;

	well(libacp_table_content(&private, &content));
	return content.pair;
}

int acp_insert_map(acp_map_t map, acp_pair_t pair)
{
	struct libacp_table t = table_of(map);
	int result = libacp_table_put(&t, pair.first, pair.second);

	return well(result) && result == 1;
}

size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair)
{
	struct libacp_table t = table_of(map);
	uint64_t size;

	well(libacp_table_value(&t, pair.first, pair.second, &size));
	return size;
}
