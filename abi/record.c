// SPDX-License-Identifier: MIT
/*
 * A record of the kernel other than a sample has a body of its own and then, with sample_id_all,
 * the trailer
 *
 *	TID TIME ID STREAM_ID CPU IDENTIFIER			a word each
 */
#include <tally/record.h>

#include <errno.h>
#include <string.h>

#include "abi/cursor.h"

/* Records from here on are perf.data's own, without a trailer: PERF_RECORD_USER_TYPE_START. */
#define USER_TYPE_START 64

#define BUILD_ID_MAX sizeof(((struct tally_mmap *)NULL)->build_id)

/* The string that fills the rest of the body. */
static const char *rest_as_string(const struct cursor *c)
{
	return memchr(c->p, '\0', c->left) ? (const char *)c->p : NULL;
}

/* The member of @attr at @offset, 0 when its size says that it has no such member. */
static uint64_t attr_u64(const struct perf_event_attr *attr, size_t offset)
{
	uint32_t size = attr->size ? attr->size : PERF_ATTR_SIZE_VER0;

	return size >= offset + WORD ? tally_u64((const uint8_t *)attr + offset) : 0;
}

void tally_record_format_init(struct tally_record_format *format,
			      const struct perf_event_attr *attr)
{
	*format = (struct tally_record_format){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.branch_sample_type =
			attr_u64(attr, offsetof(struct perf_event_attr, branch_sample_type)),
		.sample_regs_user =
			attr_u64(attr, offsetof(struct perf_event_attr, sample_regs_user)),
		.sample_regs_intr =
			attr_u64(attr, offsetof(struct perf_event_attr, sample_regs_intr)),
		.sample_id_all = attr->sample_id_all,
		.build_id = attr->build_id,
	};
	if (format->sample_id_all)
		format->trailer_size = bits(format->sample_type & ID_FIELDS) * WORD;
}

