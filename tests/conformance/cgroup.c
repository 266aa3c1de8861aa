// SPDX-License-Identifier: MIT
/* Everything about control groups: the open flag, the switch counter, the record, the sample. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

struct group {
	char path[512];
	int fd;
};

/* A case that failed may have left tasks in it: back to the group above. */
static void empty_group(const struct group *group)
{
	char inside[640], above[640];
	FILE *procs;
	int pid;

	snprintf(inside, sizeof(inside), "%s/cgroup.procs", group->path);
	snprintf(above, sizeof(above), "%s/../cgroup.procs", group->path);
	procs = fopen(inside, "re");
	while (procs && fscanf(procs, "%d", &pid) == 1) {
		FILE *target = fopen(above, "we");

		if (target) {
			fprintf(target, "%d", pid);
			fclose(target);
		}
	}
	if (procs)
		fclose(procs);
}

static void remove_group(void *arg)
{
	struct group *group = arg;

	empty_group(group);
	/* a task that just left may still count for a moment */
	for (int i = 0; i < 200 && rmdir(group->path) && errno == EBUSY; i++)
		usleep(5000);
}

/* The mounted hierarchy that the perf_event controller uses. */
static void hierarchy(char *path, size_t size)
{
	FILE *mounts = fopen("/proc/mounts", "re");
	char line[1024], where[256], type[64], options[512];
	bool found = false;

	while (mounts && fgets(line, sizeof(line), mounts)) {
		bool v1, v2;

		if (sscanf(line, "%*s %255s %63s %511s", where, type, options) != 3)
			continue;
		v1 = strcmp(type, "cgroup") == 0 && strstr(options, "perf_event");
		v2 = strcmp(type, "cgroup2") == 0;
		if (v1 || (v2 && !found)) {
			snprintf(path, size, "%s", where);
			found = true;
			if (v1)
				break;
		}
	}
	if (mounts)
		fclose(mounts);
	if (!found)
		CANNOT("no cgroup hierarchy is mounted");
}

/* A fresh group below the root, removed when the case ends. */
static struct group *new_group(const char *name)
{
	struct group *group = calloc(1, sizeof(*group));
	char root[256];

	CHECK(group);
	hierarchy(root, sizeof(root));
	snprintf(group->path, sizeof(group->path), "%s/abi-%s-%d", root, name, (int)getpid());
	if (mkdir(group->path, 0755)) {
		if (errno == EACCES || errno == EPERM || errno == EROFS)
			NOT_ALLOWED("cannot make a cgroup below %s", root);
		CANNOT("mkdir below %s: %s", root, strerrorname_np(errno));
	}
	abi_at_end(remove_group, group);
	group->fd = (int)CHECK_OK(open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return group;
}

static void enter(const char *path, pid_t pid)
{
	char procs[640], number[16];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	snprintf(number, sizeof(number), "%d", (int)pid);
	fd = (int)CHECK_OK(open(procs, O_WRONLY | O_CLOEXEC));
	if (write(fd, number, strlen(number)) < 0)
		CANNOT("a process cannot enter %s: %s", path, strerrorname_np(errno));
	close(fd);
}

/* The id that samples and records carry: the inode of the directory's handle. */
static uint64_t group_id(const char *path)
{
	struct {
		struct file_handle handle;
		uint64_t id;
	} buffer = {.handle.handle_bytes = sizeof(uint64_t)};
	uint64_t id;
	int mount;

	CHECK_OK(name_to_handle_at(AT_FDCWD, path, &buffer.handle, &mount, 0));
	memcpy(&id, buffer.handle.f_handle, sizeof(id));
	return id;
}

struct member {
	struct gate go, done;
	int cpu, rounds;
};

static void member_work(void *arg)
{
	struct member *member = arg;

	abi_pin(0, member->cpu);
	for (int i = 0; i < member->rounds; i++) {
		abi_wait(&member->go);
		work_faults(100);
		work_spin(2000000);
		abi_pass(&member->done);
	}
	abi_wait(&member->go);
}

static void leave_and_end(struct member *member, pid_t pid)
{
	abi_pass(&member->go);
	JOIN(pid);
}

ABI_CASE("flag.pid_cgroup flag.pid_cgroup.time",
	 "counts, and lets time pass, only while a task of the group runs")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct member member = {abi_gate(), abi_gate(), abi_first_cpu(), 1};
	struct group *group;
	uint64_t words[3];
	pid_t pid;
	int fd;

