// SPDX-License-Identifier: MIT
/*
 * The facts behind each refusal of perf_event_open(2).
 *
 * Whether the call exists is told apart from whether it is allowed by a flags argument that no
 * kernel accepts: the kernel looks at it first and says EINVAL, so any other answer comes from a
 * filter in front of it, or from a kernel that lacks the call.
 */
#include "lib/probe/system.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "abi/fatal.h"
#include "lib/readfile.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* <linux/capability.h> of Debian 12 has them all, but its <sys/> wrapper needs libcap. */
enum {
	CAPABILITY_IPC_LOCK = 14,
	CAPABILITY_SYS_PTRACE = 19,
	CAPABILITY_SYS_ADMIN = 21,
	CAPABILITY_PERFMON = 38,
};

static bool join(char path[static PATH_MAX], const char *root, const char *name)
{
	return snprintf(path, PATH_MAX, "%s%s", root, name) < PATH_MAX;
}

static bool read_text(const char *root, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];

	return join(path, root, name) && tly_read_file(path, buf, size) >= 0;
}

static long read_long(const char *root, const char *name, long absent)
{
	char path[PATH_MAX];

	return join(path, root, name) ? tly_read_setting(path, absent) : absent;
}

static bool exists(const char *root, const char *name)
{
	char path[PATH_MAX];

	return join(path, root, name) && !access(path, F_OK);
}

static uint64_t capabilities(const char *status, const char *line)
{
	const char *found = strstr(status, line);

	return found ? strtoull(found + strlen(line), NULL, 16) : 0;
}

static void read_status(struct tally_system *system, const char *root)
{
	char text[8192];
	const char *line;
	uint64_t caps, bounds;

	system->seccomp = -1;
	if (!read_text(root, "/proc/self/status", text, sizeof(text)))
		return;
	caps = capabilities(text, "\nCapEff:");
	bounds = capabilities(text, "\nCapBnd:");
	line = strstr(text, "\nSeccomp:");
	if (line)
		system->seccomp = (int)strtol(line + strlen("\nSeccomp:"), NULL, 10);
	system->cap_perfmon = caps >> CAPABILITY_PERFMON & 1;
	system->cap_sys_admin = caps >> CAPABILITY_SYS_ADMIN & 1;
	system->cap_ipc_lock = caps >> CAPABILITY_IPC_LOCK & 1;
	system->cap_sys_ptrace = caps >> CAPABILITY_SYS_PTRACE & 1;
	system->may_gain_perfmon = bounds >> CAPABILITY_PERFMON & 1;
	system->may_gain_sys_admin = bounds >> CAPABILITY_SYS_ADMIN & 1;
}

/* The initial user namespace maps every id to itself; no other one does. */
static bool in_user_namespace(const char *root)
{
	char text[16384]; /* of 340 lines at most */
	unsigned long inside, outside, count;

	if (!read_text(root, "/proc/self/uid_map", text, sizeof(text)))
		return false;
	return sscanf(text, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	       !(inside == 0 && outside == 0 && count == UINT32_MAX);
}

static void read_units(struct tally_system *system, const char *root)
{
	char path[PATH_MAX], **names;
	size_t used = 0;
	ssize_t nr;

	if (!join(path, root, "/sys/bus/event_source/devices"))
		return;
	nr = tly_read_folder(path, &names);
	if (nr < 0)
		return;
	for (ssize_t i = 0; i < nr; i++) {
		size_t length = strlen(names[i]);

		if (used + length + 2 > sizeof(system->units))
			break;
		if (used)
			system->units[used++] = ' ';
		memcpy(system->units + used, names[i], length + 1);
		used += length;
	}
	free(names);
}

static void read_pmu_name(struct tally_system *system, const char *root)
{
	static const char *const files[] = {
		"/sys/bus/event_source/devices/cpu/caps/pmu_name",
		"/sys/bus/event_source/devices/cpu_core/caps/pmu_name",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (read_text(root, files[i], system->pmu_name, sizeof(system->pmu_name)))
			return;
		system->pmu_name[0] = '\0';
	}
}

/* A line of /proc/mounts is "DEVICE POINT TYPE OPTIONS 0 0"; a space in a field is "\040". */
static void find_tracefs(struct tally_system *system, const char *root)
{
	char path[PATH_MAX], line[PATH_MAX + 256], point[256], type[32];
	FILE *mounts;

	if (!join(path, root, "/proc/mounts"))
		return;
	mounts = fopen(path, "re");
	if (!mounts)
		return;
	while (fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %255s %31s", point, type) != 2 || strcmp(type, "tracefs"))
			continue;
		strcpy(system->tracefs, point);
		/* The place of choice; debugfs shows the same once more. */
		if (!strcmp(point, "/sys/kernel/tracing"))
			break;
	}
	fclose(mounts);
	if (system->tracefs[0] && join(path, root, system->tracefs)) {
		strncat(path, "/events", sizeof(path) - strlen(path) - 1);
		system->tracefs_readable = !access(path, R_OK | X_OK);
	}
}

static const char *find_container(const char *root)
{
	static const struct {
		const char *file, *name;
	} marks[] = {
		{"/var/run/secrets/kubernetes.io", "kubernetes"},
		{"/run/.containerenv", "podman"},
		{"/.dockerenv", "docker"},
		{"/dev/.lxc-boot-id", "lxc"},
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (exists(root, marks[i].file))
			return marks[i].name;
	/* What the manager says, and what systemd within has been told by it: "lxc", ... */
	if (!read_text(root, "/run/host/container-manager", text, sizeof(text)) &&
	    !read_text(root, "/run/systemd/container", text, sizeof(text)))
		return NULL;
	if (!strncmp(text, "systemd-nspawn", 14))
		return "systemd-nspawn";
	return !strncmp(text, "lxc", 3) ? "lxc" : "container";
}

void tly_system_read(struct tally_system *system, const char *root)
{
	memset(system, 0, sizeof(*system));
	system->paranoid = (int)read_long(root, "/proc/sys/kernel/perf_event_paranoid", INT_MIN);
	system->mlock_kb = read_long(root, "/proc/sys/kernel/perf_event_mlock_kb", -1);
	system->max_sample_rate =
		read_long(root, "/proc/sys/kernel/perf_event_max_sample_rate", -1);
	system->max_stack = read_long(root, "/proc/sys/kernel/perf_event_max_stack", -1);
	system->kptr_restrict = (int)read_long(root, "/proc/sys/kernel/kptr_restrict", -1);
	read_status(system, root);
	system->user_namespace = in_user_namespace(root);
	read_units(system, root);
	read_pmu_name(system, root);
	find_tracefs(system, root);
	system->container = find_container(root);
}

/*
 * Only on KVM does a kernel have this clock. Under PVM, which is KVM without the processor's help,
 * programs' CPUID is the outer machine's, which may name another hypervisor.
 */
static bool has_kvm_clock(const char *root)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/"
				   "available_clocksource";
	char names[256];

	return read_text(root, path, names, sizeof(names)) && strstr(names, "kvm-clock");
}

const char *tly_hypervisor(const char *signature, const char *root)
{
	static const struct {
		char signature[13];
		const char *name;
	} hypervisors[] = {
		{"KVMKVMKVM", "kvm"},		{"Microsoft Hv", "hyper-v"},
		{"VMwareVMware", "vmware"},	{"XenVMMXenVMM", "xen"},
		{"TCGTCGTCGTCG", "qemu"},	{"bhyve bhyve ", "bhyve"},
		{"VBoxVBoxVBox", "virtualbox"},
	};

	if (has_kvm_clock(root))
		return "kvm";
	for (size_t i = 0; i < ARRAY_SIZE(hypervisors); i++)
		if (!strcmp(signature, hypervisors[i].signature))
			return hypervisors[i].name;
	return "unknown hypervisor";
}

const char *tly_system_virtualization(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned int eax, ebx, ecx, edx;
	char signature[13] = "";

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 31))
		return NULL;
	__cpuid(0x40000000, eax, ebx, ecx, edx);
	memcpy(signature, &ebx, 4);
	memcpy(signature + 4, &ecx, 4);
	memcpy(signature + 8, &edx, 4);
	return tly_hypervisor(signature, "");
