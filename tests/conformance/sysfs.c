// SPDX-License-Identifier: MIT
/* /proc/sys/kernel/perf_event_* and /sys/bus/event_source/devices. */
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conformance.h"
#include "system.h"
#include "workload.h"

/* ---- sysctls ---- */

static const char paranoid_file[] = "/proc/sys/kernel/perf_event_paranoid";

static bool write_level(int level)
{
	FILE *file = fopen(paranoid_file, "we");
	bool ok = file && fprintf(file, "%d\n", level) > 0;

	if (file && fclose(file))
		ok = false;
	return ok;
}

static void restore_level(void *arg)
{
	write_level(*(int *)arg);
}

/* The level, set for this case when the runner may, else only where it is that already. */
static void need_level(int level)
{
	static int before;

	before = abi_paranoid();
	if (before == level)
		return;
	if (!abi_may_change_sysctls)
		CANNOT("perf_event_paranoid is %d, wants %d; --change-sysctls sets it for the case",
		       before, level);
	if (!write_level(level))
		NOT_ALLOWED("cannot write %s", paranoid_file);
	abi_at_end(restore_level, &before);
}

/* Opens this as an ordinary user, in a process of its own, so that ours can restore the level. */
struct attempt {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	int error; /* 0: opens */
};

static void try_it(void *arg)
{
	const struct attempt *attempt = arg;

	abi_drop_rights();
	if (attempt->error)
		CHECK_REFUSED(&attempt->attr, attempt->pid, attempt->cpu, -1, 0, attempt->error);
	else
		CHECK_OK(perf_open(&attempt->attr, attempt->pid, attempt->cpu, -1, 0));
}

static void as_ordinary_user(struct perf_event_attr attr, pid_t pid, int cpu, int error)
{
	struct attempt attempt = {attr, pid, cpu, error};

	JOIN(SPAWN(try_it, &attempt));
}

static struct perf_event_attr with_kernel(void)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.exclude_kernel = 0;
	return attr;
}

ABI_CASE("sysctl.paranoid", "the file is there and holds an integer: the sign of the interface")
{
	char line[32], *end;

	CHECK_EQ(abi_line(paranoid_file, line, sizeof(line)), 0);
	strtol(line, &end, 10);
	CHECK(end != line && *end == '\0');
}

static const struct place {
	struct abi_row about;
	const char *folder, *path;
} places[] = {
	{{"sysctl.paranoid", "the same from the folder that it is in"},
	 "/proc/sys/kernel",
	 "perf_event_paranoid"},
	{{"sysctl.paranoid", "from a folder above"}, "/proc/sys", "kernel/perf_event_paranoid"},
	{{"sysctl.paranoid", "from the root"}, "/", "proc/sys/kernel/perf_event_paranoid"},
	{{"sysctl.paranoid", "from a folder beside"},
	 "/proc/sys/fs",
	 "../kernel/./perf_event_paranoid"},
};

ABI_TABLE(places)
{
	char line[32], same[32];

	CHECK_EQ(abi_line(paranoid_file, line, sizeof(line)), 0);
	CHECK_OK(chdir(row->folder));
	CHECK_EQ(abi_line(row->path, same, sizeof(same)), 0);
	CHECK_EQ(strcmp(line, same), 0);
}

ABI_CASE("sysctl.paranoid-2", "user mode of one's own tasks only")
{
	struct perf_event_attr user = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	need_level(2);
	as_ordinary_user(user, 0, -1, 0);
	as_ordinary_user(with_kernel(), 0, -1, EACCES);
	as_ordinary_user(user, -1, abi_first_cpu(), EACCES);
}

ABI_CASE("sysctl.paranoid-1", "kernel mode of one's own tasks too, no whole processor")
{
	need_level(1);
	as_ordinary_user(with_kernel(), 0, -1, 0);
	as_ordinary_user(with_kernel(), -1, abi_first_cpu(), EACCES);
}

ABI_CASE("sysctl.paranoid-0", "whole processors too, no raw data of trace points")
{
	struct perf_event_attr raw =
		abi_attr(PERF_TYPE_TRACEPOINT, abi_tracepoint("sched/sched_switch"));

	need_level(0);
	as_ordinary_user(with_kernel(), -1, abi_first_cpu(), 0);
	raw.exclude_kernel = 0;
	raw.sample_period = 1;
	raw.sample_type = PERF_SAMPLE_RAW;
	as_ordinary_user(raw, 0, -1, EPERM);
}

