// SPDX-License-Identifier: MIT
/*
 * Random calls from a seed, and a transcript of what came back, to hold two implementations of
 * perf_event_open(2) against each other.
 *
 * The transcript has to be the same on every correct implementation, so it says only what is
 * determined: errno, sizes, record types, and values of events whose number is known (watchpoints,
 * events that never happen). Times are told as zero or not, ids as the slot they belong to, counts
 * of faults and clocks not at all; and nothing is sampled that the machine's timing decides. Kept
 * out are habits of Linux that depend on when the task is next scheduled or are nothing to imitate:
 * a leader that is closed before its members, groups over several units, exclusive ones, a refresh
 * that runs out (since 6.17 a watchpoint then never starts again), a new period (part of the old
 * one stays).
 */
#include <errno.h>
#include <getopt.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

/* ---- random choices ---- */

static uint64_t state;

static uint64_t draw(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static unsigned int below(unsigned int limit)
{
	return (unsigned int)(draw() % limit);
}

static bool one_in(unsigned int chances)
{
	return below(chances) == 0;
}

#define PICK(array) ((array)[below(sizeof(array) / sizeof((array)[0]))])

/* ---- events ---- */

#define SLOTS 8

static struct slot {
	int fd;	    /* -1: free */
	int leader; /* slot of the group's leader; -1: none but itself */
	bool exact;
	struct perf_event_attr attr;
	uint64_t id;
	struct perf_event_mmap_page *page;
	unsigned int pages;
} slots[SLOTS];

static volatile uint64_t words[4] __attribute__((aligned(8)));

static const char *error_name(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

static int slot_of_id(uint64_t id)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0 && slots[i].id == id)
			return i;
	return -1;
}

static int fd_of_group(int *slot)
{
	*slot = -1;
	switch (below(16)) {
	case 0:
		return -2;
	case 1:
		return 2; /* stderr */
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		*slot = (int)below(SLOTS);
		return slots[*slot].fd;
	default:
		return -1;
	}
}

static struct perf_event_attr draw_watchpoint(void)
{
	static const uint64_t lengths[] = {1, 2, 4, 8, 8, 8, 4, 4, 2, 1, 3, 0};
	static const uint32_t types[] = {HW_BREAKPOINT_W, HW_BREAKPOINT_RW, HW_BREAKPOINT_W,
					 HW_BREAKPOINT_X, HW_BREAKPOINT_EMPTY};
	static const uint64_t periods[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 5, 1ULL << 63};
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT};

	attr.bp_type = PICK(types);
	attr.bp_len = PICK(lengths);
	attr.bp_addr = (uintptr_t)&words[below(4)] + (one_in(5) ? below(8) : 0);
	attr.sample_period = PICK(periods);
	return attr;
}

static struct perf_event_attr draw_software(void)
{
	static const uint64_t configs[] = {
		PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_TASK_CLOCK,
		PERF_COUNT_SW_EMULATION_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_CPU_CLOCK,
		1000,
		1ULL << 40,
	};
	static const uint64_t periods[] = {0, 0, 0, 0, 0, 1ULL << 62, 1ULL << 62, 1ULL << 63};
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};

	attr.config = PICK(configs);
	attr.sample_period = PICK(periods);
	if (one_in(10)) {
		attr.freq = 1;
		attr.sample_freq = one_in(2) ? 0 : 1ULL << 40;
	}
	return attr;
}

