// SPDX-License-Identifier: MIT
#include "lib/perfdata/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "lib/readfile.h"

static bool put_uname(struct tly_bytes *out, enum tly_feature feature)
{
	struct utsname name;

	if (uname(&name))
		return false;
	if (feature == TLY_FEATURE_HOSTNAME)
		tly_bytes_string(out, name.nodename);
	else if (feature == TLY_FEATURE_OSRELEASE)
		tly_bytes_string(out, name.release);
	else
		tly_bytes_string(out, name.machine);
	return true;
}

static bool put_nr_cpus(struct tly_bytes *out)
{
	tly_bytes_u32(out, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	tly_bytes_u32(out, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	return true;
}

/* The value of the first "key : value" line of a file of procfs; false when there is none. */
static bool proc_value(const char *path, const char *key, char *value, size_t size)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		size_t length = strlen(key);
		char *colon;

		if (strncmp(line, key, length) || !strchr("\t :", line[length]))
			continue;
		colon = strchr(line, ':');
		if (!colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		found = (size_t)snprintf(value, size, "%s", colon) < size;
	}
	if (file)
		fclose(file);
	return found;
}

static bool put_cpudesc(struct tly_bytes *out)
{
	char text[256];

	if (!proc_value("/proc/cpuinfo", "model name", text, sizeof(text)))
		return false;
	tly_bytes_string(out, text);
	return true;
}

/* "GenuineIntel,6,85,4": what perf names its tables of events by. */
static bool put_cpuid(struct tly_bytes *out)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned int max, a, b, c, d, family, model;
	char vendor[13] = "", text[64];

	if (!__get_cpuid(0, &max, &b, &c, &d))
		return false;
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return false;
	family = a >> 8 & 0xf;
	model = a >> 4 & 0xf;
	if (family == 0xf)
		family += a >> 20 & 0xff;
	if (family >= 6)
		model += (a >> 16 & 0xf) << 4;
	snprintf(text, sizeof(text), "%s,%u,%u,%u", vendor, family, model, a & 0xf);
	tly_bytes_string(out, text);
	return true;
#else
	(void)out;
	return false;
#endif
}

static bool put_total_mem(struct tly_bytes *out)
{
	char text[64];

	if (!proc_value("/proc/meminfo", "MemTotal", text, sizeof(text)))
		return false;
	tly_bytes_u64(out, strtoull(text, NULL, 10));
	return true;
}

static bool put_cmdline(const struct tly_facts *facts, struct tly_bytes *out)
{
	uint32_t nr = 0;

	if (!facts->argv)
		return false;
	while (facts->argv[nr])
		nr++;
	tly_bytes_u32(out, nr);
	for (uint32_t i = 0; i < nr; i++)
		tly_bytes_string(out, facts->argv[i]);
	return true;
}

static bool put_event_desc(const struct tly_facts *facts, struct tly_bytes *out)
{
	tly_bytes_u32(out, (uint32_t)facts->nr_events);
	tly_bytes_u32(out, (uint32_t)facts->attr_size);
	for (size_t i = 0; i < facts->nr_events; i++) {
		const struct tly_written_event *event = &facts->events[i];

		tly_bytes_put(out, event->attr, facts->attr_size);
		tly_bytes_u32(out, (uint32_t)event->nr_ids);
		tly_bytes_string(out, event->name);
		tly_bytes_put(out, event->ids, event->nr_ids * sizeof(*event->ids));
	}
	return true;
}

/* Appends a u32 to be told later. */
static size_t put_count(struct tly_bytes *out)
{
	tly_bytes_u32(out, 0);
	return out->size - sizeof(uint32_t);
}

static void set_count(struct tly_bytes *out, size_t at, uint32_t count)
{
	if (!out->failed)
		memcpy(out->data + at, &count, sizeof(count));
}

static bool put_pmu_mappings(struct tly_bytes *out)
{
	static const char folder[] = "/sys/bus/event_source/devices";
	uint32_t count = 0;
	size_t at;
	char **names;
	ssize_t nr = tly_read_folder(folder, &names);

	if (nr < 0)
		return false;
	at = put_count(out);
	for (ssize_t i = 0; i < nr; i++) {
		char path[512];
		uint64_t type;

		if (snprintf(path, sizeof(path), "%s/%s/type", folder, names[i]) >=
			    (int)sizeof(path) ||
		    tly_read_number(path, &type))
			continue;
		tly_bytes_u32(out, (uint32_t)type);
		tly_bytes_string(out, names[i]);
		count++;
	}
	free(names);
	set_count(out, at, count);
	return count;
}

