// SPDX-License-Identifier: MIT
/*
 * Records, read field by field as the event's attr has them, and told with what is the same in all
 * implementations. What is too short for its fields, or too long, says so.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "differential.h"
#include "workload.h"

/* ---- a line that is built before it is printed, since alike ones are told as one ---- */

static struct line {
	char text[4096];
	size_t length;
} line, last;
static unsigned int alike;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	size_t room = sizeof(line.text) - line.length;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line.text + line.length, room, format, arguments);
	va_end(arguments);
	line.length += (size_t)n < room ? (size_t)n : room - 1;
}

void tell_no_more(void)
{
	if (alike)
		printf("    %ux%s\n", alike, last.text);
	alike = 0;
}

static void end_line(void)
{
	if (alike && strcmp(line.text, last.text) != 0)
		tell_no_more();
	last = line;
	alike++;
	line.length = 0;
	line.text[0] = 0;
}

/* ---- what is left of a record ---- */

struct rest {
	const unsigned char *at, *end;
	bool too_short;
};

static void skip(struct rest *rest, uint64_t size)
{
	if ((size_t)(rest->end - rest->at) < size)
		rest->too_short = true;
	else
		rest->at += size;
}

static uint64_t take(struct rest *rest, size_t size)
{
	uint64_t value = 0;

	skip(rest, size);
	if (!rest->too_short)
		memcpy(&value, rest->at - size, size);
	return value;
}

static bool has(const struct slot *slot, uint64_t field)
{
	return slot->attr.sample_type & field;
}

/* ---- fields ---- */

static void say_tasks(struct rest *rest)
{
	const char *pid = name_of_task((pid_t)take(rest, 4));

	say(" %s/%s", pid, name_of_task((pid_t)take(rest, 4)));
}

/* Where in what the work is done in, and in what it touches. */
static void say_address(const char *what, uint64_t address)
{
	uint64_t in_words = address - (uintptr_t)words;
	int64_t in_work = (int64_t)(address - (uintptr_t)work_store8);

	if (in_words < sizeof(words))
		say(" %s words+%llu", what, (unsigned long long)in_words);
	else if (in_work > -4096 && in_work < 4096)
		say(" %s work%+lld", what, (long long)in_work);
	else
		say(" %s %s", what, address ? "elsewhere" : "0");
}

static void say_count(const char *what, uint64_t count)
{
	say(" %s %llu", what, (unsigned long long)count);
}

static void say_id(const char *what, uint64_t id)
{
	say(" %s of %d", what, slot_of_id(id));
}

static void say_presence(const char *what, uint64_t value)
{
	say("%s%s", value ? " " : " no ", what);
}

static void say_cpu(struct rest *rest)
{
	say_presence("cpu", take(rest, 8) < 4096);
}

/* The identity at the end of all records but samples. */
static size_t trailer_size(const struct slot *slot)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	if (!slot->attr.sample_id_all)
		return 0;
	return 8 * (size_t)__builtin_popcountll(slot->attr.sample_type & fields);
}

static void say_trailer(struct rest *rest, const struct slot *slot)
{
	if (!slot->attr.sample_id_all)
		return;
	say(" by");
	if (has(slot, PERF_SAMPLE_TID))
		say_tasks(rest);
	if (has(slot, PERF_SAMPLE_TIME))
		say_presence("time", take(rest, 8));
	if (has(slot, PERF_SAMPLE_ID))
		say_id("id", take(rest, 8));
	if (has(slot, PERF_SAMPLE_STREAM_ID))
		say_presence("stream", take(rest, 8));
	if (has(slot, PERF_SAMPLE_CPU))
		say_cpu(rest);
	if (has(slot, PERF_SAMPLE_IDENTIFIER))
		say_id("identifier", take(rest, 8));
}

