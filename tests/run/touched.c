// SPDX-License-Identifier: MIT
/*
 * Breakpoints on data are met by code that runs at speed, and by code of which each instruction is
 * looked at, as where somebody asks for the branches before a hit. Of random programs that touch
 * what is watched, and what lies beside it, both tell the same: how often, where, in which order,
 * and what the registers were.
 */
#include <immintrin.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "by_fs.h"

enum { PROGRAMS = 300, PIECES = 40, ROUNDS = 3, WATCHES = 6, RING_PAGES = 64, PAGE = 4096 };

/* ---- programs ---- */

/* rdi points to the middle, and rsp to the end of the stack. */
static struct {
	_Alignas(64) uint8_t before[1024], middle[2048];
	_Alignas(64) uint8_t stack[4096];
} area;

static uint8_t *code;

static uint32_t any(uint32_t below)
{
	return (uint32_t)random() % below;
}

/* Of pieces of code: a displacement of a byte, a small count. */
enum { D = 0x100, N, END };

#define PIECE(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__, END                                                                   \
	}

static const uint16_t pieces[][40] = {
	PIECE(0x8b, 0x47, D), /* mov */
	PIECE(0x48, 0x8b, 0x47, D), PIECE(0x8a, 0x47, D), PIECE(0x66, 0x8b, 0x47, D),
	PIECE(0x89, 0x47, D), PIECE(0x48, 0x89, 0x47, D), PIECE(0x88, 0x47, D),
	PIECE(0x66, 0x89, 0x47, D), PIECE(0x48, 0xc7, 0x47, D, 1, 2, 3, 4),
	PIECE(0x48, 0x01, 0x47, D), /* add, adc, cmp */
	PIECE(0x48, 0x13, 0x47, D), PIECE(0x48, 0x39, 0x47, D), PIECE(0x80, 0x47, D, 7),
	PIECE(0xfe, 0x47, D),					   /* inc */
	PIECE(0x0f, 0x92, 0x47, D),				   /* setc */
	PIECE(0x48, 0x0f, 0x42, 0x47, D),			   /* cmovc */
	PIECE(0xf0, 0x48, 0x0f, 0xc1, 0x57, D),			   /* lock xadd */
	PIECE(0x48, 0x87, 0x57, D),				   /* xchg */
	PIECE(0x48, 0x0f, 0xb1, 0x57, D),			   /* cmpxchg */
	PIECE(0x48, 0x0f, 0xc7, 0x0f),				   /* cmpxchg16b */
	PIECE(0x48, 0x0f, 0xba, 0x6f, D, 9),			   /* bts */
	PIECE(0x0f, 0x10, 0x47, D),				   /* movups */
	PIECE(0x44, 0x0f, 0x11, 0x7f, D),			   /* of xmm15 */
	PIECE(0xf3, 0x0f, 0x10, 0x47, D),			   /* movss, movlps */
	PIECE(0x0f, 0x13, 0x47, D), PIECE(0x66, 0x0f, 0xf7, 0xc1), /* maskmovdqu */
	PIECE(0x48, 0x8b, 0x04, 0x0f), /* mov (rdi, rcx), (rdi, rcx, 8), (rsi, rcx, 4) */
	PIECE(0x48, 0x8b, 0x44, 0xcf, D), PIECE(0x89, 0x44, 0x8e, D),
	PIECE(0x48, 0x8d, 0x4f, D, 0x48, 0x8b, 0x01, 0x88, 0x14, 0x0b, 0xb9, 3, 0, 0,
	      0),							      /* by rcx */
	PIECE(0x48, 0x8d, 0x57, D, 0x48, 0x29, 0xca, 0x48, 0x8b, 0x04, 0x0a), /* rdx and rcx */
	PIECE(0x50, 0x5a),						      /* push, pop */
	PIECE(0xff, 0x77, D, 0x8f, 0x47, D), PIECE(0x9c, 0x9d),
	PIECE(0xe8, 0, 0, 0, 0, 0x58),				     /* call */
	PIECE(0xe8, 2, 0, 0, 0, 0xeb, 4, 0xfe, 0x47, D, 0xc3),	     /* and ret */
	PIECE(0xc8, 16, 0, 0, 0xc9),				     /* enter, leave */
	PIECE(0x0f, 0xae, 0x07),				     /* fxsave */
	PIECE(0x31, 0xd2, 0xb8, 7, 0, 0, 0, 0x0f, 0xae, 0x27),	     /* xsave */
	PIECE(0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x31, 0xc0), /* mov fs:0 */
	PIECE(0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x31, 0xc0),	     /* mov (rip) */
	PIECE(0x67, 0xe8, 0, 0, 0, 0, 0x58),			     /* addr32 call */
	/* push fs:0, push 8(rsp), pop -8(rsp), data16 rex.W push */
	PIECE(0x64, 0xff, 0x34, 0x25, 0, 0, 0, 0, 0x58, 0x31, 0xc0),
	PIECE(0xff, 0x74, 0x24, 8, 0x58), PIECE(0x6a, 1, 0x8f, 0x44, 0x24, 0xf8),
	PIECE(0x66, 0x48, 0x50, 0x66, 0x48, 0x58),
	PIECE(0x48, 0xc7, 0xc0, D, 1, 0, 0, 0x48, 0x0f, 0xab, 0x07, 0x31, 0xc0), /* bts rax */
	/* Strings: movs, stos, lods, scas, cmps; up and down. */
	PIECE(0x57, 0x56, 0x48, 0x8d, 0x77, D, 0x48, 0x8d, 0x7f, D, 0xa4, 0x48, 0xa5, 0x5e, 0x5f),
	PIECE(0x57, 0x56, 0x48, 0x8d, 0x77, D, 0x48, 0x8d, 0x7f, D, 0xb9, N, 0, 0, 0, 0xf3, 0xa4,
	      0x5e, 0x5f, 0xb9, 3, 0, 0, 0),
	PIECE(0x57, 0x48, 0x8d, 0x7f, D, 0xb9, N, 0, 0, 0, 0xfd, 0xf3, 0xab, 0xfc, 0x5f, 0xb9, 3, 0,
	      0, 0),
	PIECE(0x56, 0x48, 0x8d, 0x77, D, 0xac, 0x5e),
	PIECE(0x57, 0x48, 0x8d, 0x7f, D, 0xb9, N, 0, 0, 0, 0xf2, 0xae, 0x5f, 0xb9, 3, 0, 0, 0),
	PIECE(0x57, 0x56, 0x48, 0x8d, 0x77, D, 0xb9, N, 0, 0, 0, 0xf3, 0xa6, 0x5e, 0x5f, 0xb9, 3, 0,
	      0, 0),
	/* 32 bytes, and elements of them */
	PIECE(0xc5, 0xfe, 0x6f, 0x47, D), PIECE(0xc5, 0xfe, 0x7f, 0x47, D),
	PIECE(0xc4, 0xe2, 0x75, 0x2e, 0x47, D), /* vmaskmovps */
};

