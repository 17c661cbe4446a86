/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels.  The names are those of newer kernels; older kernels get them here,
 * depending on what Kbuild found in their headers.
 */
#ifndef ACP_COMPAT_H
#define ACP_COMPAT_H

#include <crypto/blake2s.h>
#include <linux/crc32.h>
#include <linux/hrtimer.h>
#include <linux/timer.h>
#include <net/sock.h>
#include <net/udp.h>
#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#endif
#ifdef ACP_HAS_IPV6_STUB
#include <net/ipv6_stubs.h>
#else
#include <net/addrconf.h>
#include <net/ipv6.h>
#endif

#ifndef timer_container_of
#define timer_container_of(var, timer, field)	from_timer(var, timer, field)
#endif

#ifndef ACP_HAS_TIMER_DELETE
#define timer_delete(timer)	del_timer(timer)
#endif

/* Kernels without it do not delay callbacks. */
#ifndef ACP_HAS_CALL_RCU_HURRY
#define call_rcu_hurry(head, function)	call_rcu(head, function)
#endif

#ifndef ACP_HAS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifndef ACP_HAS_CRC32C
#define crc32c(crc, data, size)	__crc32c_le(crc, data, size)
#endif

#if defined(CONFIG_X86_64) && defined(static_cpu_has)
#define acp_cpu_has(bit)	static_cpu_has(bit)
#else
#define acp_cpu_has(bit)	cpu_feature_enabled(bit)
#endif

/**
 * acp_blake2s() - compute a keyed BLAKE2s hash
 * @out: the hash
 * @out_size: bytes of @out, 1 to 32
 * @in: input
 * @in_size: bytes of @in
 * @key: key
 * @key_size: bytes of @key, at most 32
 *
 * Older kernels have blake2s() with another order of arguments.
 *
 * Context: any.
 */
static inline void acp_blake2s(u8 *out, size_t out_size, const void *in, size_t in_size,
			       const void *key, size_t key_size)
{
#ifdef ACP_HAS_BLAKE2S_KEY_FIRST
	blake2s(key, key_size, in, in_size, out, out_size);
#else
	blake2s(out, in, key, out_size, in_size, key_size);
#endif
}

/* Older kernels count UDP-Lite separately. */
#ifdef ACP_HAS_UDPLITE_STATS
#define acp_count_udp(net, counter)	__UDP_INC_STATS(net, counter, 0)
#else
#define acp_count_udp(net, counter)	__UDP_INC_STATS(net, counter)
#endif

#ifndef ACP_HAS_SK_UID
#define sk_uid(sk)	sock_i_uid((struct sock *)(sk))
#endif

/* In older kernels, IPv6 may be a separate module. */
#ifdef ACP_HAS_IPV6_STUB
#define ip6_dst_lookup_flow(...)	(ipv6_stub->ipv6_dst_lookup_flow(__VA_ARGS__))
#define ipv6_dev_find(...)		(ipv6_stub->ipv6_dev_find(__VA_ARGS__))
#endif

#endif /* ACP_COMPAT_H */