/* The values of a read: of times only that they are there. */
static void say_read(struct rest *rest, const struct slot *slot)
{
	uint64_t format = slot->attr.read_format, nr = 1;
	bool group = format & PERF_FORMAT_GROUP;

	if (group)
		say_count("nr", nr = take(rest, 8));
	else
		say_count("value", slot->exact ? take(rest, 8) : take(rest, 8) * 0);
	skip(rest, format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 8 : 0);
	skip(rest, format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 8 : 0);
	while (nr-- && !rest->too_short) {
		skip(rest, group ? 8 : 0);
		if (format & PERF_FORMAT_ID)
			say_id("id", take(rest, 8));
		if (format & PERF_FORMAT_LOST)
			say_count("lost", take(rest, 8));
	}
}

/* How many frames there are depends on how they are found; the first is where it happened. */
static void say_chain(struct rest *rest, uint64_t ip)
{
	uint64_t nr = take(rest, 8), entry = 0;

	say(" chain");
	for (uint64_t i = 0; i < nr && !rest->too_short; i++) {
		uint64_t before = entry;

		entry = take(rest, 8);
		if (entry >= (uint64_t)PERF_CONTEXT_MAX)
			say(" %lld", (long long)entry);
		else if (before >= (uint64_t)PERF_CONTEXT_MAX)
			say(" %s", !ip || entry == ip ? "from the ip" : "from elsewhere");
	}
}

static void say_registers(struct rest *rest, const char *what, uint64_t mask)
{
	const unsigned int ip = 8;
	uint64_t abi = take(rest, 8);

	say(" %s abi %llu", what, (unsigned long long)abi);
	for (unsigned int i = 0; abi && i < 64; i++) {
		uint64_t value = mask >> i & 1 ? take(rest, 8) : 0;

		if (i == ip && mask >> i & 1)
			say_address("ip", value);
	}
}

static void say_stack(struct rest *rest)
{
	uint64_t size = take(rest, 8);

	say_count("stack", size);
	skip(rest, size);
	if (size)
		say(" %s", take(rest, 8) == size ? "whole" : "in part");
}

static void say_raw(struct rest *rest)
{
	uint64_t size = take(rest, 4);

	say_count("raw", size);
	skip(rest, size);
}

/* ---- bodies ---- */

static void say_where(struct rest *rest, const struct slot *slot, uint64_t *ip)
{
	if (has(slot, PERF_SAMPLE_IDENTIFIER))
		say_id("identifier", take(rest, 8));
	if (has(slot, PERF_SAMPLE_IP))
		say_address("ip", *ip = take(rest, 8));
	if (has(slot, PERF_SAMPLE_TID))
		say_tasks(rest);
	if (has(slot, PERF_SAMPLE_TIME))
		say_presence("time", take(rest, 8));
	if (has(slot, PERF_SAMPLE_ADDR))
		say_address("addr", take(rest, 8));
	if (has(slot, PERF_SAMPLE_ID))
		say_id("id", take(rest, 8));
	if (has(slot, PERF_SAMPLE_STREAM_ID))
		say_presence("stream", take(rest, 8));
	if (has(slot, PERF_SAMPLE_CPU))
		say_cpu(rest);
	if (has(slot, PERF_SAMPLE_PERIOD))
		say_count("period", take(rest, 8));
	if (has(slot, PERF_SAMPLE_READ))
		say_read(rest, slot);
}

