// SPDX-License-Identifier: MIT
/*
 * Random attrs, opened by the running kernel and by the core: the same errno, whatever is wrong
 * with them. Only what the kernel knows is used, which is found out bit by bit first.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"

enum { ROUNDS = 20000, FLAGS_AT = 40, BEYOND_ALL = 512, LARGEST = 8192 };

/* An attr of any size, and where it is to be opened. */
struct request {
	_Alignas(8) unsigned char bytes[LARGEST];
	bool all;
	int cpu;
	unsigned int group; /* of the pair that is open: 0 none, 1 the leader, 2 a member */
};

static struct {
	uint64_t seed;
	uint64_t sample_type, read_format, flags; /* that the kernel knows */
	struct core_rights rights;
	int leader, member; /* the kernel's */
	uint32_t core_leader, core_member;
} test;

static uint64_t random_word(void)
{
	test.seed ^= test.seed << 13;
	test.seed ^= test.seed >> 7;
	test.seed ^= test.seed << 17;
	return test.seed;
}

static uint64_t below(uint64_t limit)
{
	return (random_word() >> 11) % limit;
}

static struct perf_event_attr *attr_of(struct request *request)
{
	return (struct perf_event_attr *)(void *)request->bytes;
}

static void put(struct request *request, size_t at, uint64_t word)
{
	memcpy(request->bytes + at, &word, sizeof(word));
}

/* ---- the two sides ---- */

/* 0 or an errno value. */
static int ask_kernel(struct request *request)
{
	const int groups[] = {-1, test.leader, test.member};
	uint32_t size = attr_of(request)->size;
	long fd = syscall(SYS_perf_event_open, request->bytes, request->all ? -1 : 0, request->cpu,
			  groups[request->group], PERF_FLAG_FD_CLOEXEC);
	int err = fd < 0 ? errno : 0;

	attr_of(request)->size = size; /* E2BIG writes to it */
	if (fd >= 0)
		close((int)fd);
	return err;
}

static bool tail_is_zero(const struct request *request, uint32_t size)
{
	for (uint32_t i = CORE_ATTR_SIZE; i < size && i < LARGEST; i++)
		if (request->bytes[i])
			return false;
	return true;
}

static int ask_core(struct request *request)
{
	const uint32_t groups[] = {0, test.core_leader, test.core_member};
	const struct core_target target = {
		.task = request->all ? NULL : fake.task,
		.cpu = request->cpu,
	};
	uint32_t size = attr_of(request)->size, known = size ? size : PERF_ATTR_SIZE_VER0;
	struct padded_attr padded;
	int64_t result;

	memset(&padded, 0, sizeof(padded));
	memcpy(padded.bytes, request->bytes, known < CORE_ATTR_SIZE ? known : CORE_ATTR_SIZE);
	result = core_attr_check(&padded.attr, size, tail_is_zero(request, known), &test.rights);
	if (!result)
		result = core_open_check(&padded.attr, request->all ? -1 : 0, request->cpu, 0,
					 &test.rights);
	if (!result)
		result = test_open(&padded.attr, &target, groups[request->group], 0, &test.rights);
	if (result < 0)
		return (int)-result;
	tree_close((uint32_t)result);
	return 0;
}

/* ---- what the kernel knows ---- */

static struct request plain(void)
{
	struct request request;
	struct perf_event_attr *attr = attr_of(&request);

	memset(&request, 0, sizeof(request));
	attr->type = PERF_TYPE_SOFTWARE;
	attr->size = sizeof(*attr);
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	request.cpu = -1;
	return request;
}

/* The bits of the word at @at, up to @limit, that are not refused as unknown. A bit that is alone
 * may be refused for what it lacks, too: those that do are left out. */
static uint64_t known_bits(size_t at, unsigned int limit)
{
	uint64_t known = 0;

	for (unsigned int bit = 0; bit < limit; bit++) {
		struct request request = plain();
		uint64_t word;

		memcpy(&word, request.bytes + at, sizeof(word));
		put(&request, at, word | 1UL << bit);
		if (ask_kernel(&request) != EINVAL)
			known |= 1UL << bit;
	}
	return known;
}

