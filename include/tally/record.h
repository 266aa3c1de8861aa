/* SPDX-License-Identifier: MIT */
/*
 * Records: what the kernel writes to a ring buffer and perf.data keeps, decoded into typed structs.
 *
 * Decoding copies no payload: pointers of a decoded record lead into the buffer it was decoded
 * from and are valid as long as that is. No size or count in the input is trusted; whatever does
 * not fit into the record's own size makes the decode fail, never read past it. All functions are
 * pure and thread-safe.
 *
 * Byte order is the machine's. Multi-byte loads need no alignment of the buffer.
 */
#ifndef TALLY_RECORD_H
#define TALLY_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What decides the layout of one event's records. Made from an attr; plain data, copy at will. */
struct tally_record_format {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint64_t sample_regs_intr;
	bool sample_id_all;
	bool build_id;	       /* mapping records with PERF_RECORD_MISC_MMAP_BUILD_ID mean it */
	uint16_t trailer_size; /* bytes of the sample_id trailer on non-sample records */
};

void tally_record_format_init(struct tally_record_format *format,
			      const struct perf_event_attr *attr);

/*
 * Where the event id and the time sit: bytes from the start of a PERF_RECORD_SAMPLE's body, and
 * bytes back from the end of any other record of the kernel (0: such records have none). The id is
 * what tells the events of one stream apart before their format is known; the time is what records
 * are ordered by, without decoding the rest.
 * Both return false when samples have no such field (without an id the stream can hold one event
 * only). The caller checks that the record is long enough.
 */
bool tally_record_id_position(const struct tally_record_format *format, size_t *in_sample,
			      size_t *from_end);
bool tally_record_time_position(const struct tally_record_format *format, size_t *in_sample,
				size_t *from_end);

/*
 * The sample_id trailer, or the same fields of a sample; has (PERF_SAMPLE_*) says which are
 * present, the others are zero.
 */
struct tally_sample_id {
	uint64_t has; /* subset of TID TIME ID STREAM_ID CPU IDENTIFIER */
	uint32_t pid, tid;
	uint64_t time; /* nanoseconds of the attr's clock */
	uint64_t id;   /* of ID or IDENTIFIER */
	uint64_t stream_id;
	uint32_t cpu;
};

/* PERF_SAMPLE_READ, and PERF_RECORD_READ: ABI read.* */
struct tally_read_values {
	uint64_t nr; /* 1 without PERF_FORMAT_GROUP */
	uint64_t time_enabled, time_running;
	const void *entries; /* read with tally_read_entry() */
};
struct tally_read_entry {
	uint64_t value, id, lost;
};
/* Entry @index of a decoded read; all zero past the end. */
struct tally_read_entry tally_read_entry(const struct tally_record_format *format,
					 const struct tally_read_values *read, uint64_t index);

/*
 * Decodes what read(2) of an event returns. Returns the bytes consumed, or -EINVAL when @size is
 * too short for what the format promises.
 */
long tally_read_decode(const struct tally_record_format *format, const void *buf, size_t size,
		       struct tally_read_values *read);

/* Registers of REGS_USER or REGS_INTR: one value per bit of mask, lowest bit first. */
struct tally_regs {
	uint64_t abi; /* PERF_SAMPLE_REGS_ABI_* */
	uint64_t mask;
	const uint64_t *values; /* unaligned; read with tally_u64() */
	unsigned int nr;
};
/* The value of perf register number @reg (PERF_REG_X86_*); false when it was not sampled. */
bool tally_regs_get(const struct tally_regs *regs, unsigned int reg, uint64_t *value);

/*
 * PERF_RECORD_SAMPLE. A field is present when its bit is in has; the others are zero. What a sample
 * shares with other records (TID TIME ID STREAM_ID CPU IDENTIFIER) is in tally_record.id.
 */