static void say_costs(struct rest *rest, const struct slot *slot)
{
	if (has(slot, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		say_count("weight", take(rest, 8));
	if (has(slot, PERF_SAMPLE_DATA_SRC))
		say(" source %#llx", (unsigned long long)take(rest, 8));
	if (has(slot, PERF_SAMPLE_TRANSACTION))
		say_count("transaction", take(rest, 8));
}

static void say_sample(struct rest *rest, const struct slot *slot)
{
	uint64_t ip = 0;

	say_where(rest, slot, &ip);
	if (has(slot, PERF_SAMPLE_CALLCHAIN))
		say_chain(rest, ip);
	if (has(slot, PERF_SAMPLE_RAW))
		say_raw(rest);
	if (has(slot, PERF_SAMPLE_REGS_USER))
		say_registers(rest, "user", slot->attr.sample_regs_user);
	if (has(slot, PERF_SAMPLE_STACK_USER))
		say_stack(rest);
	say_costs(rest, slot);
	if (has(slot, PERF_SAMPLE_REGS_INTR))
		say_registers(rest, "intr", slot->attr.sample_regs_intr);
	if (has(slot, PERF_SAMPLE_PHYS_ADDR))
		skip(rest, 8); /* 0 where the kernel would have had to wait to know */
	if (has(slot, PERF_SAMPLE_CGROUP))
		say_presence("cgroup", take(rest, 8));
	if (has(slot, PERF_SAMPLE_DATA_PAGE_SIZE))
		say_count("data page", take(rest, 8));
	if (has(slot, PERF_SAMPLE_CODE_PAGE_SIZE))
		say_count("code page", take(rest, 8));
}

/* The string that the body ends in. */
static void say_string(struct rest *rest, const struct slot *slot)
{
	size_t size = (size_t)(rest->end - rest->at), trailer = trailer_size(slot);
	const char *string = (const char *)rest->at;

	if (size < trailer || !memchr(string, 0, size - trailer)) {
		rest->too_short = true;
		return;
	}
	say(" '%s'", string);
	skip(rest, size - trailer);
}

static void say_mapping(struct rest *rest, bool more, const struct slot *slot)
{
	say_tasks(rest);
	skip(rest, 8 + 8 + 8);
	if (more) {
		skip(rest, 8 + 8 + 8);
		say_count("prot", take(rest, 4));
		say(" flags %#llx", (unsigned long long)take(rest, 4));
	}
	say_string(rest, slot);
}

static void say_life(struct rest *rest)
{
	const char *pid = name_of_task((pid_t)take(rest, 4));
	const char *ppid = name_of_task((pid_t)take(rest, 4));
	const char *tid = name_of_task((pid_t)take(rest, 4));

	say(" %s/%s of %s/%s", pid, tid, ppid, name_of_task((pid_t)take(rest, 4)));
	say_presence("time", take(rest, 8));
}

static void say_namespaces(struct rest *rest)
{
	uint64_t nr;

	say_tasks(rest);
	say_count("nr", nr = take(rest, 8));
	skip(rest, nr < 100 ? nr * sizeof(struct perf_ns_link_info) : UINT64_MAX);
}

static void say_body(struct rest *rest, uint32_t type, const struct slot *slot)
{
	switch (type) {
	case PERF_RECORD_MMAP:
		say_mapping(rest, false, slot);
		break;
	case PERF_RECORD_MMAP2:
		say_mapping(rest, true, slot);
		break;
	case PERF_RECORD_LOST:
		say_id("id", take(rest, 8));
		say_count("lost", take(rest, 8));
		break;
	case PERF_RECORD_COMM:
		say_tasks(rest);
		say_string(rest, slot);
		break;
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
		say_life(rest);
		break;
	case PERF_RECORD_READ:
		say_tasks(rest);
		say_read(rest, slot);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		say_count("lost", take(rest, 8));
		break;
	case PERF_RECORD_NAMESPACES:
		say_namespaces(rest);
		break;
	default:
		say(" of a type that nobody asked for");
	}
	say_trailer(rest, slot);
}

void tell_record(const struct perf_event_header *header, const struct slot *slot)
{
	const unsigned char *record = (const unsigned char *)header;
	struct rest rest = {record + sizeof(*header), record + header->size, false};

	say(" type %u misc %#x size %u", header->type, header->misc, header->size);
	if (slot->shared) { /* whose it is, and so what it has, is not told by each */
		end_line();
		return;
	}
	if (header->type == PERF_RECORD_SAMPLE)
		say_sample(&rest, slot);
	else
		say_body(&rest, header->type, slot);
	if (rest.too_short)
		say(" TOO SHORT");
	else if (rest.at != rest.end)
		say(" and %d more", (int)(rest.end - rest.at));
	end_line();
}