enum { ALL_PIECES = sizeof(pieces) / sizeof(*pieces), OF_AVX = 3 };

static uint8_t byte_of(uint16_t what)
{
	if (what == D)
		return (uint8_t)(any(128) - 64);
	return what == N ? (uint8_t)any(9) : (uint8_t)what;
}

static void make_program(void)
{
	const uint32_t kinds = __builtin_cpu_supports("avx2") ? ALL_PIECES : ALL_PIECES - OF_AVX;
	const uint8_t dec_jnz[] = {0x49, 0xff, 0xcc, 0x0f, 0x85};
	uint8_t *at = code;
	const uint8_t vzeroall[] = {0xc5, 0xfc, 0x77};
	const uint8_t *loop;
	int32_t back;

	assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_WRITE), 0);
	if (kinds == ALL_PIECES) {
		memcpy(at, vzeroall, sizeof(vzeroall));
		at += sizeof(vzeroall);
	}
	loop = at;
	for (int i = 0; i < PIECES; i++)
		for (const uint16_t *p = pieces[any(kinds)]; *p != END; p++)
			*at++ = byte_of(*p);
	memcpy(at, dec_jnz, sizeof(dec_jnz));
	at += sizeof(dec_jnz);
	back = (int32_t)(loop - (at + 4));
	memcpy(at, &back, 4);
	at[4] = 0xc3;
	assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
}