struct tally_sample {
	uint64_t has; /* the event's sample_type */
	uint64_t ip;
	uint64_t addr;
	uint64_t period;
	struct tally_read_values read;
	uint64_t nr_ips;     /* CALLCHAIN: leaf first, with PERF_CONTEXT_* markers among them */
	const uint64_t *ips; /* unaligned; read with tally_u64() */
	uint32_t raw_size;
	const void *raw;
	uint64_t nr_branches; /* BRANCH_STACK: newest first */
	uint64_t branch_hw_idx;
	const struct perf_branch_entry *branches; /* unaligned: copy out with memcpy */
	const uint64_t *branch_counters; /* unaligned; one per branch, or NULL (BRANCH_COUNTERS) */
	struct tally_regs regs_user;
	uint64_t stack_size;	 /* STACK_USER: bytes in the record */
	uint64_t stack_dyn_size; /* of them meaningful */
	const void *stack;
	uint64_t weight;   /* WEIGHT, or the three of WEIGHT_STRUCT in one word */
	uint64_t data_src; /* union perf_mem_data_src */
	uint64_t transaction;
	struct tally_regs regs_intr;
	uint64_t phys_addr;
	uint64_t cgroup;
	uint64_t data_page_size, code_page_size;
	uint64_t aux_size;
	const void *aux;
};

struct tally_mmap { /* PERF_RECORD_MMAP, PERF_RECORD_MMAP2 */
	uint32_t pid, tid;
	uint64_t start, len, pgoff;
	bool is_mmap2;
	bool has_build_id; /* PERF_RECORD_MISC_MMAP_BUILD_ID, where it is true */
	uint8_t build_id_size;
	uint8_t build_id[20];
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags; /* MMAP2 only */
	const char *filename; /* terminated within the record */
};

struct tally_task { /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/*
 * One decoded record. @type decides which member of the union is valid; records of user space
 * (PERF_RECORD_USER_TYPE_START and above, perf.data only) and types from the future have none and
 * keep body and body_size.
 */
struct tally_record {
	uint32_t type;	 /* PERF_RECORD_* */
	uint16_t misc;	 /* PERF_RECORD_MISC_* */
	uint32_t size;	 /* header included */
	const void *raw; /* the record, header first */
	const void *body;
	size_t body_size; /* without the sample_id trailer */
	struct tally_sample_id id;
	union {
		struct tally_sample sample;
		struct tally_mmap mmap;
		struct {
			uint32_t pid, tid;
			const char *comm;
		} comm;
		struct tally_task task;
		struct {
			uint64_t id, lost;
		} lost;
		struct {
			uint64_t lost;
		} lost_samples;
		struct {
			uint64_t time, id, stream_id;
		} throttle; /* THROTTLE, UNTHROTTLE */
		struct {
			uint32_t pid, tid;
			struct tally_read_values values;
		} read;
		struct {
			uint64_t offset, size, flags;
		} aux;
		struct {
			uint32_t pid, tid;
		} itrace_start;
		struct {
			uint32_t pid, tid; /* of the other task; valid for SWITCH_CPU_WIDE */
		} context_switch;
		struct {
			uint32_t pid, tid;
			uint64_t nr;
			const void *entries; /* of { u64 dev, inode } */
		} namespaces;
		struct {
			uint64_t addr;
			uint32_t len;
			uint16_t ksym_type, flags;
			const char *name;
		} ksymbol;
		struct {
			uint16_t type, flags;
			uint32_t id;
			uint8_t tag[8];
		} bpf_event;
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
		struct {
			uint64_t addr;
			uint16_t old_len, new_len;
			const uint8_t *bytes; /* old, then new */
		} text_poke;
		struct {
			uint64_t hw_id;
		} aux_output_hw_id;
	};
};

/*
 * Decodes the record at @buf, of which @size bytes may be read. Returns the record's size, or
 *  -EAGAIN  @size is too short for the header's size: more input is needed
 *  -EBADMSG the record contradicts itself; *@why (may be NULL) is a static string that says how,
 *           and @record has the header fields only
 */
long tally_record_decode(const struct tally_record_format *format, const void *buf, size_t size,
			 struct tally_record *record, const char **why);

/* "SAMPLE", "MMAP2", ...; NULL for a type that is not documented. */
const char *tally_record_type_name(uint32_t type);

/* The words of records need not be aligned; those of call chains and branch stacks are read so. */
static inline uint64_t tally_u64(const void *p)
{
	uint64_t value;

	__builtin_memcpy(&value, p, sizeof(value));
	return value;
}

#ifdef __cplusplus
}
#endif

#endif