static long number_in(const char *path)
{
	FILE *file = fopen(path, "r");
	long number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

static bool has_capability(unsigned int number)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[number / 32].effective >> number % 32 & 1;
}

static void take_over_settings(void)
{
	struct core_settings *settings = &core_tree()->settings;

	settings->paranoid = (int32_t)number_in("/proc/sys/kernel/perf_event_paranoid");
	settings->max_sample_rate =
		(uint32_t)number_in("/proc/sys/kernel/perf_event_max_sample_rate");
	settings->max_stack = (uint32_t)number_in("/proc/sys/kernel/perf_event_max_stack");
	settings->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	test.rights.perfmon = has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);
	test.rights.attach = true;
}

static int setup(void **state)
{
	struct request request = plain();
	struct perf_event_attr attr = *attr_of(&request);

	(void)state;
	test.seed = 88172645463325252;
	if (ask_kernel(&request))
		return 0; /* each case skips */
	tree_begin(0);
	take_over_settings();
	test.leader = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	test.member =
		(int)syscall(SYS_perf_event_open, &attr, 0, -1, test.leader, PERF_FLAG_FD_CLOEXEC);
	test.core_leader = tree_open(&attr, fake.task, -1, 0);
	test.core_member = tree_open(&attr, fake.task, -1, test.core_leader);
	test.sample_type = known_bits(offsetof(struct perf_event_attr, sample_type), 25);
	test.read_format = known_bits(offsetof(struct perf_event_attr, read_format), 5);
	test.flags = known_bits(FLAGS_AT, 38);
	/* refused alone, but old enough for every kernel that is left */
	test.sample_type |= PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			    PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!test.core_leader)
		return 0;
	close(test.member);
	close(test.leader);
	tree_end();
	return 0;
}

/* ---- the requests ---- */

static const uint64_t odd_numbers[] = {
	0,    1,     2,	    3,		4,	   7,	      8,	  9,	     63,   64,
	72,   96,    112,   127,	128,	   136,	      144,	  4095,	     4096, 4097,
	4104, 65527, 65528, UINT16_MAX, 1UL << 16, 1UL << 24, UINT32_MAX, 1UL << 63, ~0UL};

static uint64_t odd_number(void)
{
	return odd_numbers[below(sizeof(odd_numbers) / sizeof(odd_numbers[0]))];
}

/* Some bits of those that are known, and now and then one that nobody knows. */
static uint64_t some_bits(uint64_t known)
{
	uint64_t bits = known & random_word() & random_word() & random_word();

	return below(50) ? bits : bits | 1UL << (40 + below(24));
}

static void vary_type(struct request *request)
{
	struct perf_event_attr *attr = attr_of(request);

	switch (below(6)) {
	case 0:
		attr->type = (uint32_t)odd_number() | 0x1000000;
		break;
	case 1:
		attr->config = odd_number();
		break;
	case 2:
	case 3:
		attr->type = PERF_TYPE_BREAKPOINT;
		attr->config = 0;
		/* reads alone are ours only */
		attr->bp_type = below(8) ? HW_BREAKPOINT_W | (uint32_t)below(2) : HW_BREAKPOINT_X;
		attr->bp_addr = 0x10000 + below(4) * below(8);
		attr->bp_len = below(3) ? 1UL << below(4) : below(10);
		break;
	default:
		attr->config = PERF_COUNT_SW_DUMMY;
	}
}

