// SPDX-License-Identifier: MIT
/*
 * The perf.data reader: the input is a file, read in file order, in time order after a rewind, and
 * once more through a pipe. All that is handed out is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/perfdata.h>

#include "tests/fuzz/touch.h"

/* A few bytes of zstd can stand for gigabytes. */
#define MAX_RECORDS 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch_info(const struct tally_perfdata *reader)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(reader);
	const char *const strings[] = {info->hostname, info->osrelease, info->version, info->arch,
				       info->cpudesc,  info->cpuid,	info->cmdline};

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i])
			touch_string(strings[i]);
	touch(info->tracing_data, info->tracing_data_size);
	for (size_t i = 0; i < info->nr_groups; i++)
		touch_string(info->groups[i].name);
	for (size_t i = 0; i < info->nr_pmus; i++)
		touch_string(info->pmus[i].name);
	for (size_t i = 0; i < tally_perfdata_build_ids(reader); i++) {
		const struct tally_perfdata_build_id *id = tally_perfdata_build_id(reader, i);

		touch_string(id->filename);
		touch(id->build_id, id->size);
	}
	for (size_t i = 0; i < tally_perfdata_events(reader); i++) {
		const struct tally_perfdata_event *event = tally_perfdata_event(reader, i);

		touch_string(event->name);
		touch_string(event->unit);
		touch(event->attr, event->attr->size);
		touch(event->ids, event->nr_ids * sizeof(uint64_t));
	}
}

static void read_all(struct tally_perfdata *reader,
		     int (*next)(struct tally_perfdata *, struct tally_perfdata_record *,
				 struct tally_error *))
{
	struct tally_perfdata_record record;
	struct tally_error err;
	int ret = 0;

	for (int i = 0; i < MAX_RECORDS; i++) {
		size_t event;

		ret = next(reader, &record, &err);
		if (ret <= 0)
			break;
		event = record.event == SIZE_MAX ? 0 : record.event;
		if (tally_perfdata_event(reader, event))
			touch_record(&tally_perfdata_event(reader, event)->format, &record.record);
	}
	/* An error says something, and says it again. */
	if (ret < 0) {
		if (!err.what[0] || err.code != ret)
			abort();
		if (next(reader, &record, &err) != ret)
			abort();
	}
	touch_info(reader);
}

static struct tally_perfdata *open_fd(int fd)
{
	struct tally_perfdata *reader;
	struct tally_error err;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!tally_perfdata_open(path, &reader, &err))
		return reader;
	if (!err.what[0])
		abort();
	return NULL;
}

static void read_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct tally_perfdata *reader;
	struct tally_error err;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	reader = open_fd(fd);
	if (reader) {
		read_all(reader, tally_perfdata_next);
		if (tally_perfdata_rewind(reader, &err))
			abort();
		read_all(reader, tally_perfdata_next_ordered);
		if (tally_perfdata_rewind(reader, &err))
			abort();
		tally_perfdata_select(reader, TALLY_SELECT_OTHERS);
		read_all(reader, tally_perfdata_next);
		tally_perfdata_close(reader);
	}
	close(fd);
}

static void read_pipe(const uint8_t *data, size_t size)
{
	struct tally_perfdata *reader;
	int fds[2];

	if (size > 65536) /* what a pipe holds without a reader */
		return;
	if (pipe(fds) || write(fds[1], data, size) != (ssize_t)size)
		abort();
	close(fds[1]);
	reader = open_fd(fds[0]);
	if (reader) {
		read_all(reader, tally_perfdata_next);
		tally_perfdata_close(reader);
	}
	close(fds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	read_pipe(data, size);
	return 0;
}
