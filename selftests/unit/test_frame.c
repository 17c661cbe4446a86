// SPDX-License-Identifier: MIT
/*
 * kernel/core/frame.c: encoding, and rejection of everything else.
 *
 * Buffers end where the message ends, so that AddressSanitizer detects any read beyond. The vectors
 * at the end are those of VECTORS.md.
 */
#include "frame_play.h"

/* ---- frames ---- */

TEST(frame__round_trip)
{
	struct acp_frame in, out;
	struct acp_frame_hdr h;
	int i;

	for (i = 0; i < 100000; i++) {
		in = (struct acp_frame){
			.type = ACP_FRAME_DATA + i % 3, .color = rnd(), .generation = rnd(),
			.job = rnd(), .node = rnd(), .epoch_src = rnd() | 1, .epoch_dst = rnd() | 1,
			.ack = rnd(),
		};
		in.length = smallest(in.type);
		if (in.type == ACP_FRAME_DATA) {
			in.seq = rnd() | 1;
			in.length += rnd() % 1000;
			in.flags = rnd() & (ACP_FRAME_FENCE | ACP_FRAME_LAZY | ACP_FRAME_MARKS);
		}
		in.flags |= rnd() & ACP_FRAME_AEAD;
		acp_frame_encode(&h, &in);
		CHECK_EQ(acp_frame_decode(&out, &h, datagram(&in)), ACP_FRAME_OK);
		CHECK(same_frame(&in, &out));
	}
}

TEST(frame__layout)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 0x1234);
	struct acp_frame_hdr h = { .tag = cpu_to_be64(0x0102030405060708) };
	const u8 *p = (const u8 *)&h;

	acp_frame_encode(&h, &f);
	CHECK_EQ(sizeof(h), 48);
	CHECK_EQ(p[0], 1);		/* the tag is computed by the caller */
	CHECK_EQ(p[7], 8);
	CHECK_EQ(p[8], ACP_FRAME_VERSION);
	CHECK_EQ(p[9], ACP_FRAME_DATA);
	CHECK_EQ(p[11], 1);
	CHECK_EQ(p[15], 42);
	CHECK_EQ(p[17], 7);
	CHECK_EQ(p[18], 0x12);
	CHECK_EQ(p[19], 0x34);
	CHECK_EQ(p[23], 3);
	CHECK_EQ(p[27], 0x11);
	CHECK_EQ(p[31], 0x22);
	CHECK_EQ(p[39], 5);
	CHECK_EQ(p[47], 9);
}

TEST(frame__N5_length_of_the_datagram)
{
	u32 type, len, least;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		struct acp_frame f = good_frame(type, smallest(type));

		least = sizeof(struct acp_frame_hdr) + f.length;
		for (len = 0; len < 2000; len++)
			CHECK_EQ(decode(&f, len), len == least ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		CHECK_EQ(decode(&f, ~0u), ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__N5_length_in_the_header)
{
	u32 type, length;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		for (length = 0; length < 70000; length++) {
			struct acp_frame f = good_frame(type, length);
			bool good = length == smallest(type) ||
				    (type == ACP_FRAME_ACK && !length) ||
				    (type == ACP_FRAME_DATA && length >= smallest(type) &&
				     length <= 65535);

			CHECK_EQ(decode(&f, HEADER + length),
				 good ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		}
	}
	for (length = ~0u; length > ~0u - 200; length--) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, length);

		CHECK_EQ(decode(&f, HEADER + length), ACP_FRAME_BAD_LEN);
	}
}