static void begin_area(void)
{
	uint8_t *bytes = (uint8_t *)&area;

	for (size_t i = 0; i < sizeof(area); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 64);
}

/* Each time from the same registers. */
static void run_program(void)
{
	__asm__ volatile("sub $128, %%rsp\n"
			 "push %%rbp\n"
			 "push %%rbx\n"
			 "mov %%rsp, %%r14\n"
			 "mov %[stack], %%rsp\n"
			 "mov %[code], %%r13\n"
			 "mov %[rounds], %%r12d\n"
			 "lea -8(%%rdi), %%rsi\n"
			 "mov $3, %%ecx\n"
			 "xor %%ebx, %%ebx\n"
			 "mov $0x1234, %%edx\n"
			 "xor %%ebp, %%ebp\n"
			 "fninit\n" /* what is saved begins alike, too */
			 ".irp n,0,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
			 "pxor %%xmm\\n, %%xmm\\n\n"
			 ".endr\n"
			 "pcmpeqd %%xmm1, %%xmm1\n"
			 "xor %%r8d, %%r8d\n"
			 "xor %%r9d, %%r9d\n"
			 "xor %%r10d, %%r10d\n"
			 "xor %%r11d, %%r11d\n"
			 "xor %%r15d, %%r15d\n"
			 "xor %%eax, %%eax\n"
			 "call *%%r13\n"
			 "mov %%r14, %%rsp\n"
			 "pop %%rbx\n"
			 "pop %%rbp\n"
			 "add $128, %%rsp\n"
			 :
			 : "D"(area.middle), [stack] "r"(area.stack + sizeof(area.stack) - 64),
			   [code] "r"(code), [rounds] "i"(ROUNDS)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13",
			   "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15", "memory", "cc");
}

/* ---- what is watched ---- */

static int open_here(const struct perf_event_attr *attr, int group)
{
	const int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, 0);

	assert_true(fd >= 0);
	return fd;
}

static uint64_t any_place(void)
{
	if (!any(4))
		return (uint64_t)(area.stack + sizeof(area.stack) - 64 - any(64));
	return (uint64_t)(area.middle - 64 + any(any(8) ? 160 : 600));
}

static struct perf_event_attr any_breakpoint(void)
{
	const uint64_t length = 1UL << any(4);
	const bool stops = !any(8);

	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(struct perf_event_attr),
		.bp_type = stops ? HW_BREAKPOINT_X : 1 + any(3),
		.bp_addr = stops ? (uint64_t)code + any(100) : any_place() & -length,
		.bp_len = stops ? sizeof(long) : length,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = 0xff0dff, /* of the flags some are lost where it is counted */
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
	};
}

/* Beside what breakpoints are; the first is nothing. */
static const struct perf_event_attr beside[] = {
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS},
	{.type = PERF_TYPE_HARDWARE,
	 .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	 .sample_period = 7},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS, .sample_period = 331},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CACHE_MISSES, .sample_period = 3},
};

enum { BESIDE = sizeof(beside) / sizeof(*beside) };

/* Makes each instruction be looked at. */
static const struct perf_event_attr looking = {
	.type = PERF_TYPE_HARDWARE,
	.size = sizeof(struct perf_event_attr),
	.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	.sample_period = 1UL << 40,
	.sample_type = PERF_SAMPLE_BRANCH_STACK,
	.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER,
	.exclude_kernel = 1,
	.exclude_hv = 1,
};

static bool is_modelled(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE && (attr->config == PERF_COUNT_HW_CPU_CYCLES ||
						    attr->config == PERF_COUNT_HW_CACHE_MISSES);
}

struct told {
	uint64_t counts[WATCHES + 1];
	size_t size;
	uint8_t records[RING_PAGES * PAGE];
};

