/* SPDX-License-Identifier: MIT */
/*
 * The bytes of perf.data that the kernel's headers do not describe. docs/perfdata.md draws them.
 * Everything is in the byte order of the machine that recorded.
 */
#ifndef LIB_PERFDATA_FORMAT_H
#define LIB_PERFDATA_FORMAT_H

#include <stdint.h>

#define TLY_MAGIC     "PERFILE2"
#define TLY_MAGIC_V1  "PERFFILE"
#define TLY_MAGIC_BSW "2ELIFREP" /* version 2, from a machine of the other byte order */

struct tly_section {
	uint64_t offset, size;
};

struct tly_file_header {
	char magic[8];
	uint64_t size;	    /* of this struct */
	uint64_t attr_size; /* of one entry of the attrs section: attr and struct tly_section */
	struct tly_section attrs, data, event_types;
	uint64_t features[4];
};

struct tly_pipe_header {
	char magic[8];
	uint64_t size; /* of this struct: what tells a pipe from a file */
};

enum tly_feature {
	TLY_FEATURE_TRACING_DATA = 1,
	TLY_FEATURE_BUILD_ID = 2,
	TLY_FEATURE_HOSTNAME = 3,
	TLY_FEATURE_OSRELEASE = 4,
	TLY_FEATURE_VERSION = 5,
	TLY_FEATURE_ARCH = 6,
	TLY_FEATURE_NRCPUS = 7,
	TLY_FEATURE_CPUDESC = 8,
	TLY_FEATURE_CPUID = 9,
	TLY_FEATURE_TOTAL_MEM = 10,
	TLY_FEATURE_CMDLINE = 11,
	TLY_FEATURE_EVENT_DESC = 12,
	TLY_FEATURE_PMU_MAPPINGS = 16,
	TLY_FEATURE_GROUP_DESC = 17,
	TLY_FEATURE_SAMPLE_TIME = 21,
	TLY_FEATURE_CLOCKID = 23,
	TLY_FEATURE_DIR_FORMAT = 24,
	TLY_FEATURE_COMPRESSED = 27,
	TLY_FEATURE_CLOCK_DATA = 29,
	TLY_FEATURE_LAST = 32, /* a HEADER_FEATURE record with this number ends the features */
	TLY_FEATURE_BITS = 256,
};

/* PERF_RECORD_HEADER_BUILD_ID, and an entry of the BUILD_ID feature. A file name follows. */
struct tly_build_id_record {
	uint32_t type;
	uint16_t misc, size;
	int32_t pid;
	uint8_t build_id[20];
	uint8_t build_id_size; /* valid with TLY_MISC_BUILD_ID_SIZE */
	uint8_t reserved[3];
};
#define TLY_MISC_BUILD_ID_SIZE (1u << 15)

/* PERF_RECORD_EVENT_UPDATE: header, u64 kind, u64 id, value */
enum tly_event_update {
	TLY_UPDATE_UNIT = 0,
	TLY_UPDATE_SCALE = 1,
	TLY_UPDATE_NAME = 2,
	TLY_UPDATE_CPUS = 3,
};

#define TLY_COMPRESSION_ZSTD 1

#endif