static void draw_sampling(struct perf_event_attr *attr)
{
	static const uint64_t fields[] = {
		PERF_SAMPLE_IP,
		PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR,
		PERF_SAMPLE_READ,
		PERF_SAMPLE_ID,
		PERF_SAMPLE_CPU,
		PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_RAW,
		PERF_SAMPLE_REGS_USER,
		PERF_SAMPLE_STACK_USER,
		PERF_SAMPLE_WEIGHT,
		PERF_SAMPLE_DATA_SRC,
		PERF_SAMPLE_IDENTIFIER,
		PERF_SAMPLE_TRANSACTION,
		PERF_SAMPLE_REGS_INTR,
		PERF_SAMPLE_WEIGHT_STRUCT,
		1ULL << 25,
		1ULL << 63,
	};
	static const uint64_t masks[] = {0x180, 0x1ff, 0x180, 0x101, 0, 1 << 12, 1 << 24};
	static const uint32_t stacks[] = {64, 64, 256, 256, 12, 65536};

	for (unsigned int i = below(3); i; i--)
		attr->sample_type |= PICK(fields);
	attr->sample_regs_user = PICK(masks);
	attr->sample_regs_intr = one_in(4) ? PICK(masks) : 0x100;
	attr->sample_stack_user = PICK(stacks);
	attr->read_format = one_in(30) ? 1ULL << 5 : below(32);
	attr->wakeup_events = below(4);
	attr->watermark = one_in(4);
}

/* A processor has four, and who watches all of it takes some of them. */
static bool may_watch(void)
{
	unsigned int live = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		live += slots[i].fd >= 0 && slots[i].attr.type == PERF_TYPE_BREAKPOINT;
	return live < 2;
}

static struct perf_event_attr draw_attr(void)
{
	static const uint32_t sizes[] = {64, 72, 80, 96, 104, 112, 120, 0, 8, 63, 4096, 1 << 20};
	struct perf_event_attr attr =
		one_in(2) && may_watch() ? draw_watchpoint() : draw_software();

	if (one_in(30))
		attr.type = 0x7ffffff0 + below(8);
	draw_sampling(&attr);
	attr.size = one_in(12) ? PICK(sizes) : sizeof(attr);
	if (attr.size > sizeof(attr))
		attr.size = 1 << 20; /* what lies behind is not ours */
	attr.disabled = below(2);
	attr.exclude_kernel = 1;
	attr.exclude_hv = below(2);
	attr.sample_id_all = below(2);
	attr.comm = one_in(3);
	attr.inherit = one_in(6);
	attr.pinned = one_in(8);
	attr.enable_on_exec = one_in(10);
	attr.remove_on_exec = one_in(10);
	attr.inherit_thread = one_in(30);
	attr.aux_output = one_in(40);
	attr.precise_ip = below(4) & 3;
	if (one_in(12)) {
		attr.use_clockid = 1;
		attr.clockid = (int)below(14);
	}
	return attr;
}

/* Values are told only for events whose occurrences are all ours. */
static bool is_exact(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_BREAKPOINT || attr->config == PERF_COUNT_SW_DUMMY ||
	       attr->config == PERF_COUNT_SW_EMULATION_FAULTS;
}

/* Linux schedules by unit, and each clock is one of its own. */
static uint64_t unit_of(const struct perf_event_attr *attr)
{
	bool clock = attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
							  attr->config == PERF_COUNT_SW_TASK_CLOCK);

	return clock ? 1000 + attr->config : attr->type;
}

static void do_open(struct slot *slot)
{
	struct perf_event_attr attr = draw_attr();
	int leader, group = fd_of_group(&leader);
	unsigned long flags = one_in(6) ? 1UL << below(6) : 0;
	uint32_t offered = attr.size;
	int fd;

	if (leader >= 0 && unit_of(&slots[leader].attr) != unit_of(&attr))
		group = leader = -1;
	if (flags == PERF_FLAG_PID_CGROUP)
		flags = PERF_FLAG_FD_CLOEXEC;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, flags);
	printf("open type %#x config %#llx period %#llx sample %#llx read %#llx bits %#llx size %u "
	       "group %d flags %#lx: %s%s\n",
	       attr.type, (unsigned long long)attr.config, (unsigned long long)attr.sample_period,
	       (unsigned long long)attr.sample_type, (unsigned long long)attr.read_format,
	       (unsigned long long)((uint64_t *)(void *)&attr)[5], offered,
	       group < 0 || leader < 0 ? group : leader + 100, flags, error_name(fd),
	       attr.size == offered ? "" : ", size rewritten");
	if (fd < 0)
		return;
	attr.size = offered;
	*slot = (struct slot){.fd = fd, .leader = group < 0 ? -1 : leader, .attr = attr};
	slot->exact = is_exact(&attr);
	if (flags & PERF_FLAG_FD_NO_GROUP)
		slot->leader = -1;
	if (offered < 128) /* fields behind the offer were not seen */
		memset((char *)&slot->attr + (offered ? offered : 64), 0,
		       sizeof(slot->attr) - (offered ? offered : 64));
	ioctl(fd, PERF_EVENT_IOC_ID, &slot->id);
}

