// SPDX-License-Identifier: MIT
/* Calls about events, each of which writes a line of what came back. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "differential.h"
#include "draw.h"

/* ---- open and close ---- */

static int fd_of_group(int *slot)
{
	*slot = -1;
	switch (below(16)) {
	case 0:
		return -2;
	case 1:
		return STDERR_FILENO;
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

struct target {
	int pid, cpu;
	const char *name;
};

static struct target draw_target(void)
{
	switch (below(24)) {
	case 0:
		return (struct target){-1, -1, "everybody anywhere"};
	case 1:
		return (struct target){0, 100000, "a processor that is none"};
	case 2:
		return (struct target){-2, -1, "pid -2"};
	case 3:
		return (struct target){0, -2, "processor -2"};
	case 4:
		return (struct target){1 << 30, -1, "nobody"};
	case 5:
		return (struct target){getpid(), -1, "me"};
	case 6:
	case 7:
	case 8:
		if (helper)
			return (struct target){helper, -1, "the helper"};
		/* fallthrough */
	default:
		return (struct target){0, -1, "0"};
	}
}

/* Fields behind what was offered were not seen. */
static struct perf_event_attr as_seen(const struct perf_event_attr *attr, uint32_t offered)
{
	struct perf_event_attr seen = *attr;
	size_t size = offered ? offered : PERF_ATTR_SIZE_VER0;

	if (size < sizeof(seen))
		memset((char *)&seen + size, 0, sizeof(seen) - size);
	return seen;
}

static unsigned long draw_flags(void)
{
	unsigned long flags = one_in(6) ? 1UL << below(6) : 0;

	return flags == PERF_FLAG_PID_CGROUP ? PERF_FLAG_FD_CLOEXEC : flags;
}

/* As long as nothing has happened: Linux tells later of what came before. */
static void tell_by_signal(const struct slot *slot)
{
	int flags = fcntl(slot->fd, F_GETFL), owner = fcntl(slot->fd, F_SETOWN, getpid());
	int signal = fcntl(slot->fd, F_SETSIG, one_in(2) ? SIGRTMIN : 0);
	int set = fcntl(slot->fd, F_SETFL, flags ^ O_ASYNC);

	printf("flags %#x, to be told by signals: %s %s %s\n", (unsigned int)flags,
	       error_name(owner), error_name(signal), error_name(set));
}

void do_open(struct slot *slot)
{
	struct perf_event_attr attr = draw_attr();
	int leader, group = fd_of_group(&leader), fd;
	struct target target = draw_target();
	unsigned long flags = draw_flags();
	uint32_t offered = attr.size;

	if (leader >= 0 && unit_of(&slots[leader].attr) != unit_of(&attr))
		group = leader = -1;
	fd = (int)syscall(SYS_perf_event_open, &attr, target.pid, target.cpu, group, flags);
	printf("open type %#x config %#llx period %#llx sample %#llx read %#llx bits %#llx size %u "
	       "of %s group %d flags %#lx: %s%s\n",
	       attr.type, (unsigned long long)attr.config, (unsigned long long)attr.sample_period,
	       (unsigned long long)attr.sample_type, (unsigned long long)attr.read_format,
	       (unsigned long long)((uint64_t *)(void *)&attr)[5], offered, target.name,
	       group < 0 || leader < 0 ? group : leader + 100, flags, error_name(fd),
	       attr.size == offered ? "" : ", size rewritten");
	if (fd < 0)
		return;
	*slot = (struct slot){.fd = fd, .leader = group < 0 ? -1 : leader};
	slot->attr = as_seen(&attr, offered);
	slot->exact = is_exact(&slot->attr);
	slot->another = helper && target.pid == helper;
	if (flags & PERF_FLAG_FD_NO_GROUP)
		slot->leader = -1;
	ioctl(fd, PERF_EVENT_IOC_ID, &slot->id);
	if (leader >= 0 && flags & PERF_FLAG_FD_OUTPUT)
		slots[leader].shared = true;
	if (one_in(8))
		tell_by_signal(slot);
}

/* The members of its group first. */
void do_close(struct slot *slot)
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

static const char *some(uint64_t time, const struct slot *slot)
{
	return slot->another ? "*" : time ? "+" : "0";
}

static size_t print_times(const uint64_t *at, const struct slot *slot)
{
	uint64_t format = slot->attr.read_format;
	size_t used = 0;

	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		printf(" enabled %s", some(at[used++], slot));
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		printf(" running %s", some(at[used++], slot));
	return used;
}

static size_t print_id_and_lost(const uint64_t *at, const struct slot *slot)
{
	uint64_t format = slot->attr.read_format;
	size_t used = 0;

	if (format & PERF_FORMAT_ID)
		printf(" id of %d", slot_of_id(at[used++]));
	/* What a group has lost Linux forgets while a child lives that inherited it. */
	if (format & PERF_FORMAT_LOST && slot->attr.inherit && format & PERF_FORMAT_GROUP)
		printf(" lost *"), used++;
	else if (format & PERF_FORMAT_LOST)
		printf(" lost %llu", (unsigned long long)at[used++]);
	return used;
}

size_t print_read(const uint64_t *from, size_t nr, const struct slot *slot)
{
	uint64_t format = slot->attr.read_format, members;
	const uint64_t *at = from, *end = from + nr;

	if (!(format & PERF_FORMAT_GROUP)) {
		print_value(slot, *at++);
		at += print_times(at, slot);
		at += print_id_and_lost(at, slot);
		return (size_t)(at - from);
	}
	members = *at++;
	printf(" nr %llu", (unsigned long long)members);
	at += print_times(at, slot);
	while (members-- && at < end) {
		/* without ids the members' values cannot be told apart */
		int member = format & PERF_FORMAT_ID ? slot_of_id(at[1]) : -1;

		print_value(member < 0 ? NULL : &slots[member], *at++);
		at += print_id_and_lost(at, slot);
	}
	return (size_t)(at - from);
}

void do_read(const struct slot *slot)
{
	size_t length = one_in(4) ? below(48) : 512;
	uint64_t buffer[64];
	ssize_t n = read(slot->fd, buffer, length);

	printf("read %zu: ", length);
	if (n < 0) {
		printf("%s\n", strerrorname_np(errno));
		return;
	}
	printf("%zd:", n);
	if (n)
		print_read(buffer, (size_t)n / 8, slot);
	printf("\n");
}

/* ---- control ---- */

static void modify(struct slot *slot)
{
	struct perf_event_attr attr = one_in(3) ? draw_attr() : slot->attr;
	struct perf_event_attr other = draw_watchpoint();
	int result;

	if (attr.type == PERF_TYPE_BREAKPOINT) {
		attr.bp_addr = other.bp_addr;
		attr.bp_type = other.bp_type;
		attr.bp_len = other.bp_len;
		attr.disabled = below(2);
	}
	attr.size = sizeof(attr);
	result = ioctl(slot->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
	printf("ioctl modify type %u bp_type %u bp_len %llu: %s\n", attr.type, attr.bp_type,
	       (unsigned long long)attr.bp_len, error_name(result));
	if (!result)
		slot->attr = attr;
}

/* What is refused whoever asks. */
static void wrong_ioctl(const struct slot *slot)
{
	void *const bad = (void *)16;
	unsigned int ids[4] = {3};

	switch (below(6)) {
	case 0:
		printf("ioctl id to nowhere: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_ID, bad)));
		break;
	case 1:
		printf("ioctl period from nowhere: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_PERIOD, bad)));
		break;
	case 2:
		printf("ioctl bpf: %s\n", error_name(ioctl(slot->fd, PERF_EVENT_IOC_SET_BPF, -1)));
		break;
	case 3:
		printf("ioctl query: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_QUERY_BPF, ids)));
		break;
	case 4:
		printf("ioctl filter from nowhere: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_SET_FILTER, bad)));
		break;
	default:
		printf("ioctl modify from nowhere: %s\n",
		       error_name(ioctl(slot->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, bad)));
	}
}

static void set_output(const struct slot *slot)
{
	int other = (int)below(SLOTS + 2), fd, result;

	fd = other < SLOTS ? slots[other].fd : other == SLOTS ? -1 : STDERR_FILENO;
	result = ioctl(slot->fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)fd);
	printf("ioctl output to %d: %s\n", other < SLOTS ? other : fd, error_name(result));
	if (!result && other < SLOTS)
		slots[other].shared = true;
}

void do_ioctl(struct slot *slot)
{
	static const struct {
		const char *name;
		unsigned long request;
	} plain[] = {
		{"enable", PERF_EVENT_IOC_ENABLE}, {"disable", PERF_EVENT_IOC_DISABLE},
		{"reset", PERF_EVENT_IOC_RESET},   {"enable", PERF_EVENT_IOC_ENABLE},
		{"unknown", _IO('$', 99)},
	};
	unsigned int choice = below(11);
	unsigned long argument;
	uint64_t number;

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
		set_output(slot);
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
	case 5:
		modify(slot);
		break;
	case 6:
		wrong_ioctl(slot);
		break;
	default:
		choice = below(sizeof(plain) / sizeof(plain[0]));
		argument = one_in(3) ? PERF_IOC_FLAG_GROUP : 0;
		printf("ioctl %s %lu: %s\n", plain[choice].name, argument,
		       error_name(ioctl(slot->fd, plain[choice].request, argument)));
	}
}

void do_prctl(void)
{
	bool enable = one_in(2);
	int result = prctl(enable ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);

	printf("prctl %s: %s\n", enable ? "enable" : "disable", error_name(result));
}

void do_poll(const struct slot *slot)
{
	static const short wanted[] = {POLLIN, POLLIN, POLLIN | POLLOUT | POLLPRI, 0};
	struct pollfd one = {.fd = slot->fd, .events = PICK(wanted)};
	int n = poll(&one, 1, 0);

	printf("poll %#x: %d %#x\n", (unsigned int)one.events, n,
	       n > 0 ? (unsigned int)one.revents : 0);
}

/* ---- what is seldom done to such a descriptor ---- */

static void read_twice(const struct slot *slot)
{
	int copy = dup(slot->fd);
	uint64_t one[64], other[64];
	ssize_t n = read(slot->fd, one, sizeof(one)), m = read(copy, other, sizeof(other));

	printf("dup: %zd %zd\n", n, m);
	close(copy);
}

static void read_in_parts(const struct slot *slot)
{
	uint64_t buffer[64];
	struct iovec parts[] = {{buffer, 8}, {buffer + 1, sizeof(buffer) - 8}};
	ssize_t n = readv(slot->fd, parts, 2);

	printf("readv: %s %zd\n", error_name(n), n);
	n = pread(slot->fd, buffer, sizeof(buffer), 0);
	printf("pread: %s %zd\n", error_name(n), n);
}

void do_odd(struct slot *slot)
{
	struct stat about = {0};
	char byte = 0;

	switch (below(7)) {
	case 0:
		printf("write: %s\n", error_name(write(slot->fd, &byte, 1)));
		break;
	case 1:
		printf("lseek: %s\n", error_name(lseek(slot->fd, 0, SEEK_SET)));
		break;
	case 2:
		printf("fstat: %s", error_name(fstat(slot->fd, &about)));
		printf(" size %lld\n", (long long)about.st_size);
		break;
	case 3:
		printf("fsync: %s\n", error_name(fsync(slot->fd)));
		printf("ftruncate: %s\n", error_name(ftruncate(slot->fd, 0)));
		break;
	case 4:
		read_twice(slot);
		break;
	case 5:
		printf("read to nowhere: %s\n", error_name(syscall(SYS_read, slot->fd, 16, 512)));
		break;
	default:
		read_in_parts(slot);
	}
}
