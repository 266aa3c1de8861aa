/* SPDX-License-Identifier: MIT */
/* Where the data of a memory access came from: PERF_SAMPLE_DATA_SRC in words. */
#ifndef TOOL_DATA_SOURCE_H
#define TOOL_DATA_SOURCE_H

#include <stdint.h>

#include "tool/buffer.h"

enum data_source_part {
	DATA_SOURCE_OP,
	DATA_SOURCE_LEVEL,
	DATA_SOURCE_SNOOP,
	DATA_SOURCE_TLB,
	DATA_SOURCE_LOCK,
	DATA_SOURCE_BLOCKED,
	NR_DATA_SOURCE_PARTS,
};

/* "op", "level", ... */
const char *data_source_name(enum data_source_part part);
/* "L1 hit" */
void data_source_words(uint64_t value, enum data_source_part part, struct buffer *buffer);
/* All parts on a line, in the shape of perf script. */
void data_source_text(uint64_t value, struct buffer *buffer);

#endif