/* The members of its group first. */
static void do_close(struct slot *slot)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0 && slots[i].leader == slot - slots)
			do_close(&slots[i]);
	if (slot->page)
		munmap(slot->page, (1 + slot->pages) * 4096);
	close(slot->fd);
	slot->fd = -1;
	slot->page = NULL;
	printf("closed %d\n", (int)(slot - slots));
}

/* ---- reading ---- */

static void print_value(const struct slot *slot, uint64_t value)
{
	if (slot && slot->exact)
		printf(" value %llu", (unsigned long long)value);
	else
		printf(" value *");
}

static void print_times(const uint64_t **at, uint64_t format)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		printf(" enabled %s", *(*at)++ ? "+" : "0");
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		printf(" running %s", *(*at)++ ? "+" : "0");
}

static void print_id_and_lost(const uint64_t **at, uint64_t format)
{
	if (format & PERF_FORMAT_ID)
		printf(" id of %d", slot_of_id(*(*at)++));
	if (format & PERF_FORMAT_LOST)
		printf(" lost %llu", (unsigned long long)*(*at)++);
}

static void do_read(const struct slot *slot)
{
	uint64_t buffer[64], format = slot->attr.read_format;
	const uint64_t *at = buffer;
	size_t length = one_in(4) ? below(48) : sizeof(buffer);
	ssize_t n = read(slot->fd, buffer, length);

	printf("read %zu: ", length);
	if (n < 0) {
		printf("%s\n", strerrorname_np(errno));
		return;
	}
	printf("%zd:", n);
	if (n && format & PERF_FORMAT_GROUP) {
		uint64_t nr = *at++;

		printf(" nr %llu", (unsigned long long)nr);
		print_times(&at, format);
		while (nr--) {
			/* without ids the members' values cannot be told apart */
			int member = format & PERF_FORMAT_ID ? slot_of_id(at[1]) : -1;

			print_value(member < 0 ? NULL : &slots[member], *at++);
			print_id_and_lost(&at, format);
		}
	} else if (n) {
		print_value(slot, *at++);
		print_times(&at, format);
		print_id_and_lost(&at, format);
	}
	printf("\n");
}

/* ---- control ---- */

static void do_ioctl(const struct slot *slot)
{
	static const struct {
		const char *name;
		unsigned long request;
	} plain[] = {
		{"enable", PERF_EVENT_IOC_ENABLE}, {"disable", PERF_EVENT_IOC_DISABLE},
		{"reset", PERF_EVENT_IOC_RESET},   {"enable", PERF_EVENT_IOC_ENABLE},
		{"unknown", _IO('$', 99)},
	};
	unsigned int choice = below(9);
	unsigned long argument;
	uint64_t number;
	int other;

	switch (choice) {
	case 0: /* so many that it never runs out */
		printf("ioctl refresh: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_REFRESH, 1000000)));
		break;
	case 1: /* only what is refused */
		number = slot->attr.sample_period ? (one_in(2) ? 0 : 1ULL << 63) : 100;
		printf("ioctl period %#llx: %s\n", (unsigned long long)number,
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_PERIOD, &number)));
		break;
	case 2:
		other = (int)below(SLOTS + 1);
		argument = other == SLOTS ? ~0UL : (unsigned long)slots[other].fd;
		printf("ioctl output to %d: %s\n", other == SLOTS ? -1 : other,
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_SET_OUTPUT, argument)));
		break;
	case 3:
		argument = below(2);
		printf("ioctl pause %lu: %s\n", argument,
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, argument)));
		break;
	case 4:
		printf("ioctl filter: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_SET_FILTER, "pid == 1")));
		break;
	default:
		choice = below(sizeof(plain) / sizeof(plain[0]));
		argument = one_in(3) ? PERF_IOC_FLAG_GROUP : 0;
		printf("ioctl %s %lu: %s\n", plain[choice].name, argument,
		       error_name(ioctl(slot->fd, plain[choice].request, argument)));
	}
}