	NEED_RIGHTS();
	group = new_group("count");
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = OPEN_FLAGS(&attr, group->fd, member.cpu, -1, PERF_FLAG_PID_CGROUP);
	START(fd);
	abi_pin(0, member.cpu);
	work_faults(1000);
	READ_WORDS(fd, words, 3);
	CHECK_EQ(words[0], 0);
	CHECK_EQ(words[1], 0);
	CHECK_EQ(words[2], 0);
	pid = SPAWN(member_work, &member);
	enter(group->path, pid);
	abi_pass(&member.go);
	abi_wait(&member.done);
	READ_WORDS(fd, words, 3);
	CHECK_CMP(words[0], >=, 100);
	CHECK_CMP(words[0], <, 1000);
	CHECK_CMP(words[1], >, 0);
	CHECK_CMP(words[2], >, 0);
	leave_and_end(&member, pid);
}

ABI_CASE("flag.pid_cgroup.time", "tasks of a group below count too")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct member member = {abi_gate(), abi_gate(), abi_first_cpu(), 1};
	struct group *group, *below = calloc(1, sizeof(*below));
	pid_t pid;
	int fd;

	NEED_RIGHTS();
	CHECK(below);
	group = new_group("above");
	snprintf(below->path, sizeof(below->path), "%.490s/below", group->path);
	CHECK_OK(mkdir(below->path, 0755));
	abi_at_end(remove_group, below);
	fd = OPEN_FLAGS(&attr, group->fd, member.cpu, -1, PERF_FLAG_PID_CGROUP);
	START(fd);
	pid = SPAWN(member_work, &member);
	enter(below->path, pid);
	abi_pass(&member.go);
	abi_wait(&member.done);
	CHECK_CMP(VALUE(fd), >=, 100);
	leave_and_end(&member, pid);
}

ABI_CASE("flag.pid_cgroup flag.pid_cgroup.wrong-dir flag.combined errno.ebadf",
	 "wrong processor, descriptor or file")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr wrong = abi_software(1000);
	const unsigned long flags = PERF_FLAG_PID_CGROUP;
	struct group *group;
	int file, cpu = abi_first_cpu();

	NEED_RIGHTS();
	group = new_group("refuse");
	file = (int)CHECK_OK(open("/proc/self/exe", O_RDONLY));
	CHECK_REFUSED(&attr, group->fd, -1, -1, flags, EINVAL);
	CHECK_REFUSED(&attr, -1, cpu, -1, flags, EINVAL);
	CHECK_REFUSED(&attr, 9999, cpu, -1, flags, EBADF);
	CHECK_REFUSED(&attr, file, cpu, -1, flags, EBADF);
	/* What is looked at before the group. */
	CHECK_REFUSED(&attr, 9999, 0x7ffffff0, -1, flags, EINVAL);
	CHECK_REFUSED(&wrong, 9999, cpu, -1, flags, ENOENT);
	file = OPEN_FLAGS(&attr, group->fd, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
	CHECK_EQ(CHECK_OK(fcntl(file, F_GETFD)), FD_CLOEXEC);
}

ABI_CASE("flag.pid_cgroup.wrong-dir", "a directory of another v1 hierarchy: ENOENT")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	FILE *mounts = fopen("/proc/mounts", "re");
	char line[1024], where[256], type[64], options[512];

	NEED_RIGHTS();
	CHECK(mounts);
	while (fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %255s %63s %511s", where, type, options) == 3 &&
		    strcmp(type, "cgroup") == 0 && !strstr(options, "perf_event")) {
			int fd = (int)CHECK_OK(open(where, O_RDONLY | O_DIRECTORY));

			CHECK_REFUSED(&attr, fd, abi_first_cpu(), -1, PERF_FLAG_PID_CGROUP, ENOENT);
			return;
		}
	CANNOT("no other v1 hierarchy is mounted");
}

