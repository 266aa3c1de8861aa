// SPDX-License-Identifier: MIT
/*
 * Copies a perf.data file record for record through our reader and our writer:
 *
 *	copy [-z LEVEL] [-w RECORDS] [-k] FROM TO
 *
 *	-w	so many records a write, in two pieces that part in the middle of a record
 *	-k	end without finishing, as if killed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/perfdata.h>

#include "lib/perfdata/writer.h"

struct batch {
	char *data;
	size_t size, room;
	unsigned int records, limit;
};

static int flush(struct batch *batch, struct tally_perfdata_writer *writer, struct tally_error *err)
{
	size_t middle = batch->size / 2 + 3;
	struct iovec pieces[2];

	if (!batch->size)
		return 0;
	pieces[0] = (struct iovec){batch->data, middle};
	pieces[1] = (struct iovec){batch->data + middle, batch->size - middle};
	batch->size = 0;
	batch->records = 0;
	return tally_perfdata_write(writer, pieces, 2, err);
}

static int add(struct batch *batch, const struct tally_record *record,
	       struct tally_perfdata_writer *writer, struct tally_error *err)
{
	if (batch->room - batch->size < record->size) {
		batch->room = 2 * batch->room + record->size;
		batch->data = realloc(batch->data, batch->room);
		if (!batch->data)
			abort();
	}
	memcpy(batch->data + batch->size, record->raw, record->size);
	batch->size += record->size;
	return ++batch->records < batch->limit ? 0 : flush(batch, writer, err);
}

static int start(const char *path, const struct tally_perfdata *reader,
		 const struct tally_perfdata_options *options,
		 struct tally_perfdata_writer **writer, struct tally_error *err)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(reader);
	size_t nr = tally_perfdata_events(reader);
	struct tly_writer_event *events = calloc(nr, sizeof(*events));
	int ret;

	if (!events)
		abort();
	for (size_t i = 0; i < nr; i++) {
		const struct tally_perfdata_event *event = tally_perfdata_event(reader, i);

		events[i] = (struct tly_writer_event){
			.name = event->name,
			.scale = event->scale,
			.attr = event->attr,
			.leader = i,
		};
	}
	for (size_t i = 0; i < info->nr_groups; i++)
		for (uint32_t j = 0; j < info->groups[i].nr_members; j++)
			events[info->groups[i].leader + j].leader = info->groups[i].leader;
	ret = tly_writer_new(path, events, nr, options, writer, err);
	free(events);
	for (size_t i = 0; !ret && i < nr; i++) {
		const struct tally_perfdata_event *event = tally_perfdata_event(reader, i);

		ret = tally_perfdata_writer_ids(*writer, i, event->ids, event->nr_ids);
	}
	return ret;
}

static int copy(struct tally_perfdata *reader, struct tally_perfdata_writer *writer,
		unsigned int limit, struct tally_error *err)
{
	struct batch batch = {.limit = limit};
	struct tally_perfdata_record record;
	int ret, failed = 0;

	while (!failed && (ret = tally_perfdata_next(reader, &record, err)) > 0) {
		if (record.record.type != TALLY_RECORD_FINISHED_ROUND) {
			failed = add(&batch, &record.record, writer, err);
			continue;
		}
		failed = flush(&batch, writer, err);
		if (!failed)
			failed = tally_perfdata_writer_round(writer, err);
	}
	if (!failed)
		failed = ret ? ret : flush(&batch, writer, err);
	free(batch.data);
	return failed;
}

int main(int argc, char **argv)
{
	struct tally_perfdata_options options = {.clockid = -1, .argv = (const char **)argv};
	struct tally_perfdata_writer *writer;
	struct tally_perfdata *reader;
	struct tally_error err;
	unsigned int limit = 1;
	bool kill = false;
	int option, ret;

	while ((option = getopt(argc, argv, "z:w:k")) != -1) {
		if (option == 'z')
			options.zstd_level = atoi(optarg);
		else if (option == 'w')
			limit = (unsigned int)atoi(optarg);
		else if (option == 'k')
			kill = true;
		else
			return 2;
	}
	if (optind != argc - 2)
		return 2;
	ret = tally_perfdata_open(argv[optind], &reader, &err);
	if (!ret) {
		ret = start(argv[optind + 1], reader, &options, &writer, &err);
		if (!ret) {
			for (size_t i = 0; i < tally_perfdata_build_ids(reader); i++)
				tally_perfdata_writer_build_id(writer,
							       tally_perfdata_build_id(reader, i));
			ret = copy(reader, writer, limit, &err);
			if (kill)
				_exit(3);
			if (tally_perfdata_finish(writer, ret ? NULL : &err))
				ret = -1;
		}
		tally_perfdata_close(reader);
	}
	if (ret)
		fprintf(stderr, "%s\n%s\n", err.what, err.remedy);
	return ret != 0;
}