ABI_CASE("sysctl.paranoid-minus1", "no restriction")
{
	struct perf_event_attr raw =
		abi_attr(PERF_TYPE_TRACEPOINT, abi_tracepoint("sched/sched_switch"));

	need_level(-1);
	as_ordinary_user(with_kernel(), -1, abi_first_cpu(), 0);
	raw.exclude_kernel = 0;
	raw.sample_period = 1;
	raw.sample_type = PERF_SAMPLE_RAW;
	as_ordinary_user(raw, -1, abi_first_cpu(), 0);
}

static void keep_perfmon_only(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
	CHECK_OK(syscall(SYS_setresuid, 48124, 48124, 48124));
	data[1].permitted = data[1].effective = 1U << (38 /* CAP_PERFMON */ - 32);
	CHECK_OK(syscall(SYS_capset, &header, data));
}

ABI_CASE("sysctl.paranoid-bypass", "CAP_PERFMON alone lifts the restrictions")
{
	abi_need_root();
	keep_perfmon_only();
	CHECK_OK(perf_open(&(struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
						     .size = sizeof(struct perf_event_attr)},
			   -1, abi_first_cpu(), -1, 0));
}

ABI_CASE("sysctl.paranoid-bypass", "capabilities in a user name space of one's own lift nothing")
{
	struct perf_event_attr attr = with_kernel();

	if (abi_paranoid() < 2)
		CANNOT("perf_event_paranoid is %d, which restricts too little", abi_paranoid());
	if (unshare(CLONE_NEWUSER))
		NOT_ALLOWED("unshare(CLONE_NEWUSER): %s", strerror(errno));
	CHECK_REFUSED(&attr, -1, abi_first_cpu(), -1, 0, EACCES);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}

/* Process 1 need not be there: what a PID name space or a run does not have is ESRCH. */
ABI_CASE("arg.pid-permission", "CAP_PERFMON alone opens on another user's task, and refuses none")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	abi_need_root();
	keep_perfmon_only();
	OPEN(&attr, getppid(), -1, -1);
	if (perf_open(&attr, 1, -1, -1, 0) < 0)
		CHECK_EQ(errno, ESRCH);
}

static const struct positive {
	struct abi_row about;
	const char *name;
} positives[] = {
	{{"sysctl.max_sample_rate", "a positive number"}, "perf_event_max_sample_rate"},
	{{"sysctl.max_stack", "a positive number"}, "perf_event_max_stack"},
	{{"sysctl.mlock_kb", "a positive number"}, "perf_event_mlock_kb"},
};

ABI_TABLE(positives)
{
	CHECK_CMP(abi_sysctl(row->name), >, 0);
}

/* ---- units in sysfs ---- */

static const char devices[] = "/sys/bus/event_source/devices";

static DIR *open_units(void)
{
	DIR *units = opendir(devices);

	if (!units)
		CANNOT("no %s", devices);
	return units;
}

/* The next one; NULL, and @units is closed, behind the last. */
static const char *next_unit(DIR *units)
{
	const struct dirent *unit;

	do
		unit = readdir(units);
	while (unit && unit->d_name[0] == '.');
	if (!unit)
		closedir(units);
	return unit ? unit->d_name : NULL;
}

/* Calls visit(directory, file name, content's first line) for each file of each unit's `part`. */
typedef void visit_fn(const char *unit, const char *file, const char *line);

static unsigned int each_file(const char *part, visit_fn *visit)
{
	DIR *units = open_units();
	unsigned int count = 0;
	const char *unit;

	while ((unit = next_unit(units))) {
		char path[600], line[4096];
		struct dirent *file;
		DIR *files;

		snprintf(path, sizeof(path), "%s/%s/%s", devices, unit, part);
		files = opendir(path);
		while (files && (file = readdir(files))) {
			char whole[900];

			snprintf(whole, sizeof(whole), "%s/%s", path, file->d_name);
			if (file->d_name[0] == '.' || abi_line(whole, line, sizeof(line)))
				continue;
			visit(unit, file->d_name, line);
			count++;
		}
		if (files)
			closedir(files);
	}
	return count;
}

static const struct fixed_unit {
	struct abi_row about;
	const char *unit;
	int type;
} fixed_units[] = {
	{{"sysfs.devices sysfs.type type.software", "software is 1"}, "software", 1},
	{{"sysfs.devices sysfs.type type.tracepoint", "tracepoint is 2"}, "tracepoint", 2},
	{{"sysfs.devices sysfs.type type.breakpoint", "breakpoint is 5"}, "breakpoint", 5},
};

ABI_TABLE(fixed_units)
{
	int type = abi_pmu_type(row->unit);

	if (type < 0 && access(devices, F_OK))
		CANNOT("no %s", devices);
	if (type < 0)
		CANNOT("no %s unit in sysfs", row->unit);
	CHECK_EQ(type, row->type);
}