/* An encrypted frame has 32 bytes more. */
TEST(frame__N5_length_of_an_encrypted_frame)
{
	u32 type, len, most = 65535 - 32;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		struct acp_frame f = good_frame(type, smallest(type)), out;
		struct acp_frame_hdr h;

		f.flags = ACP_FRAME_AEAD;
		for (len = 0; len < 2000; len++)
			CHECK_EQ(decode(&f, len), len == HEADER + 32 + f.length ?
				 ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		acp_frame_encode(&h, &f);
		for (len = 0; len < 65536; len++) {
			bool good = len == 32 + smallest(type) ||
				    (type == ACP_FRAME_ACK && len == 32) ||
				    (type == ACP_FRAME_DATA && len >= 32 + smallest(type));

			h.length = cpu_to_be16(len);
			CHECK_EQ(acp_frame_decode(&out, &h, HEADER + len),
				 good ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
			CHECK(!good || out.length == len - 32);
		}
	}
	for (len = most - 10; len < most + 10; len++) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, len);

		f.flags = ACP_FRAME_AEAD;
		CHECK_EQ(decode(&f, datagram(&f)), len <= most ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__N6_version)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 24), out;
	struct acp_frame_hdr h;
	u32 version;

	acp_frame_encode(&h, &f);
	for (version = 0; version < 256; version++) {
		h.version = version;
		CHECK_EQ(acp_frame_decode(&out, &h, sizeof(h) + 24),
			 version == ACP_FRAME_VERSION ? ACP_FRAME_OK : ACP_FRAME_BAD_VERSION);
	}
}

TEST(frame__N6_type)
{
	u32 type;

	for (type = 0; type < 256; type++) {
		struct acp_frame f = good_frame(type, smallest(type));
		bool known = type >= ACP_FRAME_DATA && type <= ACP_FRAME_HELLO;

		CHECK_EQ(decode(&f, HEADER + f.length),
			 known ? ACP_FRAME_OK : ACP_FRAME_BAD_TYPE);
	}
}

static bool flags_are_good(u32 type, u32 flags)
{
	if ((flags & ACP_FRAME_AEAD) && (flags & ACP_FRAME_BULK))
		return false;
	flags &= ~ACP_FRAME_AEAD;
	if (type == ACP_FRAME_HELLO)
		return !(flags & ~ACP_FRAME_ASK);
	if (type == ACP_FRAME_ACK)
		return !(flags & ~ACP_FRAME_MARKS);
	if (flags & ~(ACP_FRAME_FENCE | ACP_FRAME_BULK | ACP_FRAME_CRC | ACP_FRAME_MORE |
		      ACP_FRAME_LAZY | ACP_FRAME_MARKS))
		return false;
	return !(flags & (ACP_FRAME_CRC | ACP_FRAME_MORE)) || (flags & ACP_FRAME_BULK);
}

TEST(frame__N6_flags)
{
	u32 type, flags;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		for (flags = 0; flags < 256; flags++) {
			u32 length = type == ACP_FRAME_DATA ? 72 : smallest(type);
			struct acp_frame f = good_frame(type, length);

			f.flags = flags;
			CHECK_EQ(decode(&f, datagram(&f)),
				 flags_are_good(type, flags) ? ACP_FRAME_OK : ACP_FRAME_BAD_FLAGS);
		}
	}
}

TEST(frame__N6_fields_of_other_types)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 24);

	f.seq = 0;
	CHECK_EQ(decode(&f, HEADER + 24), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_ACK, sizeof(struct acp_frame_ack));
	f.seq = 1;
	CHECK_EQ(decode(&f, HEADER + sizeof(struct acp_frame_ack)), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_HELLO, 16);
	f.seq = 1;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_BAD_FLAGS);
	f.flags = ACP_FRAME_ASK;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
	f.ack = 1;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_BAD_FLAGS);
	f.seq = 0;
	f.flags = 0;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
	f = good_frame(ACP_FRAME_DATA, 24);
	f.epoch_src = 0;
	CHECK_EQ(decode(&f, HEADER + 24), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_ACK, sizeof(struct acp_frame_ack));
	f.epoch_dst = 0;
	CHECK_EQ(decode(&f, HEADER + sizeof(struct acp_frame_ack)), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_HELLO, 16);
	f.epoch_dst = 0;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
}

/* The payload of a BULK frame follows the tagged part. */
TEST(frame__N5_length_of_a_bulk_frame)
{
	u32 length;

	for (length = 24; length < 100; length++) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, length);

		f.flags = ACP_FRAME_BULK;
		CHECK_EQ(decode(&f, HEADER + length),
			 length > 32 ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		f.flags = ACP_FRAME_BULK | ACP_FRAME_CRC;
		CHECK_EQ(decode(&f, HEADER + length),
			 length > 40 ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__tagged_bytes)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 1000);

	CHECK_EQ(acp_frame_tagged(&f), 1048);
	CHECK_EQ(acp_frame_covered(&f), 1000);
	CHECK_EQ(acp_frame_body(&f), 48);
	f.flags = ACP_FRAME_BULK;
	CHECK_EQ(acp_frame_tagged(&f), 80);
	CHECK_EQ(acp_frame_covered(&f), 32);
	f.flags = ACP_FRAME_BULK | ACP_FRAME_CRC;
	CHECK_EQ(acp_frame_tagged(&f), 88);
	CHECK_EQ(acp_frame_covered(&f), 40);
	f.flags = ACP_FRAME_AEAD;
	CHECK_EQ(acp_frame_tagged(&f), 48);
	CHECK_EQ(acp_frame_covered(&f), 1000);
	CHECK_EQ(acp_frame_body(&f), 64);
}