bool tally_record_id_position(const struct tally_record_format *format, size_t *in_sample,
			      size_t *from_end)
{
	uint64_t type = format->sample_type;

	*in_sample = 0;
	*from_end = WORD;
	if (!(type & PERF_SAMPLE_IDENTIFIER)) {
		if (!(type & PERF_SAMPLE_ID))
			return false;
		*in_sample = WORD * bits(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
		*from_end += WORD * bits(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	}
	if (!format->sample_id_all)
		*from_end = 0;
	return true;
}

bool tally_record_time_position(const struct tally_record_format *format, size_t *in_sample,
				size_t *from_end)
{
	uint64_t type = format->sample_type;

	if (!(type & PERF_SAMPLE_TIME))
		return false;
	*in_sample =
		WORD * bits(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID));
	*from_end = 0;
	if (format->sample_id_all)
		*from_end = WORD * bits(type & (ID_FIELDS & ~PERF_SAMPLE_TID));
	return true;
}

static bool take_trailer(const struct tally_record_format *format, struct cursor *c,
			 struct tally_sample_id *id)
{
	uint64_t type = format->sample_type;
	uint32_t reserved;

	if (!format->sample_id_all)
		return true;
	id->has = type & ID_FIELDS;
	return (!(type & PERF_SAMPLE_TID) || take_two_u32(c, &id->pid, &id->tid)) &&
	       (!(type & PERF_SAMPLE_TIME) || take_u64(c, &id->time)) &&
	       (!(type & PERF_SAMPLE_ID) || take_u64(c, &id->id)) &&
	       (!(type & PERF_SAMPLE_STREAM_ID) || take_u64(c, &id->stream_id)) &&
	       (!(type & PERF_SAMPLE_CPU) || take_two_u32(c, &id->cpu, &reserved)) &&
	       (!(type & PERF_SAMPLE_IDENTIFIER) || take_u64(c, &id->id));
}

/* Takes the trailer off the end of @body. */
static bool split_trailer(const struct tally_record_format *format, struct cursor *body,
			  struct tally_sample_id *id)
{
	struct cursor trailer;

	if (body->left < format->trailer_size)
		return false;
	body->left -= format->trailer_size;
	trailer = (struct cursor){body->p + body->left, format->trailer_size};
	return take_trailer(format, &trailer, id);
}

static const char short_body[] = "it is shorter than its type needs";
static const char open_string[] = "its string has no end";

/*
 * Whether the 24 bytes at @p, of a record that is marked to have a build-id, are one:
 *
 *	u8 size, u8 0, u16 0, u8 build_id[20]			and not
 *	u32 maj, u32 min, u64 ino, u64 ino_generation
 *
 * A kernel that gives a mapping to several events does not take the mark back (5.12 to 6.18 at
 * least): behind an event that asked for build-ids, all others get it as well, on their device and
 * inode. So it is believed where it was asked for. Elsewhere a tool may have put build-ids into the
 * file later: then it has one of the sizes that linkers make, which no device's number has.
 */
static bool is_build_id(const struct tally_record_format *format, const uint8_t *p)
{
	static const uint8_t none[BUILD_ID_MAX];

	return format->build_id || ((p[0] == 16 || p[0] == 20) && memcmp(p + 1, none, 3) == 0 &&
				    memcmp(p + 4 + p[0], none, BUILD_ID_MAX - p[0]) == 0);
}

static const char *decode_mmap(const struct tally_record_format *format, struct cursor *c,
			       struct tally_record *record)
{
	struct tally_mmap *mmap = &record->mmap;
	size_t fixed = 4 * WORD;

	memset(mmap, 0, sizeof(*mmap));
	mmap->is_mmap2 = record->type == PERF_RECORD_MMAP2;
	if (mmap->is_mmap2)
		fixed += 4 * WORD;
	if (c->left < fixed)
		return short_body;
	next_two_u32(c, &mmap->pid, &mmap->tid);
	mmap->start = next_u64(c);
	mmap->len = next_u64(c);
	mmap->pgoff = next_u64(c);
	if (mmap->is_mmap2) {
		mmap->has_build_id =
			record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && is_build_id(format, c->p);
		if (mmap->has_build_id) {
			mmap->build_id_size = c->p[0];
			if (mmap->build_id_size > sizeof(mmap->build_id))
				return "its build-id is longer than 20 bytes";
			memcpy(mmap->build_id, c->p + 4, sizeof(mmap->build_id));
			c->p += 3 * WORD;
			c->left -= 3 * WORD;
		} else {
			next_two_u32(c, &mmap->maj, &mmap->min);
			mmap->ino = next_u64(c);
			mmap->ino_generation = next_u64(c);
		}
		next_two_u32(c, &mmap->prot, &mmap->flags);
	}
	mmap->filename = rest_as_string(c);
	return mmap->filename ? NULL : open_string;
}

static const char *decode_comm(struct cursor *c, struct tally_record *record)
{
	if (!take_two_u32(c, &record->comm.pid, &record->comm.tid))
		return short_body;
	record->comm.comm = rest_as_string(c);
	return record->comm.comm ? NULL : open_string;
}

static const char *decode_task(struct cursor *c, struct tally_record *record)
{
	struct tally_task *task = &record->task;

	if (c->left < 3 * WORD)
		return short_body;
	next_two_u32(c, &task->pid, &task->ppid);
	next_two_u32(c, &task->tid, &task->ptid);
	task->time = next_u64(c);
	return NULL;
}

static const char *decode_read(const struct tally_record_format *format, struct cursor *c,
			       struct tally_record *record)
{
	if (!take_two_u32(c, &record->read.pid, &record->read.tid))
		return short_body;
	return tly_take_read(format, c, &record->read.values)
		       ? NULL
		       : "its counter values run past its end";
}

static const char *decode_namespaces(struct cursor *c, struct tally_record *record)
{
	if (!take_two_u32(c, &record->namespaces.pid, &record->namespaces.tid) ||
	    !take_u64(c, &record->namespaces.nr))
		return short_body;
	return take_array(c, record->namespaces.nr, sizeof(struct perf_ns_link_info),
			  &record->namespaces.entries)
		       ? NULL
		       : "its namespaces run past its end";
}

static const char *decode_ksymbol(struct cursor *c, struct tally_record *record)
{
	uint32_t kind;

	if (c->left < 2 * WORD)
		return short_body;
	record->ksymbol.addr = next_u64(c);
	next_two_u32(c, &record->ksymbol.len, &kind);
	memcpy(&record->ksymbol.ksym_type, &kind, sizeof(uint16_t));
	memcpy(&record->ksymbol.flags, (const uint8_t *)&kind + 2, sizeof(uint16_t));
	record->ksymbol.name = rest_as_string(c);
	return record->ksymbol.name ? NULL : open_string;
}

static const char *decode_bpf_event(struct cursor *c, struct tally_record *record)
{
	uint32_t kind;

	if (c->left < WORD + sizeof(record->bpf_event.tag))
		return short_body;
	next_two_u32(c, &kind, &record->bpf_event.id);
	memcpy(&record->bpf_event.type, &kind, sizeof(uint16_t));
	memcpy(&record->bpf_event.flags, (const uint8_t *)&kind + 2, sizeof(uint16_t));
	memcpy(record->bpf_event.tag, c->p, sizeof(record->bpf_event.tag));
	return NULL;
}

static const char *decode_cgroup(struct cursor *c, struct tally_record *record)
{
	if (!take_u64(c, &record->cgroup.id))
		return short_body;
	record->cgroup.path = rest_as_string(c);
	return record->cgroup.path ? NULL : open_string;
}

static const char *decode_text_poke(struct cursor *c, struct tally_record *record)
{
	const void *lengths, *bytes;

	if (!take_u64(c, &record->text_poke.addr) || !take_bytes(c, 4, &lengths))
		return short_body;
	memcpy(&record->text_poke.old_len, lengths, sizeof(uint16_t));
	memcpy(&record->text_poke.new_len, (const uint8_t *)lengths + 2, sizeof(uint16_t));
	if (!take_bytes(c, (uint64_t)record->text_poke.old_len + record->text_poke.new_len, &bytes))
		return "its code bytes run past its end";
	record->text_poke.bytes = bytes;
	return NULL;
}

/* Returns how the body contradicts the record's size, or NULL. */
static const char *decode_body(const struct tally_record_format *format, struct cursor *c,
			       struct tally_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return decode_mmap(format, c, record);
	case PERF_RECORD_LOST:
		return take_u64(c, &record->lost.id) && take_u64(c, &record->lost.lost)
			       ? NULL
			       : short_body;
	case PERF_RECORD_COMM:
		return decode_comm(c, record);
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
		return decode_task(c, record);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return take_u64(c, &record->throttle.time) && take_u64(c, &record->throttle.id) &&
				       take_u64(c, &record->throttle.stream_id)
			       ? NULL
			       : short_body;
	case PERF_RECORD_READ:
		return decode_read(format, c, record);
	case PERF_RECORD_AUX:
		return take_u64(c, &record->aux.offset) && take_u64(c, &record->aux.size) &&
				       take_u64(c, &record->aux.flags)
			       ? NULL
			       : short_body;
	case PERF_RECORD_ITRACE_START:
		return take_two_u32(c, &record->itrace_start.pid, &record->itrace_start.tid)
			       ? NULL
			       : short_body;
	case PERF_RECORD_LOST_SAMPLES:
		return take_u64(c, &record->lost_samples.lost) ? NULL : short_body;
	case PERF_RECORD_SWITCH:
		record->context_switch.pid = 0;
		record->context_switch.tid = 0;
		return NULL;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_two_u32(c, &record->context_switch.pid, &record->context_switch.tid)
			       ? NULL
			       : short_body;
	case PERF_RECORD_NAMESPACES:
		return decode_namespaces(c, record);
	case PERF_RECORD_KSYMBOL:
		return decode_ksymbol(c, record);
	case PERF_RECORD_BPF_EVENT:
		return decode_bpf_event(c, record);
	case PERF_RECORD_CGROUP:
		return decode_cgroup(c, record);
	case PERF_RECORD_TEXT_POKE:
		return decode_text_poke(c, record);
	case PERF_RECORD_AUX_OUTPUT_HW_ID:
		return take_u64(c, &record->aux_output_hw_id.hw_id) ? NULL : short_body;
	default:
		return NULL;
	}
}