static void do_prctl(void)
{
	bool enable = one_in(2);
	int result = prctl(enable ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);

	printf("prctl %s: %s\n", enable ? "enable" : "disable", error_name(result));
}

/* ---- buffers ---- */

static void do_map(struct slot *slot)
{
	static const unsigned int choices[] = {0, 1, 1, 2, 4, 3};
	unsigned int pages = PICK(choices);
	void *map;

	if (slot->page) {
		printf("mapped already\n");
		return;
	}
	map = mmap(NULL, (1 + pages) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);
	printf("map %u: %s\n", pages, map == MAP_FAILED ? strerrorname_np(errno) : "ok");
	if (map != MAP_FAILED) {
		slot->page = map;
		slot->pages = pages;
	}
}

/* Types and sizes, alike ones in a row as one. */
static void do_drain(struct slot *slot)
{
	uint64_t size = slot->pages * 4096, tail, head;
	struct perf_event_header last = {0};
	unsigned int alike = 0;

	if (!slot->page || !slot->pages) {
		printf("no buffer\n");
		return;
	}
	printf("records:");
	tail = slot->page->data_tail;
	head = __atomic_load_n(&slot->page->data_head, __ATOMIC_ACQUIRE);
	while (tail < head) {
		struct perf_event_header header;

		/* headers are 8 bytes on a boundary of 8: never split */
		memcpy(&header, (char *)slot->page + 4096 + (tail & (size - 1)), sizeof(header));
		if (header.size < 8 || header.size > head - tail) {
			printf(" malformed");
			break;
		}
		if (alike && memcmp(&header, &last, sizeof(header)) != 0) {
			printf(" %ux type %u misc %#x size %u", alike, last.type, last.misc,
			       last.size);
			alike = 0;
		}
		last = header;
		alike++;
		tail += header.size;
	}
	if (alike)
		printf(" %ux type %u misc %#x size %u", alike, last.type, last.misc, last.size);
	printf("\n");
	__atomic_store_n(&slot->page->data_tail, head, __ATOMIC_RELEASE);
}

static void do_poll(const struct slot *slot)
{
	struct pollfd one = {.fd = slot->fd, .events = POLLIN};
	int n = poll(&one, 1, 0);

	printf("poll: %d %#x\n", n, n > 0 ? (unsigned int)one.revents : 0);
}

/* ---- work ---- */

static void do_work(void)
{
	unsigned int which = below(4), count = 1 + below(20);
	char name[16];

	switch (below(4)) {
	case 0:
		for (unsigned int i = 0; i < count; i++)
			work_load4(&words[which]);
		printf("loads of word %u: %u\n", which, count);
		break;
	case 1:
		work_faults(count);
		printf("faults\n");
		break;
	case 2:
		snprintf(name, sizeof(name), "%.*s", (int)below(15), "fourteen chars");
		prctl(PR_SET_NAME, name);
		printf("name '%s'\n", name);
		break;
	default:
		for (unsigned int i = 0; i < count; i++)
			work_store8(&words[which]);
		printf("stores to word %u: %u\n", which, count);
	}
}

