// SPDX-License-Identifier: MIT
#include "system.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

bool abi_may_change_sysctls;

int abi_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	int result = -1;

	if (!file)
		return -1;
	if (fgets(line, (int)size, file)) {
		line[strcspn(line, "\n")] = '\0';
		result = 0;
	}
	fclose(file);
	return result;
}

long abi_sysctl(const char *name)
{
	char path[128], line[64];

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if (abi_line(path, line, sizeof(line)))
		CANNOT("no readable %s", path);
	return strtol(line, NULL, 10);
}

int abi_paranoid(void)
{
	return (int)abi_sysctl("perf_event_paranoid");
}

void abi_need_level(int least, int most)
{
	int level = abi_paranoid();

	if (level < least || level > most)
		CANNOT("perf_event_paranoid is %d, wants %d to %d", level, least, most);
}

static uint64_t capabilities(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long set = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &set) == 1)
			break;
	if (file)
		fclose(file);
	return set;
}

bool abi_privileged(void)
{
	return capabilities() & (1ULL << CAP_SYS_ADMIN | 1ULL << 38 /* CAP_PERFMON */);
}

void abi_need_root(void)
{
	if (geteuid() != 0 || !(capabilities() & 1ULL << CAP_SYS_ADMIN))
		NOT_ALLOWED("needs root");
}

void abi_need_events(void)
{
	if (!abi_privileged() && abi_paranoid() > 2)
		NOT_ALLOWED("needs CAP_PERFMON or perf_event_paranoid below 3");
}

void abi_need_kernel_mode(void)
{
	if (!abi_privileged() && abi_paranoid() > 1)
		NOT_ALLOWED("needs CAP_PERFMON or perf_event_paranoid below 2");
}

/*
 * An id that no real user has: the locked-memory account of a user is shared by all that runs
 * under it, and cases ask for exact limits.
 */
#define NOBODY 48123

void abi_drop_rights(void)
{
	if (geteuid() == 0) {
		CHECK_OK(setgroups(0, NULL));
		CHECK_OK(setresgid(NOBODY, NOBODY, NOBODY));
		CHECK_OK(setresuid(NOBODY, NOBODY, NOBODY));
		/* the change of user made /proc/self unreadable and exec of ourselves refused */
		CHECK_OK(prctl(PR_SET_DUMPABLE, 1));
	}
	if (abi_privileged())
		CANNOT("this user keeps its capabilities");
}

void abi_keep_recorders_out(void)
{
	/* The lock of alone() in tests/e2e/tap.py; the end of the case's process gives it back. */
	int lock = open("/sys/bus/event_source", O_RDONLY | O_CLOEXEC);

	if (lock >= 0)
		CHECK_OK(flock(lock, LOCK_EX));
}

int abi_first_cpu(void)
{
	cpu_set_t set;

	CHECK_OK(sched_getaffinity(0, sizeof(set), &set));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	FAIL("no processor to run on");
}

void abi_need_two_cpus(int cpus[2])
{
	cpu_set_t set;
	int found = 0;

	CHECK_OK(sched_getaffinity(0, sizeof(set), &set));
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[found++] = cpu;
	if (found < 2)
		CANNOT("one processor only");
}

void abi_pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK_OK(sched_setaffinity(tid, sizeof(set), &set));
}

int abi_pmu_type(const char *pmu)
{
	char path[128], line[32];

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	return abi_line(path, line, sizeof(line)) ? -1 : (int)strtol(line, NULL, 10);
}

/* ---- trace points ---- */

const char *abi_tracing(void)
{
	static const char *const usual[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	static const char private_place[] = "/tmp";
	static const char *found;

	if (found)
		return found;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/events/enable", usual[i]);
		if (access(path, R_OK) == 0)
			return found = usual[i];
	}
	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0)
		NOT_ALLOWED("cannot read the tracing directory");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tracefs", private_place, "tracefs", 0, NULL) != 0)
		CANNOT("no tracefs");
	return found = private_place;
}