ABI_CASE("sysfs.type sysfs.devices",
	 "each unit has a number of its own; dynamic ones begin at 6, cpu is 4")
{
	DIR *units = open_units();
	bool seen[1024] = {false};
	const char *unit;

	while ((unit = next_unit(units))) {
		const int type = abi_pmu_type(unit);

		CHECK_CMP(type, >=, 0);
		CHECK_CMP(type, <, 1024);
		CHECK(!seen[type]);
		seen[type] = true;
		if (strcmp(unit, "cpu") == 0)
			CHECK_EQ(type, PERF_TYPE_RAW);
	}
}

ABI_CASE("sysfs.devices", "a unit is a link on the bus, and a folder by each name that means one")
{
	static const char *const names[] = {"/",	 "/.",	       "/./.",
					    "/power/..", "/events/..", "/format/.."};
	DIR *units = open_units();
	const char *unit;

	while ((unit = next_unit(units))) {
		char path[600];
		struct stat file;

		snprintf(path, sizeof(path), "%s/%s", devices, unit);
		CHECK_OK(lstat(path, &file));
		CHECK(S_ISLNK(file.st_mode));
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			snprintf(path, sizeof(path), "%s/%s%s", devices, unit, names[i]);
			/* Not every unit has all folders. */
			if (lstat(path, &file))
				CHECK_EQ(errno, ENOENT);
			else
				CHECK(S_ISDIR(file.st_mode));
		}
	}
}

static int entries_of(const char *folder)
{
	DIR *open = opendir(folder);
	int count = 0;

	CHECK(open);
	while (readdir(open))
		count++;
	closedir(open);
	return count;
}

ABI_CASE("sysfs.devices sysfs.type", "the same from the folder of the units and from those above")
{
	static const char *const folders[] = {"", "/sys", "/sys/bus", "/sys/bus/event_source",
					      "/sys/bus/event_source/devices"};
	DIR *units = opendir(devices);
	struct dirent *unit;
	int count;

	if (!units)
		CANNOT("no %s", devices);
	count = entries_of(devices);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		const char *rest = devices + strlen(folders[i]);

		CHECK_OK(chdir(*folders[i] ? folders[i] : "/"));
		rest = *rest ? rest + 1 : ".";
		CHECK_EQ(entries_of(rest), count);
		for (rewinddir(units); (unit = readdir(units));) {
			char path[600], line[32];

			if (unit->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s/type", rest, unit->d_name);
			CHECK_EQ(abi_line(path, line, sizeof(line)), 0);
			CHECK_EQ(atoi(line), abi_pmu_type(unit->d_name));
		}
	}
	closedir(units);
}

/* "config1:1,6-10,44": the word, then the bits in order. Fails unless all of it is that. */
static void parse_format(const char *line, unsigned int *word, unsigned char bits[64],
			 unsigned int *count)
{
	const char *at = strchr(line, ':');

	CHECK(at && strncmp(line, "config", 6) == 0);
	*word = at == line + 6 ? 0 : (unsigned int)(line[6] - '0');
	CHECK(at == line + 6 || (at == line + 7 && *word >= 1 && *word <= 9));
	*count = 0;
	do {
		unsigned int first, last;
		int taken = 0;

		at++;
		CHECK_EQ(sscanf(at, "%u%n", &first, &taken), 1);
		at += taken;
		last = first;
		if (*at == '-') {
			CHECK_EQ(sscanf(at + 1, "%u%n", &last, &taken), 1);
			at += 1 + taken;
		}
		CHECK_CMP(first, <=, last);
		CHECK_CMP(last, <, 64);
		for (unsigned int bit = first; bit <= last && *count < 64; bit++)
			bits[(*count)++] = (unsigned char)bit;
	} while (*at == ',');
	CHECK_EQ(*at, '\0');
}

static uint64_t scatter(uint64_t value, const unsigned char *bits, unsigned int count)
{
	uint64_t out = 0;

	for (unsigned int i = 0; i < count; i++)
		out |= (value >> i & 1) << bits[i];
	return out;
}

static void visit_format(const char *unit, const char *file, const char *line)
{
	unsigned char bits[64];
	unsigned int word, count;

	(void)unit, (void)file;
	parse_format(line, &word, bits, &count);
	CHECK_CMP(count, >, 0);
}

ABI_CASE("sysfs.format", "each file of each unit is a word's name and bits of it")
{
	if (!each_file("format", visit_format))
		CANNOT("no unit has formats");
}

