// SPDX-License-Identifier: MIT
/* The uprobe and kprobe units. */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static uint32_t need_unit(const char *unit)
{
	int type = abi_pmu_type(unit);

	if (type < 0) {
		struct perf_event_attr attr = abi_attr(UINT32_MAX, 0);

		CHECK_REFUSED(&attr, 0, -1, -1, 0, ENOENT); /* and no number stands for it */
		CANNOT("no %s unit", unit);
	}
	return (uint32_t)type;
}

struct place {
	uintptr_t address;
	uint64_t offset;
};

/* From an address of the main program to the offset in its file. */
static int to_file_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *place = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && place->address >= start &&
		    place->address < start + segment->p_filesz)
			place->offset = place->address - start + segment->p_offset;
	}
	return 1;
}

static char own_path[4096];

/* At the entry of work_called(), in this program's file. */
static struct perf_event_attr own_uprobe(bool at_return)
{
	struct perf_event_attr attr = abi_attr(need_unit("uprobe"), at_return);
	struct place place = {.address = (uintptr_t)work_called};
	char *path = realpath("/proc/self/exe", NULL);

	CHECK(path);
	snprintf(own_path, sizeof(own_path), "%s", path);
	free(path);
	dl_iterate_phdr(to_file_offset, &place);
	CHECK(place.offset != 0);
	attr.uprobe_path = (uintptr_t)own_path;
	attr.probe_offset = place.offset;
	return attr;
}

ABI_CASE("probe.count probe.uprobe_path type.uprobe probe.union",
	 "each execution of the probed instruction counts")
{
	struct perf_event_attr attr = own_uprobe(false);
	int fd;

	NEED_RIGHTS();
	CHECK_EQ(attr.config1, attr.uprobe_path);
	CHECK_EQ(attr.config2, attr.probe_offset);
	fd = OPEN_SELF(&attr);
	work_calls(3);
	CHECK_EQ(VALUE(fd), 0);
	START(fd);
	work_calls(5);
	STOP(fd);
	CHECK_EQ(VALUE(fd), 5);
	work_calls(1);
	CHECK_EQ(VALUE(fd), 5);
}

ABI_CASE("probe.retprobe config.probe-retprobe", "bit 0 of config: once for each return")
{
	struct perf_event_attr attr = own_uprobe(true);
	int fd;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	work_calls(4);
	work_call_chain();
	STOP(fd);
	CHECK_EQ(VALUE(fd), 5);
}

static void call_9(void *arg)
{
	(void)arg;
	work_calls(9);
}

ABI_CASE("probe.count", "other tasks that run the same code do not count")
{
	struct perf_event_attr attr = own_uprobe(false);
	int fd;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	JOIN(SPAWN(call_9, NULL));
	CHECK_EQ(VALUE(fd), 0);
	work_calls(2);
	CHECK_EQ(VALUE(fd), 2);
}

ABI_CASE("probe.lifetime type.uprobe",
	 "it counts until the last descriptor is closed, for nobody else")
{
	struct perf_event_attr attr = own_uprobe(false);
	int fd, copy, later;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	work_calls(2);
	copy = (int)CHECK_OK(dup(fd));
	CHECK_OK(close(fd));
	work_calls(1);
	CHECK_EQ(VALUE(copy), 3);
	later = OPEN_SELF(&attr);
	START(later);
	CHECK_OK(close(copy));
	work_calls(2);
	CHECK_EQ(VALUE(later), 2);
	CHECK_OK(close(later));
	work_calls(2);
}

/* How a probe is met is the kernel's business; where it is by other code, the old one comes
 * back. */
ABI_CASE("probe.lifetime type.uprobe", "the last close leaves the code as it was")
{
	struct perf_event_attr attr = own_uprobe(false);
	unsigned char before[8], during[8], after[8];
	int fd;

	NEED_RIGHTS();
	memcpy(before, (const void *)(uintptr_t)work_called, sizeof(before));
	fd = OPEN_SELF(&attr);
	START(fd);
	work_calls(2);
	memcpy(during, (const void *)(uintptr_t)work_called, sizeof(during));
	CHECK_EQ(VALUE(fd), 2);
	CHECK_OK(close(fd));
	work_calls(2);
	if (memcmp(before, during, sizeof(before)) == 0)
		CANNOT("no code is changed");
	for (int i = 0; i < 200; i++) { /* it is taken out a little later */
		memcpy(after, (const void *)(uintptr_t)work_called, sizeof(after));
		if (memcmp(before, after, sizeof(before)) == 0)
			return;
		usleep(10000);
	}
	FAIL("the probe is still in the code 2 s after the close");
}

static const struct bad_path {
	struct abi_row about;
	const char *path;
	uint64_t offset;
	int error;
} bad_paths[] = {
	{{"probe.uprobe_path", "a missing file: ENOENT"}, "/nonexistent/file", 0x1000, ENOENT},
	{{"probe.uprobe_path", "an empty path: EINVAL"}, "", 0x1000, EINVAL},
	{{"probe.uprobe_path", "a directory: EINVAL"}, "/", 0x1000, EINVAL},
	{{"probe.uprobe_path", "an offset outside the file: EINVAL"}, own_path, 1ULL << 40, EINVAL},
	{{"probe.uprobe-null-path", "no path: EINVAL"}, NULL, 0x1000, EINVAL},
	{{"probe.uprobe_path", "a bad pointer: EFAULT"}, (const char *)8, 0x1000, EFAULT},
};