long tally_record_decode(const struct tally_record_format *format, const void *buf, size_t size,
			 struct tally_record *record, const char **why)
{
	struct perf_event_header header;
	const char *wrong = NULL;
	struct cursor c;

	if (size < sizeof(header))
		return -EAGAIN;
	memcpy(&header, buf, sizeof(header));
	if (header.size > size)
		return -EAGAIN;
	record->type = header.type;
	record->misc = header.misc;
	record->size = header.size;
	record->raw = buf;
	record->body = (const uint8_t *)buf + sizeof(header);
	record->body_size = 0;
	memset(&record->id, 0, sizeof(record->id));
	if (header.size < sizeof(header)) {
		wrong = "its size is less than its own header's";
		goto bad;
	}
	record->body_size = header.size - sizeof(header);
	c = (struct cursor){record->body, record->body_size};
	if (record->type == PERF_RECORD_SAMPLE) {
		wrong = tly_decode_sample(format, &c, record);
	} else if (record->type < USER_TYPE_START) {
		if (split_trailer(format, &c, &record->id)) {
			record->body_size = c.left;
			wrong = decode_body(format, &c, record);
		} else {
			wrong = "it is shorter than its sample_id trailer";
		}
	}
	if (!wrong)
		return header.size;
bad:
	if (why)
		*why = wrong;
	return -EBADMSG;
}

const char *tally_record_type_name(uint32_t type)
{
	static const char *const names[] = {
		[PERF_RECORD_MMAP] = "MMAP",
		[PERF_RECORD_LOST] = "LOST",
		[PERF_RECORD_COMM] = "COMM",
		[PERF_RECORD_EXIT] = "EXIT",
		[PERF_RECORD_THROTTLE] = "THROTTLE",
		[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
		[PERF_RECORD_FORK] = "FORK",
		[PERF_RECORD_READ] = "READ",
		[PERF_RECORD_SAMPLE] = "SAMPLE",
		[PERF_RECORD_MMAP2] = "MMAP2",
		[PERF_RECORD_AUX] = "AUX",
		[PERF_RECORD_ITRACE_START] = "ITRACE_START",
		[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
		[PERF_RECORD_SWITCH] = "SWITCH",
		[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
		[PERF_RECORD_NAMESPACES] = "NAMESPACES",
		[PERF_RECORD_KSYMBOL] = "KSYMBOL",
		[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
		[PERF_RECORD_CGROUP] = "CGROUP",
		[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
		[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}