static void vary_mask(struct request *request)
{
	struct perf_event_attr *attr = attr_of(request);
	uint64_t word;

	switch (below(5)) {
	case 0:
		attr->sample_type = some_bits(test.sample_type);
		break;
	case 1:
		attr->read_format = some_bits(test.read_format);
		break;
	case 2:
		memcpy(&word, request->bytes + FLAGS_AT, sizeof(word));
		put(request, FLAGS_AT, word | some_bits(test.flags));
		break;
	case 3:
		attr->branch_sample_type = below(2) ? 1UL << below(18) : some_bits(0x3ffff);
		break;
	default:
		attr->freq = below(2) && test.flags & 1UL << 10;
		attr->sample_period = odd_number();
	}
}

static void vary_field(struct request *request)
{
	struct perf_event_attr *attr = attr_of(request);

	switch (below(8)) {
	case 0:
		attr->sample_stack_user = (uint32_t)odd_number();
		break;
	case 1:
		attr->sample_regs_user = below(2) ? 1UL << below(64) : odd_number();
		break;
	case 2:
		attr->sample_regs_intr = below(2) ? 1UL << below(64) : odd_number();
		break;
	case 3:
		attr->sample_max_stack = (uint16_t)odd_number();
		break;
	case 4:
		attr->clockid = (int32_t)below(14) - 1;
		break;
	case 5:
		attr->__reserved_2 = (uint16_t)(below(4) ? 0 : odd_number());
		break;
	case 6:
		attr->size = (uint32_t)odd_number();
		break;
	default:
		request->bytes[BEYOND_ALL + below(LARGEST - BEYOND_ALL)] = (unsigned char)below(2);
	}
}

static void vary_place(struct request *request)
{
	request->group = (unsigned int)below(3);
	request->cpu = below(2) ? -1 : (int)below(4) - 2;
	if (!below(4))
		request->cpu = (int)odd_number() | 0x10000;
	request->all = !below(4);
}

static bool is_incomparable(const struct request *request)
{
	/* Other processors may be offline; which, only the kernel knows. */
	return request->cpu > 0 && request->cpu < 0x10000;
}

static void describe(struct request *request, int kernel, int core)
{
	const struct perf_event_attr *attr = attr_of(request);
	uint64_t flags;

	memcpy(&flags, request->bytes + FLAGS_AT, sizeof(flags));
	print_error("type %u size %u config %#llx period %#llx sample_type %#llx read_format %#llx "
		    "flags %#lx bp %u %#llx %#llx branch %#llx regs %#llx %#llx stack %u clock %d "
		    "max_stack %u reserved %u, all %d cpu %d group %u: kernel %s, core %s\n",
		    attr->type, attr->size, attr->config, attr->sample_period, attr->sample_type,
		    attr->read_format, flags, attr->bp_type, attr->bp_addr, attr->bp_len,
		    attr->branch_sample_type, attr->sample_regs_user, attr->sample_regs_intr,
		    attr->sample_stack_user, attr->clockid, attr->sample_max_stack,
		    attr->__reserved_2, request->all, request->cpu, request->group,
		    strerrorname_np(kernel), strerrorname_np(core));
}

static void the_same_errno_as_the_kernels(void **state)
{
	unsigned int accepted = 0, differences = 0;

	(void)state;
	if (!test.core_leader) {
		print_message("the kernel refuses perf_event_open(2)");
		skip();
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct request request = plain();
		int kernel, core;

		if (!below(2))
			vary_type(&request);
		for (uint64_t n = below(4); n; n--)
			vary_mask(&request);
		for (uint64_t n = below(3); n; n--)
			vary_field(&request);
		if (!below(3))
			vary_place(&request);
		if (is_incomparable(&request))
			continue;
		kernel = ask_kernel(&request);
		core = ask_core(&request);
		accepted += !core;
		if (kernel != core && differences++ < 20)
			describe(&request, kernel, core);
	}
	assert_int_equal(differences, 0);
	/* a test of errors alone would not see what is refused wrongly */
	assert_in_range(accepted, ROUNDS / 20, ROUNDS * 19 / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_errno_as_the_kernels)};

	return cmocka_run_group_tests_name("core: attrs beside the kernel's", tests, setup,
					   teardown);
}
