// SPDX-License-Identifier: MIT
/* What the header features say about the recording. docs/perfdata.md draws each of them. */
#include "lib/perfdata/reader.h"

#include <stdlib.h>
#include <string.h>

#include "lib/perfdata/format.h"

#define MAX_CMDLINE (4u << 20) /* twice what execve(2) takes */

static bool take_u32(struct cursor *c, uint32_t *value)
{
	const void *p;

	if (!take_bytes(c, sizeof(*value), &p))
		return false;
	memcpy(value, p, sizeof(*value));
	return true;
}

/* u32 size, then that many bytes: a string padded with zeros. */
static bool peek_string(struct cursor *c, const char **string, size_t *length)
{
	const void *p;
	uint32_t size;

	if (!take_u32(c, &size) || !take_bytes(c, size, &p))
		return false;
	*string = p;
	*length = strnlen(p, size);
	return *length < size;
}

static bool take_string(struct tally_perfdata *reader, struct cursor *c, const char **string)
{
	const char *p;
	size_t length;

	if (!peek_string(c, &p, &length))
		return false;
	*string = tly_keep_string(reader, p, length);
	return *string;
}

static bool needs_quotes(const char *word, size_t length)
{
	return !length || strcspn(word, " \t\n'\"\\$`*?;&|<>()") < length;
}

/* One line that a shell would split into the same words. */
static bool read_cmdline(struct tally_perfdata *reader, struct cursor *c)
{
	char *line, *out;
	uint32_t nr;

	if (c->left > MAX_CMDLINE || !take_u32(c, &nr))
		return false;
	/* A byte becomes at most '\'', and the size before a word makes room for what is around it.
	 */
	line = tly_keep(reader, c->left * 4 + 1);
	if (!line)
		return false;
	out = line;
	for (uint32_t i = 0; i < nr; i++) {
		const char *word;
		size_t length;
		bool quotes;

		if (!peek_string(c, &word, &length))
			return false;
		quotes = needs_quotes(word, length);
		if (i)
			*out++ = ' ';
		if (quotes)
			*out++ = '\'';
		for (size_t j = 0; j < length; j++) {
			if (word[j] == '\'')
				out = mempcpy(out, "'\\'", 3);
			*out++ = word[j];
		}
		if (quotes)
			*out++ = '\'';
	}
	*out = '\0';
	reader->info.cmdline = line;
	return true;
}

/* The names, of events that the attrs section has in the same order. */
static bool read_event_desc(struct tally_perfdata *reader, struct cursor *c)
{
	uint32_t nr, attr_size, nr_ids;

	if (!take_u32(c, &nr) || !take_u32(c, &attr_size))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const void *attr, *ids;
		const char *name;

		if (!take_bytes(c, attr_size, &attr) || !take_u32(c, &nr_ids) ||
		    !take_string(reader, c, &name) || !take_array(c, nr_ids, WORD, &ids))
			return false;
		if (i < reader->nr_events)
			reader->events[i]->public.name = name;
	}
	return true;
}

static struct tally_perfdata_build_id *build_id_room(struct tally_perfdata *reader)
{
	struct tally_perfdata_build_id *build_ids = reader->build_ids;
	size_t nr = reader->nr_build_ids;

	/* Doubles at powers of two. */
	if (!(nr & (nr - 1)))
		build_ids = realloc(build_ids, (nr ? 2 * nr : 1) * sizeof(*build_ids));
	if (!build_ids)
		return NULL;
	reader->build_ids = build_ids;
	return build_ids + nr;
}

/* A list of struct tly_build_id_record, each with the rest of its size as the file name. */
static bool read_build_ids(struct tally_perfdata *reader, struct cursor *c)
{
	while (c->left) {
		struct tally_perfdata_build_id *build_id;
		struct tly_build_id_record record;
		const void *body;
		const char *name;
		uint8_t size = sizeof(record.build_id);

		if (c->left < sizeof(record))
			return false;
		memcpy(&record, c->p, sizeof(record));
		if (record.size <= sizeof(record) || !take_bytes(c, record.size, &body))
			return false;
		if (record.misc & TLY_MISC_BUILD_ID_SIZE)
			size = record.build_id_size;
		if (size > sizeof(record.build_id))
			return false;
		name = (const char *)body + sizeof(record);
		name = tly_keep_string(reader, name, strnlen(name, record.size - sizeof(record)));
		build_id = build_id_room(reader);
		if (!name || !build_id)
			return false;
		*build_id = (struct tally_perfdata_build_id){
			.filename = name,
			.size = size,
			.pid = record.pid,
			.misc = record.misc & ~TLY_MISC_BUILD_ID_SIZE,
		};
		memcpy(build_id->build_id, record.build_id, size);
		reader->nr_build_ids++;
	}
	return true;
}