ABI_CASE("flag.pid_cgroup.system-wide errno.eacces",
	 "an ordinary user is refused as for any processor")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	char root[256];
	int fd;

	hierarchy(root, sizeof(root));
	abi_drop_rights();
	abi_need_level(1, 2);
	fd = open(root, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		NOT_ALLOWED("cannot open %s", root);
	CHECK_REFUSED(&attr, fd, abi_first_cpu(), -1, PERF_FLAG_PID_CGROUP, EACCES);
}

ABI_CASE("attr.cgroup record.cgroup", "a new group: its id and its path; its removal is silent")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	const struct perf_event_header *header;
	struct group *group;
	struct ring ring;
	const char *path;
	char root[256];
	int fd;

	NEED_RIGHTS();
	hierarchy(root, sizeof(root));
	attr.cgroup = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 8);
	START(fd);
	group = new_group("record");
	header = EXPECT(&ring, PERF_RECORD_CGROUP);
	path = (const char *)(abi_words(header) + 1);
	CHECK_EQ(abi_words(header)[0], group_id(group->path));
	CHECK_EQ(strcmp(path, group->path + strlen(root)), 0);
	CHECK_EQ(header->size, 8 + 8 + (strlen(path) + 8) / 8 * 8 + 8);
	CHECK_EQ(TRAILER(&attr, header).id, ID(fd));
	remove_group(group);
	CHECK_EQ(access(group->path, F_OK), -1);
	CHECK(NEXT_OF(&ring, PERF_RECORD_CGROUP) == NULL);
}

ABI_CASE("sample.cgroup layout.cgroup", "the id of the task's group; 1 in the root")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct group *group;
	struct ring ring;
	char root[256];
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CGROUP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 8);
	hierarchy(root, sizeof(root));
	group = new_group("sample");
	enter(group->path, getpid());
	START(fd);
	work_faults(1);
	STOP(fd);
	CHECK_EQ(SAMPLE(&attr, EXPECT(&ring, PERF_RECORD_SAMPLE)).cgroup, group_id(group->path));
	enter(root, getpid());
	DRAIN(&ring, PERF_RECORD_SAMPLE);
	START(fd);
	work_faults(1);
	STOP(fd);
	CHECK_EQ(SAMPLE(&attr, EXPECT(&ring, PERF_RECORD_SAMPLE)).cgroup, group_id(root));
	CHECK_EQ(group_id(root), 1);
}

/* One byte back and forth, `rounds` times. */
struct rally {
	struct gate there, back;
	int rounds, cpu;
};

static void play(void *arg)
{
	struct rally *rally = arg;

	abi_pin(0, rally->cpu);
	for (int i = 0; i < rally->rounds; i++) {
		abi_wait(&rally->there);
		abi_pass(&rally->back);
	}
}

static void play_against(struct rally *rally, pid_t pid)
{
	for (int i = 0; i < rally->rounds; i++) {
		abi_pass(&rally->there);
		abi_wait(&rally->back);
	}
	JOIN(pid);
}

ABI_CASE("config.sw.cgroup_switches",
	 "switches to another group count, within one group they do not")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CGROUP_SWITCHES);
	struct rally rally = {abi_gate(), abi_gate(), 200, abi_first_cpu()};
	int to_others, all;
	struct group *group;
	char root[256];
	pid_t pid;

	NEED_RIGHTS();
	hierarchy(root, sizeof(root));
	group = new_group("switch");
	attr.exclude_kernel = 0;
	to_others = OPEN_SELF(&attr);
	attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	all = OPEN_SELF(&attr);
	abi_pin(0, rally.cpu);

	pid = SPAWN(play, &rally);
	enter(group->path, pid);
	START(to_others);
	play_against(&rally, pid);
	STOP(to_others);
	/* a wait of ours hands the processor to the other group, unless a third task comes first */
	CHECK_CMP(VALUE(to_others), >=, rally.rounds / 4);

	RESET(to_others);
	enter(group->path, getpid());
	pid = SPAWN(play, &rally);
	START(to_others);
	START(all);
	play_against(&rally, pid);
	STOP(all);
	STOP(to_others);
	CHECK_CMP(VALUE(to_others), <, VALUE(all));
	enter(root, getpid()); /* so that the group can be removed */
}
