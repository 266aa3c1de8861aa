// SPDX-License-Identifier: MIT
#include "lib/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/error.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static bool has_option(const char *options, const char *option)
{
	size_t length = strlen(option);

	for (const char *p = options; (p = strstr(p, option)); p += length)
		if ((p == options || p[-1] == ',') && (!p[length] || strchr(",\n", p[length])))
			return true;
	return false;
}

/*
 * A line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER_OPTIONS".
 * Blanks in a mount point are written \040, as nobody has in a cgroup's.
 */
static bool parse_mount(char *line, const char **point, const char **type, const char **options)
{
	char *dash = strstr(line, " - "), *save = NULL, *word = NULL;

	if (!dash)
		return false;
	*dash = '\0';
	word = strtok_r(line, " ", &save);
	for (int i = 0; word && i < 4; i++)
		word = strtok_r(NULL, " ", &save);
	*point = word;
	*type = strtok_r(dash + 3, " ", &save);
	if (!*type || !strtok_r(NULL, " ", &save))
		return false;
	*options = strtok_r(NULL, " ", &save);
	return *point && *options;
}

/* Copies the mount point to search below; false when no cgroup file system is mounted. */
static bool find_mount(char *mount, size_t size)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	if (!file)
		return false;
	while (getline(&line, &capacity, file) > 0) {
		const char *point, *type, *options;

		if (!parse_mount(line, &point, &type, &options))
			continue;
		if (!strcmp(type, "cgroup2") && !found) {
			snprintf(mount, size, "%s", point);
			found = true;
		} else if (!strcmp(type, "cgroup") && has_option(options, "perf_event")) {
			snprintf(mount, size, "%s", point);
			found = true;
			break;
		}
	}
	free(line);
	fclose(file);
	return found;
}

bool tly_is_cgroup(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

int tly_cgroup_open(const char *name, struct tally_error *err)
{
	char mount[PATH_MAX], path[2 * PATH_MAX];
	int fd, code;

	if (name[0] == '/') {
		fd = open(name, DIR_FLAGS);
		if (fd >= 0 && tly_is_cgroup(fd))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	if (!find_mount(mount, sizeof(mount))) {
		tly_error(err, -ENOENT,
			  "cannot find cgroup '%s': no cgroup file system with "
			  "perf_event is mounted",
			  name);
		return tly_error_remedy(err, "mount -t cgroup2 none /sys/fs/cgroup");
	}
	if (snprintf(path, sizeof(path), "%s/%s", mount, name) >= (int)sizeof(path))
		return tly_error(err, -ENAMETOOLONG, "the cgroup's name is too long");
	fd = open(path, DIR_FLAGS);
	if (fd >= 0)
		return fd;
	code = -errno;
	tly_error(err, code, "cannot open cgroup '%s': %s: %s", name, path, strerror(-code));
	if (code == -ENOENT)
		tly_error_remedy(err, "the cgroups that there are: find %s -type d", mount);
	return code;
}

/*
 * A processor has a clock for each cgroup, which stops while its tasks do not run there. The first
 * event of any cgroup that is enabled on a processor where events of tasks or of the whole system
 * were scheduled already finds the clock of the cgroup that is running not started. It jumps at the
 * next switch or read by all the time since it last stood, up to that since the system started
 * (seen with Linux 6.18), and the first event takes the jump for time enabled and running. Those
 * behind it begin at the clock's true time. So an event that counts nothing goes first.
 */
int tly_cgroup_keep_time(int cgroup, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER0,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, cgroup, cpu, -1,
			    PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
}
