// SPDX-License-Identifier: GPL-2.0-only
/* The tag of a frame with a long payload: see nh.h. */
#include "nh.h"

#define KEY_LABEL	0x686e2d706361ULL	/* "acp-nh", little-endian */

void acp_nh_derive(struct acp_nh_key *nh, const u64 key[2])
{
	u64 i;

	for (i = 0; i < ACP_NH_WORDS; i++)
		nh->words[i] = acp_tag_pair(key, KEY_LABEL, i);
}

static inline unsigned __int128 product(const u8 *p, const u64 *key)
{
	u64 a = acp_tag_word(p) + key[0], b = acp_tag_word(p + 8) + key[1];

	return (unsigned __int128)a * b;
}

/*
 * Add pairs that do not extend beyond the end of the block. The two sums are independent of each
 * other. Memory of users may change meanwhile: the result is then the hash of no state that the
 * memory had, which is harmless.
 */
static void add_pairs(struct acp_nh *t, const u8 *p, u32 size)
{
	const u64 *key = t->key->words + t->at / 8;
	unsigned __int128 even = (unsigned __int128)t->high << 64 | t->low, odd = 0;
	const u8 *end = p + size;

	for (; p + 4 * ACP_NH_PAIR <= end; p += 4 * ACP_NH_PAIR, key += 8) {
		even += product(p, key);
		odd += product(p + 16, key + 2);
		even += product(p + 32, key + 4);
		odd += product(p + 48, key + 6);
	}
	for (; p != end; p += ACP_NH_PAIR, key += 2)
		even += product(p, key);
	even += odd;
	t->low = (u64)even;
	t->high = (u64)(even >> 64);
	t->at += size;
}

static void end_block(struct acp_nh *t)
{
	acp_tag_absorb(t->v, t->low, t->high);
	t->size += 2 * sizeof(u64);
	t->low = 0;
	t->high = 0;
	t->at = 0;
}

static void add_whole(struct acp_nh *t, const u8 *p, size_t size)
{
	u32 n;

	for (; size; p += n, size -= n) {
		n = min_t(size_t, size, ACP_NH_BLOCK - t->at);
		add_pairs(t, p, n);
		if (t->at == ACP_NH_BLOCK)
			end_block(t);
	}
}

void acp_nh_begin(struct acp_nh *t, const struct acp_nh_key *key, const struct acp_tag_start *s,
		  const void *data, u32 size)
{
	t->key = key;
	acp_tag_open(t->v, s, data, size);
	t->size = size;
	t->low = 0;
	t->high = 0;
	t->at = 0;
	t->kept = 0;
}

void acp_nh_add(struct acp_nh *t, const void *data, size_t size)
{
	u32 n;

	if (t->kept) {
		n = min_t(size_t, size, ACP_NH_PAIR - t->kept);
		memcpy(t->pair + t->kept, data, n);
		t->kept += n;
		if (t->kept < ACP_NH_PAIR)
			return;
		add_whole(t, t->pair, ACP_NH_PAIR);
		data += n;
		size -= n;
	}
	t->kept = size % ACP_NH_PAIR;
	size -= t->kept;
	add_whole(t, data, size);
	memcpy(t->pair, data + size, t->kept);
}

u64 acp_nh_end(struct acp_nh *t)
{
	if (t->kept) {
		memset(t->pair + t->kept, 0, ACP_NH_PAIR - t->kept);
		add_whole(t, t->pair, ACP_NH_PAIR);
	}
	if (t->at)
		end_block(t);
	return acp_tag_close(t->v, t->size);
}