static bool put_groups(const struct tly_facts *facts, struct tly_bytes *out)
{
	size_t at = put_count(out);
	uint32_t count = 0;

	for (size_t leader = 0; leader < facts->nr_events; leader++) {
		uint32_t members = 0;

		for (size_t i = 0; i < facts->nr_events; i++)
			members += facts->events[i].leader == leader;
		if (members < 2)
			continue;
		tly_bytes_string(out, "{anon_group}");
		tly_bytes_u32(out, (uint32_t)leader);
		tly_bytes_u32(out, members);
		count++;
	}
	set_count(out, at, count);
	return count;
}

static bool put_sample_time(const struct tly_facts *facts, struct tly_bytes *out)
{
	if (!facts->last)
		return false;
	tly_bytes_u64(out, facts->first);
	tly_bytes_u64(out, facts->last);
	return true;
}

/* Its resolution in nanoseconds, for all that the name says. */
static bool put_clockid(const struct tly_facts *facts, struct tly_bytes *out)
{
	struct timespec resolution;

	if (facts->clockid < 0 || clock_getres(facts->clockid, &resolution))
		return false;
	tly_bytes_u64(out, (uint64_t)resolution.tv_sec * 1000000000 + (uint64_t)resolution.tv_nsec);
	return true;
}

static bool put_clock_data(const struct tly_facts *facts, struct tly_bytes *out)
{
	if (facts->clockid < 0)
		return false;
	tly_bytes_u32(out, 1); /* version */
	tly_bytes_u32(out, (uint32_t)facts->clockid);
	tly_bytes_u64(out, facts->wall_ns);
	tly_bytes_u64(out, facts->clock_ns);
	return true;
}

static bool put_compressed(const struct tly_facts *facts, struct tly_bytes *out)
{
	if (!facts->zstd_level)
		return false;
	tly_bytes_u32(out, 1); /* version */
	tly_bytes_u32(out, TLY_COMPRESSION_ZSTD);
	tly_bytes_u32(out, (uint32_t)facts->zstd_level);
	tly_bytes_u32(out, facts->compressed ? (uint32_t)(facts->plain / facts->compressed) : 1);
	tly_bytes_u32(out, 1u << 16); /* what a reader must have room for: a carrier expanded */
	return true;
}

static bool put_fact(const struct tly_facts *facts, enum tly_feature feature, struct tly_bytes *out)
{
	switch (feature) {
	case TLY_FEATURE_TRACING_DATA:
		return tly_tracing_data(facts, out);
	case TLY_FEATURE_BUILD_ID:
		tly_bytes_put(out, facts->build_ids->data, facts->build_ids->size);
		return facts->build_ids->size;
	case TLY_FEATURE_HOSTNAME:
	case TLY_FEATURE_OSRELEASE:
	case TLY_FEATURE_ARCH:
		return put_uname(out, feature);
	case TLY_FEATURE_VERSION:
		tly_bytes_string(out, "tally " TALLY_VERSION);
		return true;
	case TLY_FEATURE_NRCPUS:
		return put_nr_cpus(out);
	case TLY_FEATURE_CPUDESC:
		return put_cpudesc(out);
	case TLY_FEATURE_CPUID:
		return put_cpuid(out);
	case TLY_FEATURE_TOTAL_MEM:
		return put_total_mem(out);
	case TLY_FEATURE_CMDLINE:
		return put_cmdline(facts, out);
	case TLY_FEATURE_EVENT_DESC:
		return put_event_desc(facts, out);
	case TLY_FEATURE_PMU_MAPPINGS:
		return put_pmu_mappings(out);
	case TLY_FEATURE_GROUP_DESC:
		return put_groups(facts, out);
	case TLY_FEATURE_SAMPLE_TIME:
		return put_sample_time(facts, out);
	case TLY_FEATURE_CLOCKID:
		return put_clockid(facts, out);
	case TLY_FEATURE_CLOCK_DATA:
		return put_clock_data(facts, out);
	case TLY_FEATURE_COMPRESSED:
		return put_compressed(facts, out);
	default:
		return false;
	}
}

bool tly_fact(const struct tly_facts *facts, enum tly_feature feature, struct tly_bytes *out)
{
	size_t start = out->size;

	if (put_fact(facts, feature, out))
		return true;
	out->size = start;
	return false;
}