static void run(const struct perf_event_attr *attrs, int nr, const struct perf_event_attr *other,
		bool slowly, struct told *told)
{
	const int looks = slowly ? open_here(&looking, -1) : -1;
	struct perf_event_attr attr = *other;
	struct perf_event_mmap_page *ring;
	int fds[WATCHES + 1] = {0};

	begin_area();
	attr.size = sizeof(attr);
	attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.precise_ip = attr.sample_period ? 2 : 0;
	fds[0] = open_here(&attr, -1);
	for (int i = 0; i < nr; i++)
		fds[i + 1] = open_here(&attrs[i], fds[0]);
	ring = mmap(NULL, (RING_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	for (int i = 1; i < nr; i++)
		assert_int_equal(ioctl(fds[i + 1], PERF_EVENT_IOC_SET_OUTPUT, fds[1]), 0);
	if (!is_modelled(other))
		assert_int_equal(ioctl(fds[0], PERF_EVENT_IOC_SET_OUTPUT, fds[1]), 0);
	for (int i = 0; i < nr; i++)
		ioctl(fds[i + 1], PERF_EVENT_IOC_ENABLE, 0);
	ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0);
	run_program();
	ioctl(fds[0], PERF_EVENT_IOC_DISABLE, 0);
	*told = (struct told){.size = ring->data_head};
	for (int i = 0; i <= nr; i++)
		assert_int_equal(read(fds[i], &told->counts[i], 8), 8);
	assert_true(told->size < sizeof(told->records));
	memcpy(told->records, (const char *)ring + ring->data_offset, told->size);
	munmap(ring, (RING_PAGES + 1) * PAGE);
	for (int i = 0; i <= nr; i++)
		close(fds[i]);
	if (slowly)
		close(looks);
}

/* Returns its hits, once both have told the same. */
static uint64_t compare(unsigned int n)
{
	static struct told fast, slow;
	const struct perf_event_attr *other = &beside[n % BESIDE];
	struct perf_event_attr attrs[WATCHES];
	uint64_t hits = 0;
	int nr;

	srandom(n);
	nr = 1 + (int)any(WATCHES);
	make_program();
	for (int i = 0; i < nr; i++)
		attrs[i] = any_breakpoint();
	run(attrs, nr, other, false, &fast);
	run(attrs, nr, other, true, &slow);
	/* What the model counts depends on where blocks end, and on what came before. */
	if (is_modelled(other))
		fast.counts[0] = slow.counts[0] = 0;
	for (int i = 0; i <= nr; i++)
		if (fast.counts[i] != slow.counts[i])
			fail_msg("program %u, event %d: %lu, and looked at %lu", n, i,
				 fast.counts[i], slow.counts[i]);
	if (fast.size != slow.size || memcmp(fast.records, slow.records, slow.size))
		fail_msg("program %u: other samples, %zu and %zu bytes", n, fast.size, slow.size);
	for (int i = 1; i <= nr; i++)
		hits += slow.counts[i];
	return hits;
}

/* Of others, too, where it was once otherwise: a stop was lost where a counter was nearly due. */
static const unsigned int others[] = {3189};

enum { OTHERS = sizeof(others) / sizeof(*others) };

/* All in one process, which needs dozens of kinds of code. */
static void hits_are_told_alike(void **state)
{
	uint64_t hits = 0;

	(void)state;
	code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	for (unsigned int n = 0; n < PROGRAMS + OTHERS; n++)
		hits += compare(n < PROGRAMS ? n : others[n - PROGRAMS]);
	assert_true(hits > 10 * PROGRAMS);
	munmap(code, PAGE);
}

/* ---- operands that are not where they seem to be ---- */

/* As the kernel's breakpoints have it. */
static const struct {
	uint8_t code[24];
	bool on_stack; /* from what rsp is there, or from the middle */
	int at;
	uint8_t length;
	uint64_t hits;
} operands[] = {
	/* push fs:0; pop rax: of the stack FS is none of the business. */
	{{0x64, 0xff, 0x34, 0x25, 0, 0, 0, 0, 0x58, 0xc3}, true, -8, 8, 2},
	/* addr32 push rax; pop rax */
	{{0x67, 0x50, 0x58, 0xc3}, true, -8, 8, 2},
	/* push 1; pop -8(rsp): reached by rsp as it is behind */
	{{0x6a, 1, 0x8f, 0x44, 0x24, 0xf8, 0xc3}, true, -8, 8, 2},
	/* mov -8(rsp), eax; data16 rex.W push rax; mov -70(rsp), ax; pop rdx: 8 bytes were
	 * pushed */
	{{0x8b, 0x44, 0x24, 0xf8, 0x66, 0x48, 0x50, 0x66, 0x8b, 0x44, 0x24, 0xba, 0x5a, 0xc3},
	 true,
	 -78,
	 2,
	 1},
	/* mov 128, rax; bts rax, (rdi). And: mov -1, eax; bts eax, (rdi) */
	{{0x48, 0xc7, 0xc0, 0x80, 0, 0, 0, 0x48, 0x0f, 0xab, 0x07, 0xc3}, false, 16, 8, 1},
	{{0xb8, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xab, 0x07, 0xc3}, false, -4, 4, 1},
	/* mov rdi, rsi; movsb: one instruction touches it twice */
	{{0x48, 0x89, 0xfe, 0xa4, 0xc3}, false, 0, 1, 1},
	/* fs movsb from FS:0 to (rdi) */
	{{0x31, 0xf6, 0x64, 0xa4, 0xc3}, false, 0, 1, 1},
};

static void operands_are_found(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_RW,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(operands) / sizeof(*operands); i++) {
		uint8_t *from =
			operands[i].on_stack ? area.stack + sizeof(area.stack) - 72 : area.middle;
		uint64_t count;
		int fd;

		code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(code, MAP_FAILED);
		memcpy(code, operands[i].code, sizeof(operands[i].code));
		assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
		begin_area();
		attr.bp_addr = (uint64_t)(from + operands[i].at);
		attr.bp_len = operands[i].length;
		fd = open_here(&attr, -1);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		run_program();
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
		if (count != operands[i].hits)
			fail_msg("operand %u: %lu hits, and not %lu", i, count, operands[i].hits);
		close(fd);
		munmap(code, PAGE);
	}
}

