// SPDX-License-Identifier: MIT
/* One line a stack, outermost call first: what flame graph programs read. */
#include <stdlib.h>
#include <string.h>

#include "tool/lookup.h"
#include "tool/memory.h"
#include "tool/report.h"

struct group {
	size_t event;
	const char *comm;
	struct calltree *tree;
};

static void put_part(struct buffer *buffer, const char *text)
{
	for (; *text; text++)
		buffer_char(buffer, *text == ';' || *text == '\n' ? ':' : *text);
}

static void put_function(const struct report *report, struct buffer *buffer, uint32_t function)
{
	const struct places *places = profile_places(report->profile);
	const struct function *f = places_function(places, function);
	const char *dso;

	if (strcmp(f->name, UNKNOWN)) {
		put_part(buffer, f->name);
		return;
	}
	dso = places_dso_name(places, f->dso);
	buffer_text(buffer, *dso == '[' ? "" : "[");
	put_part(buffer, dso);
	buffer_text(buffer, *dso == '[' ? "" : "]");
}

static void put_stacks(const struct report *report, const struct calltree *tree, uint32_t index,
		       struct buffer *path, struct buffer *out)
{
	const struct calltree_node *node = calltree_node(tree, index);
	size_t length = path->size;

	if (index != CALLTREE_ROOT) {
		buffer_char(path, ';');
		put_function(report, path, node->function);
	}
	if (node->self) {
		buffer_bytes(out, path->data, path->size);
		buffer_char(out, ' ');
		buffer_decimal(out, report->options->show_samples ? node->self_nr : node->self, 0,
			       ' ');
		buffer_char(out, '\n');
	}
	for (uint32_t child = node->child; child; child = calltree_node(tree, child)->next)
		put_stacks(report, tree, child, path, out);
	path->size = length;
}

static struct group *find_group(struct group **groups, size_t *nr, size_t *room,
				const struct bucket_view *bucket)
{
	for (size_t i = 0; i < *nr; i++)
		if ((*groups)[i].event == bucket->event && (*groups)[i].comm == bucket->comm)
			return &(*groups)[i];
	*groups = tool_grow(*groups, room, *nr + 1, sizeof(**groups));
	(*groups)[*nr] = (struct group){bucket->event, bucket->comm, calltree_new()};
	return &(*groups)[(*nr)++];
}

static int compare(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return strcmp(x->comm, y->comm);
}

void report_folded(struct report *report, struct output *output)
{
	const struct places *places = profile_places(report->profile);
	struct group *groups = NULL;
	struct buffer path = {.fd = -1};
	uint32_t *functions = NULL;
	size_t nr_groups = 0, groups_room = 0, room = 0;

	for (size_t i = 0; i < profile_buckets(report->profile); i++) {
		struct bucket_view bucket = profile_bucket(report->profile, i);
		struct group *group = find_group(&groups, &nr_groups, &groups_room, &bucket);

		functions = tool_grow(functions, &room, bucket.nr_frames + 1, sizeof(*functions));
		for (size_t j = 0; j < bucket.nr_frames; j++)
			functions[j] = places_frame(places, bucket.frames[bucket.nr_frames - 1 - j])
					       ->function;
		calltree_add(group->tree, functions, bucket.nr_frames, bucket.period,
			     bucket.samples);
	}
	if (nr_groups)
		qsort(groups, nr_groups, sizeof(*groups), compare);
	for (size_t i = 0; i < nr_groups; i++) {
		calltree_sort(groups[i].tree, places);
		path.size = 0;
		/* With several events the lines of each begin with its name. */
		if (report->nr_sections > 1) {
			put_part(&path,
				 tally_perfdata_event(report->session->reader, groups[i].event)
					 ->name);
			buffer_char(&path, ';');
		}
		put_part(&path, groups[i].comm);
		put_stacks(report, groups[i].tree, CALLTREE_ROOT, &path, &output->buffer);
		calltree_free(groups[i].tree);
	}
	free(groups);
	free(functions);
	buffer_free(&path);
}