TEST(frame__N6_reserved_field_of_the_nonce_block)
{
	u8 *frame = malloc(64);
	u32 bit, cipher;

	memset(frame, 0xff, 60);
	memset(frame + 60, 0, 4);
	CHECK(acp_frame_nonce(frame, &cipher) && !cipher);
	for (bit = 0; bit < 32; bit++) {
		frame[60 + bit / 8] = 1u << bit % 8;
		CHECK_EQ(acp_frame_nonce(frame, &cipher), bit >= 24 && bit < 28);
		CHECK_EQ(cipher, 1u << (24 - bit / 8 * 8 + bit % 8));
		frame[60 + bit / 8] = 0;
	}
	/* Only one cipher at a time. */
	frame[63] = ACP_CIPHER_BY;
	CHECK(!acp_frame_nonce(frame, &cipher));
	/* The receiver of a HELLO may not support either. */
	frame[9] = ACP_FRAME_HELLO;
	frame[63] = ACP_CIPHER_AES;
	CHECK(!acp_frame_nonce(frame, &cipher));
	frame[63] = ACP_CIPHER_AEGIS;
	CHECK(!acp_frame_nonce(frame, &cipher));
	frame[63] = ACP_CIPHER_WISHES;
	CHECK(acp_frame_nonce(frame, &cipher));
	free(frame);
}

TEST(frame__N6_reserved_field_of_the_crc)
{
	u8 *frame = calloc(1, 88);
	u32 bit, crc;

	memcpy(frame + 80, "\x12\x34\x56\x78", 4);
	CHECK(acp_frame_crc(frame, &crc));
	CHECK_EQ(crc, 0x12345678);
	for (bit = 0; bit < 32; bit++) {
		frame[84 + bit / 8] = 1u << bit % 8;
		CHECK(!acp_frame_crc(frame, &crc));
		frame[84 + bit / 8] = 0;
	}
	free(frame);
}

/* ---- test vectors ---- */

#define KEY	"000102030405060708090a0b0c0d0e0f"
#define NONCE	"f0f1f2f3f4f5f6f700000000"	/* of encrypted frames; to node 1 */

struct vector {
	const char *name;
	struct acp_frame frame;
	struct acp_msg msg;	/* type 0: none */
	const char *body;	/* hex: payload, or body of an ACK or HELLO */
	const char *wire;	/* hex: all of it */
	u32 cipher;		/* ACP_CIPHER_ */
};

static u32 unhex(const char *hex, u8 *out)
{
	u32 n;

	for (n = 0; hex[2 * n]; n++) {
		char digits[3] = { hex[2 * n], hex[2 * n + 1] };

		out[n] = strtoul(digits, NULL, 16);
	}
	return n;
}

/* Vectors, written by hand, compared byte by byte. */
#include "vectors.h"

/* Encrypt the body after the nonce block, and append the AEAD tag. */
static void encrypt(u8 *wire, const struct acp_frame *f, u32 cipher)
{
	u8 base[16], key[32], *block = wire + HEADER, *body = wire + acp_frame_body(f);
	struct acp_frame_key k;

	acp_frame_key(&k, cipher, f->job, f->generation, f->node, 1, f->color);
	unhex(KEY, base);
	blake2s(key, base, sizeof(base), &k, sizeof(k));
	unhex(NONCE, block);
	block[15] = (u8)cipher;
	(cipher & ACP_CIPHER_AEGIS ? aegis_close : cipher & ACP_CIPHER_AES ? gcm_close : aead_close)
		(key, block, wire + 8, (size_t)(body - wire) - 8, body, f->length,
		 body + f->length);
}