/* ---- places that change ---- */

static volatile struct {
	_Alignas(64) uint64_t here;
	_Alignas(64) uint64_t there;
	_Alignas(64) bool stop;
} moving;

static void *touch_both(void *tid)
{
	__atomic_store_n((pid_t *)tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!moving.stop) {
		moving.here++;
		moving.there++;
	}
	return NULL;
}

static uint64_t count_of(int fd)
{
	uint64_t count;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

/* Of a thread that goes on all the time, without a system call. */
static void places_change_under_way(void **state)
{
	enum { TIMES = 40 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_len = 8,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	pthread_t thread;
	pid_t tid = 0;
	int fd;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, touch_both, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		;
	attr.bp_addr = (uint64_t)&moving.stop;
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0);
	assert_true(fd >= 0);
	for (int i = 0; i < TIMES; i++) {
		const bool nowhere = i % 4 == 3;
		uint64_t before;

		attr.bp_addr = (uint64_t)(nowhere ? (volatile void *)&moving.stop
					  : i % 2 ? (volatile void *)&moving.there
						  : (volatile void *)&moving.here);
		assert_int_equal(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), 0);
		before = count_of(fd);
		if (nowhere) {
			usleep(2000);
			assert_int_equal(count_of(fd), before);
		} else {
			while (count_of(fd) == before)
				usleep(100);
		}
	}
	moving.stop = true;
	pthread_join(thread, NULL);
	close(fd);
}

/* ---- by FS ---- */

static int watch(const volatile void *place)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_RW,
		.bp_addr = (uint64_t)place,
		.bp_len = 8,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return open_here(&attr, -1);
}

/* What is touched by FS lies where FS is at that time. */
static void fs_moves(void **state)
{
	enum { BASES = 16, WHICH = 11 };
	static struct {
		_Alignas(64) uint64_t words[8];
	} bases[BASES];
	const int fd = watch(&bases[WHICH].words[0]);

	(void)state;
	for (unsigned int times = 1; times <= 3; times++) {
		load_by_fs(bases, bases + BASES, sizeof(*bases));
		assert_int_equal(count_of(fd), times);
	}
	close(fd);
}

/* A selector brings a base of its own. */
static void fs_is_loaded(void **state)
{
	static _Alignas(64) uint64_t place;
	const int fd = watch(&place);

	(void)state;
	for (unsigned int times = 1; times <= 3; times++) {
		load_by_selector(&place);
		assert_int_equal(count_of(fd), 2 * times);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_are_told_alike),
		cmocka_unit_test(operands_are_found),
		cmocka_unit_test(places_change_under_way),
		cmocka_unit_test(fs_moves),
		cmocka_unit_test(fs_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
