/* SPDX-License-Identifier: MIT */
/*
 * What stands around the data of a recording, as bytes:
 *
 *	file:	header | ids of each event | attrs | data ... | table of features | features
 *	pipe:	header | attr records | data ...
 *
 * In front of the data, as records, goes in both what can be known then: names and units of the
 * events, and facts of the machine.
 */
#ifndef LIB_PERFDATA_FRAME_H
#define LIB_PERFDATA_FRAME_H

#include "lib/perfdata/bytes.h"
#include "lib/perfdata/facts.h"
#include "lib/perfdata/format.h"

/* Fills in @header but for the size of the data and the features, and appends all up to the data.
 */
void tly_frame_start_file(const struct tly_facts *facts, struct tly_file_header *header,
			  struct tly_bytes *out);
/* Returns the event whose ids are too many for a record, with which a pipe cannot be; else NULL. */
const struct tly_written_event *tly_frame_start_pipe(const struct tly_facts *facts,
						     struct tly_bytes *out);

/* The features of a file whose data ends at @end; sets their bits in @header. */
void tly_frame_end_file(const struct tly_facts *facts, uint64_t end, struct tly_file_header *header,
			struct tly_bytes *out);

#endif