#else
	return NULL;
#endif
}

static int perf_event_open(void *attr, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, flags);
}

static void probe_syscall(struct tally_system *system)
{
	int fd = -1;

	errno = EPERM;
	if (!fatal_open())
		fd = perf_event_open(NULL, ~0ul);

	/* A descriptor would mean that some emulation accepts anything. */
	if (fd >= 0)
		close(fd);
	system->has_syscall = fd >= 0 || errno == EINVAL || errno == EFAULT;
	system->syscall_error = system->has_syscall ? 0 : -errno;
}

/* E2BIG writes the kernel's own size back (ABI: attr.size). */
static uint32_t probe_attr_size(void)
{
	union {
		struct perf_event_attr attr;
		char bytes[4096];
	} big = {.attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(big)}};
	int fd;

	big.bytes[sizeof(big) - 1] = 1;
	fd = perf_event_open(&big, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == E2BIG ? big.attr.size : 0;
}

/* Some virtual machines open the event and never count: only a number above zero convinces. */
static bool probe_pmu(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = PERF_ATTR_SIZE_VER0,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	uint64_t count = 0;
	bool counts;
	int fd;

	fd = perf_event_open(&attr, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	counts = read(fd, &count, sizeof(count)) == sizeof(count) && count > 0;
	close(fd);
	return counts;
}

void tly_system_facts(struct tally_system *system)
{
	tly_system_read(system, "");
	system->virtualization = tly_system_virtualization();
	probe_syscall(system);
}

void tally_system_probe(struct tally_system *system)
{
	tly_system_facts(system);
	if (!system->has_syscall)
		return;
	system->attr_size = probe_attr_size();
	system->has_pmu = probe_pmu();
}

bool tally_system_privileged(const struct tally_system *system)
{
	return (system->cap_perfmon || system->cap_sys_admin) && !system->user_namespace;
}

size_t tly_ring_budget(const struct tally_system *system, long cpus, size_t memlock)
{
	size_t budget;

	if (memlock == SIZE_MAX || system->paranoid == -1 ||
	    (system->cap_ipc_lock && !system->user_namespace))
		return SIZE_MAX;
	if (system->mlock_kb < 0 || cpus < 1 ||
	    __builtin_mul_overflow((size_t)system->mlock_kb, 1024, &budget) ||
	    __builtin_mul_overflow(budget, (size_t)cpus, &budget))
		return memlock;
	if (__builtin_add_overflow(budget, memlock, &budget))
		return SIZE_MAX;
	return budget;
}

size_t tally_system_ring_budget(void)
{
	struct tally_system system;
	struct rlimit limit;
	size_t memlock = 0;

	tly_system_read(&system, "");
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		memlock = limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : limit.rlim_cur;
	return tly_ring_budget(&system, sysconf(_SC_NPROCESSORS_ONLN), memlock);
}