static FILE *tracepoint_file(const char *system_and_name, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/events/%s/%s", abi_tracing(), system_and_name, file);
	return fopen(path, "re");
}

void abi_need_tracepoints(void)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_TRACEPOINT, 0);

	/* There is none of that number, which who has others says by EINVAL. */
	if (perf_open(&attr, 0, -1, -1, 0) == -1 && errno == ENOENT)
		CANNOT("no events of trace points");
}

uint64_t abi_tracepoint(const char *system_and_name)
{
	FILE *file = tracepoint_file(system_and_name, "id");
	unsigned long long id = 0;

	if (!file)
		CANNOT("no trace point %s", system_and_name);
	abi_need_tracepoints();
	if (fscanf(file, "%llu", &id) != 1)
		FAIL("the id of trace point %s is no number", system_and_name);
	fclose(file);
	return id;
}

unsigned int abi_tracepoint_offset(const char *system_and_name, const char *field)
{
	FILE *file = tracepoint_file(system_and_name, "format");
	char line[256], wanted[64];
	unsigned int offset;

	if (!file)
		CANNOT("no trace point %s", system_and_name);
	snprintf(wanted, sizeof(wanted), " %s;", field);
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, "offset:");

		if (strstr(line, wanted) && at && sscanf(at, "offset:%u", &offset) == 1) {
			fclose(file);
			return offset;
		}
	}
	fclose(file);
	CANNOT("trace point %s has no field %s", system_and_name, field);
}

/* ---- processes ---- */

pid_t abi_spawn(const char *file, int line, void (*work)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid < 0)
		abi_fail(file, line, "fork: %s", strerrorname_np(errno));
	if (pid == 0) {
		work(arg);
		_exit(0);
	}
	return pid;
}

void abi_join(const char *file, int line, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		abi_fail(file, line, "waitpid: %s", strerrorname_np(errno));
	if (WIFSIGNALED(status))
		abi_fail(file, line, "the other process died by SIG%s",
			 sigabbrev_np(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		abi_fail(file, line, "the other process ended with %d", WEXITSTATUS(status));
}

struct gate abi_gate(void)
{
	struct gate gate;

	CHECK_OK(pipe2(gate.fd, O_CLOEXEC));
	return gate;
}

void abi_pass(struct gate *gate)
{
	CHECK_EQ(write(gate->fd[1], "", 1), 1);
}

void abi_wait(struct gate *gate)
{
	char byte;
	ssize_t n;

	do
		n = read(gate->fd[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	CHECK_EQ(n, 1);
}

void abi_exec(const char *work, unsigned int count)
{
	char path[4096], number[16];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK_CMP(n, >, 0);
	path[n] = '\0';
	snprintf(number, sizeof(number), "%u", count);
	execl(path, path, ABI_AFTER_EXEC, work, number, (char *)NULL);
	FAIL("exec of %s: %s", path, strerrorname_np(errno));
}

static int read_descriptor(int fd)
{
	uint64_t word;

	return read(fd, &word, sizeof(word)) == sizeof(word) ? 0 : 5;
}

static int enable_created(int fd)
{
	uint64_t faults;

	if (prctl(PR_TASK_PERF_EVENTS_ENABLE))
		return 6;
	work_faults(30);
	return read(fd, &faults, sizeof(faults)) == sizeof(faults) && faults >= 30 ? 0 : 7;
}

int abi_after_exec(const char *work, unsigned int count)
{
	if (strcmp(work, "faults") == 0)
		work_faults(count);
	else if (strcmp(work, "calls") == 0)
		work_calls(count);
	else if (strcmp(work, "read") == 0)
		return read_descriptor((int)count);
	else if (strcmp(work, "enable") == 0)
		return enable_created((int)count);
	else if (strcmp(work, "nothing") != 0)
		return 3;
	return 0;
}