/* Build the datagram of a vector. Returns its length. */
static u32 build(const struct vector *v, u8 *wire)
{
	struct acp_frame_hdr *h = (void *)wire;
	struct acp_frame_crc *c = NULL;
	struct acp_frame f = v->frame;
	struct siphash_key key;
	u32 first = acp_frame_body(&f), len = first, body;
	u8 bytes[16];

	if (v->msg.type) {
		acp_msg_encode(wire + len, &v->msg);
		len += acp_msg_head(&v->msg);
	}
	if (f.flags & ACP_FRAME_CRC) {
		c = (void *)(wire + len);
		len += sizeof(*c);
	}
	body = unhex(v->body, wire + len);
	if (c)
		c->crc = cpu_to_be32(crc32c(wire + len, body));
	len += (body + 7) / 8 * 8;
	f.length = len - first;
	acp_frame_encode(h, &f);
	unhex(KEY, bytes);
	key = siphash_key_of(bytes);
	h->tag = cpu_to_be64(siphash24(&key, wire + 8, acp_frame_tagged(&f) - 8));
	if (f.flags & ACP_FRAME_AEAD)
		encrypt(wire, &f, v->cipher);
	return datagram(&f);
}

TEST(vectors__siphash)
{
	u8 key_bytes[16], data[15];
	struct siphash_key key;
	u32 i;

	for (i = 0; i < 16; i++)
		key_bytes[i] = i;
	for (i = 0; i < 15; i++)
		data[i] = i;
	key = siphash_key_of(key_bytes);
	CHECK_EQ(siphash24(&key, data, 15), 0xa129ca6149be45e5);
	CHECK_EQ(siphash24(&key, data, 0), 0x726fdb47dd0e0e31);
	CHECK_EQ(siphash24(&key, data, 8), 0x93f5f5799a932462);
}

/* With the cached state, the tag is SipHash-2-4 of each frame. */
TEST(tag__is_siphash)
{
	struct acp_tag_start starts[2] = {};
	struct siphash_key keys[2];
	u8 data[200], bytes[16];
	u32 i, round;

	for (i = 0; i < 2; i++) {
		memset(bytes, 7 + (int)i, sizeof(bytes));
		keys[i] = siphash_key_of(bytes);
	}
	for (i = 0; i < sizeof(data); i++)
		data[i] = 1 + (u8)rnd() / 2;
	for (round = 0; round < 20000; round++) {
		u32 size = 8 * (ACP_TAG_WORDS + 1 + (u32)(rnd() % 21));
		u32 which = rnd() % 16 == 0;
		const struct siphash_key *key = &keys[which];

		/* Mostly bytes after the first words change. */
		data[rnd() % 8 ? 24 + rnd() % 176 : rnd() % 24] = 1 + (u8)rnd() / 2;
		if (rnd() % 4 == 0)
			memset(data + 24, 0, 8);
		if (!acp_tag_begins(&starts[which], data))
			acp_tag_begin(&starts[which], (u64[]){ key->k[0], key->k[1] }, data);
		CHECK_EQ(acp_tag(&starts[which], data, size), siphash24(key, data, size));
	}
}

TEST(vectors__crc32c)
{
	CHECK_EQ(crc32c("123456789", 9), 0xe3069283);
	CHECK_EQ(crc32c("", 0), 0);
}

static bool is(const u8 *found, const char *hex)
{
	u8 want[200];

	return !memcmp(found, want, unhex(hex, want));
}