static void step(void)
{
	unsigned int index = below(SLOTS), choice = below(12);
	struct slot *slot = &slots[index];

	if (choice < 3) {
		do_work();
		return;
	}
	if (choice == 3 && one_in(3)) {
		do_prctl();
		return;
	}
	printf("%u: ", index);
	if (slot->fd < 0) {
		do_open(slot);
		return;
	}
	switch (choice) {
	case 4:
	case 5:
		do_read(slot);
		break;
	case 6:
		do_map(slot);
		break;
	case 7:
		do_drain(slot);
		break;
	case 8:
		do_poll(slot);
		break;
	case 9:
		if (one_in(2)) {
			do_close(slot);
			break;
		}
		/* fallthrough */
	default:
		do_ioctl(slot);
	}
}

static void transcript(uint64_t seed, unsigned int steps)
{
	state = seed;
	for (int i = 0; i < SLOTS; i++)
		slots[i].fd = -1;
	while (steps--)
		step();
	fflush(stdout);
}

/* ---- the same seed twice ---- */

/* The transcript of a process of its own, in memory. */
static char *collect(uint64_t seed, unsigned int steps, size_t *size)
{
	int file = memfd_create("transcript", MFD_CLOEXEC), status;
	pid_t pid;
	char *text;

	fflush(stdout);
	pid = file < 0 ? -1 : fork();
	if (pid == 0) {
		dup2(file, STDOUT_FILENO);
		transcript(seed, steps);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return NULL;
	*size = (size_t)lseek(file, 0, SEEK_END);
	text = calloc(1, *size + 1);
	if (text && pread(file, text, *size, 0) != (ssize_t)*size) {
		free(text);
		text = NULL;
	}
	close(file);
	return text;
}

static void show_difference(const char *one, const char *other)
{
	unsigned int line = 1;
	size_t start = 0;

	for (size_t i = 0; one[i] && one[i] == other[i]; i++)
		if (one[i] == '\n') {
			start = i + 1;
			line++;
		}
	printf("# line %u: %.*s\n# line %u: %.*s\n", line, (int)strcspn(one + start, "\n"),
	       one + start, line, (int)strcspn(other + start, "\n"), other + start);
}

static bool same_twice(uint64_t seed, unsigned int steps)
{
	size_t sizes[2] = {0};
	char *texts[2] = {collect(seed, steps, &sizes[0]), collect(seed, steps, &sizes[1])};
	bool same = texts[0] && texts[1] && sizes[0] && sizes[0] == sizes[1] &&
		    memcmp(texts[0], texts[1], sizes[0]) == 0;

	if (texts[0] && texts[1] && !same)
		show_difference(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
	return same;
}

static bool has_call(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) < 0 && errno == EFAULT;
}

static int twice(unsigned int seeds, unsigned int steps)
{
	bool usable = has_call(), failed = false;

	printf("1..%u\n", seeds);
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		bool same = usable && same_twice(seed, steps);

		failed |= usable && !same;
		printf("%s %u - the same transcript twice from seed %u%s\n",
		       same || !usable ? "ok" : "not ok", seed, seed,
		       usable ? "" : " # SKIP no perf_event_open");
	}
	return failed;
}

static const char usage[] =
	"usage: differential [--seed N] [--steps N]\n"
	"       differential --twice SEEDS [--steps N]\n"
	"\n"
	"Makes random perf_event_open calls, ioctls and reads from the seed and prints a\n"
	"transcript that does not depend on time, place or ids. With --twice it makes each of\n"
	"the first SEEDS transcripts two times, wants them equal, and prints TAP.\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"steps", required_argument, NULL, 'n'},
		{"twice", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	unsigned int steps = 1000, seeds = 0;
	uint64_t seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "s:n:t:h", options, NULL)) != -1)
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			steps = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 't':
			seeds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (seeds)
		return twice(seeds, steps);
	transcript(seed, steps);
	return 0;
}