ABI_TABLE(bad_paths)
{
	struct perf_event_attr attr = own_uprobe(false);

	NEED_RIGHTS();
	attr.uprobe_path = (uintptr_t)row->path;
	attr.probe_offset = row->offset;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, row->error);
}

ABI_CASE("probe.privilege", "refused to an ordinary user with EACCES")
{
	struct perf_event_attr attr = own_uprobe(false);

	abi_need_level(-1, 2); /* above it is no event that he may have */
	abi_drop_rights();
	/* Which is refused with the same number. */
	if (access(own_path, R_OK) < 0)
		CANNOT("this user may not read the program: it is in a folder of somebody else's");
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}

/*
 * Refused with EINTR by the manual. Kernels of this age let both share the probe; whoever does
 * refuse has to use that number.
 */
ABI_CASE("probe.ftrace-conflict errno.eintr",
	 "a probe that the tracing directory made as well: EINTR, or both count")
{
	struct perf_event_attr attr = own_uprobe(false), traced;
	uint64_t ours = 0, theirs = 0;
	char path[256], definition[4200];
	unsigned long long id = 0;
	FILE *file;
	int control, fd, other, refused;

	abi_need_root();
	snprintf(path, sizeof(path), "%s/uprobe_events", abi_tracing());
	control = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (control < 0)
		CANNOT("no uprobe_events in the tracing directory");
	snprintf(definition, sizeof(definition), "p:abi%d/called %s:%#llx\n", (int)getpid(),
		 own_path, (unsigned long long)attr.probe_offset);
	CHECK_OK(write(control, definition, strlen(definition)));
	snprintf(path, sizeof(path), "%s/events/abi%d/called/id", abi_tracing(), (int)getpid());
	file = fopen(path, "re");
	CHECK(file && fscanf(file, "%llu", &id) == 1);
	fclose(file);

	traced = abi_attr(PERF_TYPE_TRACEPOINT, id);
	other = perf_open(&traced, 0, -1, -1, 0);
	fd = perf_open(&attr, 0, -1, -1, 0);
	refused = fd < 0 || other < 0 ? errno : 0;
	if (!refused) {
		START(fd);
		START(other);
		work_calls(5);
		STOP(fd);
		STOP(other);
		ours = VALUE(fd);
		theirs = VALUE(other);
	}
	close(fd);
	close(other);
	/* Before anything is judged: nobody else would take it away. */
	snprintf(definition, sizeof(definition), "-:abi%d/called\n", (int)getpid());
	for (int i = 0; i < 200 && write(control, definition, strlen(definition)) < 0; i++)
		usleep(10000);
	close(control);
	if (refused) {
		CHECK_EQ(refused, EINTR);
	} else {
		CHECK_EQ(ours, 5);
		CHECK_EQ(theirs, 5);
	}
}

/* ---- kprobes ---- */

/* A function that each call of getppid() runs, under the name of this machine. */
static const char kernel_function[] = "__x64_sys_getppid";

static void getppid_5(void)
{
	for (int i = 0; i < 5; i++)
		getppid();
}

static struct perf_event_attr own_kprobe(bool at_return)
{
	struct perf_event_attr attr = abi_attr(need_unit("kprobe"), at_return);

	attr.exclude_kernel = 0;
	attr.kprobe_func = (uintptr_t)kernel_function;
	return attr;
}

ABI_CASE("probe.kprobe_func type.kprobe probe.union",
	 "each call of the function counts; an unknown symbol does not open")
{
	struct perf_event_attr attr = own_kprobe(false);
	int fd;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	getppid_5();
	STOP(fd);
	CHECK_EQ(VALUE(fd), 5);
	attr.kprobe_func = (uintptr_t) "abi_no_such_function";
	CHECK_EQ(perf_open(&attr, 0, -1, -1, 0), -1);
	CHECK(errno == ENOENT || errno == EINVAL || errno == EADDRNOTAVAIL);
}

ABI_CASE("probe.retprobe config.probe-retprobe", "the kernel's: once for each return")
{
	struct perf_event_attr attr = own_kprobe(true);
	int fd;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	getppid_5();
	STOP(fd);
	CHECK_EQ(VALUE(fd), 5);
}

ABI_CASE("probe.kprobe_addr", "an address, when there is no name")
{
	struct perf_event_attr attr = own_kprobe(false);
	FILE *symbols = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0, one;
	char line[512], name[256];
	int fd;

	NEED_RIGHTS();
	while (symbols && fgets(line, sizeof(line), symbols))
		if (sscanf(line, "%llx %*c %255s", &one, name) == 2 &&
		    strcmp(name, kernel_function) == 0)
			address = one;
	if (symbols)
		fclose(symbols);
	if (!address)
		NOT_ALLOWED("/proc/kallsyms hides addresses");
	attr.kprobe_func = 0;
	attr.kprobe_addr = address;
	fd = OPEN_SELF(&attr);
	START(fd);
	getppid_5();
	STOP(fd);
	CHECK_EQ(VALUE(fd), 5);
}