static bool read_pmu_mappings(struct tally_perfdata *reader, struct cursor *c)
{
	struct tally_perfdata_pmu *pmus;
	uint32_t nr;

	/* Type and length of the name: so many can there be at most. */
	if (!take_u32(c, &nr) || nr > c->left / (2 * sizeof(uint32_t)))
		return false;
	pmus = tly_keep(reader, nr * sizeof(*pmus));
	if (!pmus)
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!take_u32(c, &pmus[i].type) || !take_string(reader, c, &pmus[i].name))
			return false;
	reader->info.pmus = pmus;
	reader->info.nr_pmus = nr;
	return true;
}

static bool read_groups(struct tally_perfdata *reader, struct cursor *c)
{
	struct tally_perfdata_group *groups;
	uint32_t nr;

	if (!take_u32(c, &nr) || nr > c->left / (3 * sizeof(uint32_t)))
		return false;
	groups = tly_keep(reader, nr * sizeof(*groups));
	if (!groups)
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!take_string(reader, c, &groups[i].name) || !take_u32(c, &groups[i].leader) ||
		    !take_u32(c, &groups[i].nr_members))
			return false;
	reader->info.groups = groups;
	reader->info.nr_groups = nr;
	return true;
}

static bool read_clock_data(struct tally_perfdata *reader, struct cursor *c)
{
	uint32_t version, clockid;

	if (!take_u32(c, &version) || !take_u32(c, &clockid) ||
	    !take_u64(c, &reader->info.wall_clock_ns) || !take_u64(c, &reader->info.clock_ns))
		return false;
	reader->info.clockid = (int32_t)clockid;
	return true;
}

static bool read_tracing_data(struct tally_perfdata *reader, struct cursor *c)
{
	void *data = tly_keep(reader, c->left);

	if (!data)
		return false;
	if (c->left)
		memcpy(data, c->p, c->left);
	reader->info.tracing_data = data;
	reader->info.tracing_data_size = c->left;
	return true;
}

static bool read_feature(struct tally_perfdata *reader, unsigned int feature, struct cursor *c)
{
	struct tally_perfdata_info *info = &reader->info;

	switch (feature) {
	case TLY_FEATURE_TRACING_DATA:
		return read_tracing_data(reader, c);
	case TLY_FEATURE_BUILD_ID:
		return read_build_ids(reader, c);
	case TLY_FEATURE_HOSTNAME:
		return take_string(reader, c, &info->hostname);
	case TLY_FEATURE_OSRELEASE:
		return take_string(reader, c, &info->osrelease);
	case TLY_FEATURE_VERSION:
		return take_string(reader, c, &info->version);
	case TLY_FEATURE_ARCH:
		return take_string(reader, c, &info->arch);
	case TLY_FEATURE_NRCPUS:
		return take_u32(c, &info->nr_cpus_avail) && take_u32(c, &info->nr_cpus_online);
	case TLY_FEATURE_CPUDESC:
		return take_string(reader, c, &info->cpudesc);
	case TLY_FEATURE_CPUID:
		return take_string(reader, c, &info->cpuid);
	case TLY_FEATURE_TOTAL_MEM:
		return take_u64(c, &info->total_mem_kb);
	case TLY_FEATURE_CMDLINE:
		return read_cmdline(reader, c);
	case TLY_FEATURE_EVENT_DESC:
		return read_event_desc(reader, c);
	case TLY_FEATURE_PMU_MAPPINGS:
		return read_pmu_mappings(reader, c);
	case TLY_FEATURE_GROUP_DESC:
		return read_groups(reader, c);
	case TLY_FEATURE_SAMPLE_TIME:
		return take_u64(c, &info->first_sample_time) &&
		       take_u64(c, &info->last_sample_time);
	case TLY_FEATURE_COMPRESSED:
		info->compressed = true;
		return true;
	case TLY_FEATURE_CLOCK_DATA:
		return read_clock_data(reader, c);
	default:
		return true;
	}
}

bool tly_feature_known(unsigned int feature)
{
	static const uint64_t known = 1u << TLY_FEATURE_TRACING_DATA | 1u << TLY_FEATURE_BUILD_ID |
				      1u << TLY_FEATURE_HOSTNAME | 1u << TLY_FEATURE_OSRELEASE |
				      1u << TLY_FEATURE_VERSION | 1u << TLY_FEATURE_ARCH |
				      1u << TLY_FEATURE_NRCPUS | 1u << TLY_FEATURE_CPUDESC |
				      1u << TLY_FEATURE_CPUID | 1u << TLY_FEATURE_TOTAL_MEM |
				      1u << TLY_FEATURE_CMDLINE | 1u << TLY_FEATURE_EVENT_DESC |
				      1u << TLY_FEATURE_PMU_MAPPINGS |
				      1u << TLY_FEATURE_GROUP_DESC | 1u << TLY_FEATURE_SAMPLE_TIME |
				      1u << TLY_FEATURE_COMPRESSED | 1u << TLY_FEATURE_CLOCK_DATA;

	return feature < 64 && known >> feature & 1;
}

bool tly_feature_read(struct tally_perfdata *reader, unsigned int feature, const void *data,
		      size_t size)
{
	struct cursor c = {data, size};

	return read_feature(reader, feature, &c);
}