static void visit_event(const char *unit, const char *file, const char *line)
{
	char terms[4096], *rest = terms;

	if (strchr(file, '.')) /* .scale and .unit are for the reader of counts */
		return;
	snprintf(terms, sizeof(terms), "%s", line);
	for (char *term; (term = strsep(&rest, ","));) {
		char *value = strchr(term, '='), path[600], format[256], *end;
		unsigned char bits[64];
		unsigned int word, count;

		if (value) {
			*value++ = '\0';
			if (*value != '?') { /* left to the user */
				strtoull(value, &end, 0);
				CHECK(end != value && *end == '\0');
			}
		}
		if (strcmp(term, "config") == 0 || strcmp(term, "config1") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/format/%s", devices, unit, term);
		if (abi_line(path, format, sizeof(format)))
			FAIL("%s/events/%s uses %s, which the unit has no format for", unit, file,
			     term);
		parse_format(format, &word, bits, &count);
	}
}

ABI_CASE("sysfs.events sysfs.events-resolve",
	 "each event of each unit is made of the unit's own formats")
{
	if (!each_file("events", visit_event))
		CANNOT("no unit has events");
}

ABI_CASE("sysfs.format-scatter sysfs.events-resolve sysfs.events",
	 "an event resolved through its format opens and counts")
{
	char path[600], line[256], format[256];
	unsigned int word, count;
	unsigned char bits[64];
	struct perf_event_attr attr;
	unsigned long long value;
	int type = abi_pmu_type("msr"), fd;

	if (type < 0)
		CANNOT("no msr unit");
	snprintf(path, sizeof(path), "%s/msr/events/tsc", devices);
	CHECK_EQ(abi_line(path, line, sizeof(line)), 0);
	CHECK_EQ(sscanf(line, "event=%llx", &value), 1);
	snprintf(path, sizeof(path), "%s/msr/format/event", devices);
	CHECK_EQ(abi_line(path, format, sizeof(format)), 0);
	parse_format(format, &word, bits, &count);
	CHECK_EQ(word, 0);
	CHECK_EQ(scatter(0x25, bits, count), 0x25); /* config:0-63 */
	abi_need_kernel_mode();
	attr = abi_attr((uint32_t)type, scatter(value, bits, count));
	attr.exclude_kernel = attr.exclude_hv = 0;
	fd = OPEN_SELF(&attr);
	START(fd);
	work_spin(100000);
	CHECK_CMP(VALUE(fd), >, 0);
}

ABI_CASE("sysfs.retprobe config.probe-retprobe", "bit 0 of config")
{
	static const char *const units[] = {"uprobe", "kprobe"};
	unsigned int found = 0;

	for (int i = 0; i < 2; i++) {
		char path[600], line[64];

		snprintf(path, sizeof(path), "%s/%s/format/retprobe", devices, units[i]);
		if (abi_line(path, line, sizeof(line)))
			continue;
		CHECK_EQ(strcmp(line, "config:0"), 0);
		found++;
	}
	if (!found)
		CANNOT("no unit for probes");
}

ABI_CASE("sysfs.rdpmc", "0, 1 or 2")
{
	char path[600], line[32];

	snprintf(path, sizeof(path), "%s/cpu/rdpmc", devices);
	if (abi_line(path, line, sizeof(line)))
		CANNOT("no cpu unit in sysfs");
	CHECK(strlen(line) == 1 && line[0] >= '0' && line[0] <= '2');
}

ABI_CASE("sysfs.uevent", "each unit has the file")
{
	DIR *units = open_units();
	const char *unit;

	while ((unit = next_unit(units))) {
		char path[600];

		snprintf(path, sizeof(path), "%s/%s/uevent", devices, unit);
		CHECK_OK(access(path, F_OK));
	}
}

ABI_CASE("sysfs.cpumask", "processor numbers, on each of which the unit's events open")
{
	DIR *units = open_units();
	unsigned int found = 0;
	const char *unit;

	while ((unit = next_unit(units))) {
		char path[600], line[1024];
		int cpu;

		snprintf(path, sizeof(path), "%s/%s/cpumask", devices, unit);
		if (abi_line(path, line, sizeof(line)) || !line[0])
			continue;
		CHECK_EQ(sscanf(line, "%d", &cpu), 1);
		CHECK_EQ(strspn(line, "0123456789,-"), strlen(line));
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
		CHECK_OK(access(path, F_OK));
		found++;
	}
	if (!found)
		CANNOT("no unit is shared by processors");
}

ABI_CASE("sysfs.tracepoint-id", "the id file of a trace point: a positive number")
{
	CHECK_CMP(abi_tracepoint("sched/sched_switch"), >, 0);
	CHECK(abi_tracepoint("sched/sched_switch") != abi_tracepoint("sched/sched_wakeup"));
}
