// SPDX-License-Identifier: MIT
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conformance.h"
#include "tests/breakpoints.h"
#include "workload.h"

int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
	      unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

struct perf_event_attr abi_attr(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

struct perf_event_attr abi_software(uint64_t config)
{
	return abi_attr(PERF_TYPE_SOFTWARE, config);
}

struct perf_event_attr abi_breakpoint(uint32_t bp_type, const volatile void *addr, uint64_t len)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_type = bp_type;
	attr.bp_addr = (uintptr_t)addr;
	attr.bp_len = len;
	return attr;
}

static bool is_hardware(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW;
}

/* perf_event_paranoid refuses this to an ordinary user, by the documents. */
static bool is_refused_by_level(const struct perf_event_attr *attr, pid_t pid, unsigned long flags)
{
	int level = abi_paranoid();

	return level > 2 || (level > 1 && !attr->exclude_kernel) ||
	       (level > 0 && (pid == -1 || flags & PERF_FLAG_PID_CGROUP)) ||
	       (level > -1 && attr->type == PERF_TYPE_TRACEPOINT);
}

/* user_mode.py takes this skip for a failure: there all are hit. */
static void need_hits(void)
{
	static enum { UNKNOWN, HIT, FORGOTTEN } breakpoints;

	if (breakpoints == UNKNOWN)
		breakpoints = breakpoints_forgotten() ? FORGOTTEN : HIT;
	if (breakpoints == FORGOTTEN)
		CANNOT(BREAKPOINTS_FORGOTTEN);
}

int abi_must_open(const char *file, int line, const struct perf_event_attr *attr, pid_t pid,
		  int cpu, int group, unsigned long flags)
{
	int fd = perf_open(attr, pid, cpu, group, flags);
	int error = errno;

	if (fd >= 0 && attr->type == PERF_TYPE_BREAKPOINT)
		need_hits();
	if (fd >= 0)
		return fd;
	if (error == ENOSYS)
		CANNOT("no perf_event_open");
	if ((error == EACCES || error == EPERM) && !abi_privileged() &&
	    is_refused_by_level(attr, pid, flags))
		NOT_ALLOWED("perf_event_paranoid is %d", abi_paranoid());
	if (is_hardware(attr) &&
	    (error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == EINVAL)) {
		abi_need_hardware();
		CANNOT("the PMU lacks event type %u config %#llx", attr->type,
		       (unsigned long long)attr->config);
	}
	if (attr->type == PERF_TYPE_BREAKPOINT && (error == ENODEV || error == EOPNOTSUPP))
		CANNOT("no hardware breakpoints");
	abi_fail(file, line,
		 "perf_event_open(type %u, config %#llx, pid %d, cpu %d, group %d, flags %#lx): %s",
		 attr->type, (unsigned long long)attr->config, pid, cpu, group, flags,
		 strerrorname_np(error));
}

void abi_must_refuse(const char *file, int line, const struct perf_event_attr *attr, pid_t pid,
		     int cpu, int group, unsigned long flags, int wanted)
{
	int fd = perf_open(attr, pid, cpu, group, flags);
	int error = errno;

	if (fd < 0 && error == EACCES && wanted != EACCES)
		abi_need_events();
	abi_errno(file, line, "perf_event_open", fd, error, wanted);
}

void abi_need_hardware(void)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open(&attr, 0, -1, -1, 0);

	if (fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP || errno == ENODEV))
		CANNOT("no hardware PMU");
	if (fd < 0 && errno == ENOSYS)
		CANNOT("no perf_event_open");
	if (fd < 0 && errno == EACCES && !abi_privileged())
		NOT_ALLOWED("perf_event_paranoid is %d", abi_paranoid());
	if (fd < 0)
		FAIL("instructions: %s", strerrorname_np(errno));
	close(fd);
}

void abi_read_words(const char *file, int line, int fd, uint64_t *words, size_t count)
{
	uint64_t buffer[64];
	ssize_t n;

	if (count >= sizeof(buffer) / sizeof(buffer[0]))
		abi_fail(file, line, "a read of %zu words is more than the harness takes", count);
	n = read(fd, buffer, sizeof(buffer));
	if (n < 0)
		abi_fail(file, line, "read: %s", strerrorname_np(errno));
	if (n != (ssize_t)(count * 8))
		abi_fail(file, line, "read returned %zd bytes, wanted %zu", n, count * 8);
	memcpy(words, buffer, count * 8);
}

uint64_t abi_value(const char *file, int line, int fd)
{
	uint64_t value;

	abi_read_words(file, line, fd, &value, 1);
	return value;
}

uint64_t abi_id(const char *file, int line, int fd)
{
	uint64_t id = 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		abi_fail(file, line, "PERF_EVENT_IOC_ID: %s", strerrorname_np(errno));
	return id;
}

int abi_faults(int group, bool disabled)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.disabled = disabled;
	return OPEN(&attr, 0, -1, group);
}

uint64_t abi_faults_add(int fd)
{
	uint64_t before = VALUE(fd);

	work_faults(10);
	return VALUE(fd) - before;
}