/* RFC 7693, appendix B; and one with a key, from the reference implementation. */
TEST(vectors__blake2s)
{
	u8 hash[32], key[32];
	u32 i;

	blake2s(hash, "", 0, "abc", 3);
	CHECK(is(hash, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"));
	for (i = 0; i < 32; i++)
		key[i] = i;
	blake2s(hash, key, sizeof(key), "", 0);
	CHECK(is(hash, "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49"));
}

/* RFC 8439, section 2.8.2. */
TEST(vectors__chacha20_poly1305)
{
	char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip "
		      "for the future, sunscreen would be it.", copy[sizeof(text)];
	u8 key[32], nonce[12], clear[12], tag[16];
	u32 n = sizeof(text) - 1;

	memcpy(copy, text, sizeof(text));
	unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", key);
	unhex("070000004041424344454647", nonce);
	unhex("50515253c0c1c2c3c4c5c6c7", clear);
	aead_close(key, nonce, clear, sizeof(clear), text, n, tag);
	CHECK(is((u8 *)text, "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
		 "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
		 "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
		 "3ff4def08e4b7a9de576d26586cec64b6116"));
	CHECK(is(tag, "1ae10b594f09e26a7e902ecbd0600691"));
	CHECK(aead_open(key, nonce, clear, sizeof(clear), text, n, tag));
	CHECK(!memcmp(text, copy, sizeof(text)));
	tag[0]++;
	CHECK(!aead_open(key, nonce, clear, sizeof(clear), text, n, tag));
}

/*
 * "The Galois/Counter Mode of Operation", test case 16; and test case 14, with whole blocks only.
 */
TEST(vectors__aes_256_gcm)
{
	u8 key[32], nonce[12], clear[20], text[60], tag[16];

	unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", key);
	unhex("cafebabefacedbaddecaf888", nonce);
	unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2", clear);
	unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
	      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39", text);
	gcm_close(key, nonce, clear, sizeof(clear), text, sizeof(text), tag);
	CHECK(is(text, "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
		       "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"));
	CHECK(is(tag, "76fc6ece0f4e1768cddf8853bb2d551b"));
	CHECK(gcm_open(key, nonce, clear, sizeof(clear), text, sizeof(text), tag));
	CHECK_EQ(text[0], 0xd9);
	tag[15]++;
	CHECK(!gcm_open(key, nonce, clear, sizeof(clear), text, sizeof(text), tag));
	memset(key, 0, sizeof(key));
	memset(nonce, 0, sizeof(nonce));
	memset(text, 0, 16);
	gcm_close(key, nonce, NULL, 0, text, 16, tag);
	CHECK(is(text, "cea7403d4d606b6e074ec5d3baf39d18"));
	CHECK(is(tag, "d0d1c8a799996bf0265b98b5d48ab919"));
}

/* From crypto/testmgr.h of the kernel: empty; a partial block; a whole block. */
TEST(vectors__aegis_128)
{
	u8 key[16], nonce[16], text[16], tag[16];

	unhex("0fc98e67449eaa8620362c24fec93081", key);
	unhex("1e921ccf883d540d406d5948fc926103", nonce);
	aegis_close(key, nonce, NULL, 0, text, 0, tag);
	CHECK(is(tag, "07a511f29d40b86ddab812344c53d972"));
	unhex("881201a66496fbbe22ea9047f211b58e", key);
	unhex("97db900ea835a5454221bd6bf0dae60f", nonce);
	unhex("b56eaddd3072fa53828e16b4ed6d47", text);
	aegis_close(key, nonce, NULL, 0, text, 15, tag);
	CHECK(is(text, "c38083045faa61c7cadd6fac8508b5"));
	CHECK(is(tag, "352bc23e0b1b39372b7a2116b3e66766"));
	unhex("c4373b457411a4daa2c542d8ec367894", key);
	unhex("d300c9adb8b04e61c3fb6ffdeaffa915", nonce);
	unhex("f292e67d40eea36f0368c845e7910a18", text);
	aegis_close(key, nonce, NULL, 0, text, 16, tag);
	CHECK(is(text, "232530e56ab6367d38fd3ad2c258a911"));
	CHECK(is(tag, "1ea8309c16a4db6551101627709b6429"));
	CHECK(aegis_open(key, nonce, NULL, 0, text, 16, tag));
	CHECK(is(text, "f292e67d40eea36f0368c845e7910a18"));
	tag[15]++;
	CHECK(!aegis_open(key, nonce, NULL, 0, text, 16, tag));
}

TEST(vectors__frames)
{
	u8 wire[1024] __attribute__((aligned(8))), want[1024];
	u32 i, j, len;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		memset(wire, 0, sizeof(wire));
		len = build(&vectors[i], wire);
		if (len == unhex(vectors[i].wire, want) && !memcmp(wire, want, len))
			continue;
		printf("# %s is", vectors[i].name);
		for (j = 0; j < len; j++)
			printf("%s%02x", j % 16 ? "" : "\n# ", wire[j]);
		printf("\n");
		FAIL("%s differs", vectors[i].name);
	}
}

TEST_MAIN
