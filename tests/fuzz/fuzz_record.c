// SPDX-License-Identifier: MIT
/*
 * The record decoder. Input: the seven words below, then the record. All that a decoded record
 * points to is read, so that the sanitizer sees a pointer or a count that leads out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct {
		uint64_t sample_type, read_format, branch_sample_type, regs_user, regs_intr, flags;
	} head;
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct tally_record_format format;
	struct tally_read_values read;
	struct tally_record record;
	uint8_t *exact;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	attr.sample_type = head.sample_type;
	attr.read_format = head.read_format;
	attr.branch_sample_type = head.branch_sample_type;
	attr.sample_regs_user = head.regs_user;
	attr.sample_regs_intr = head.regs_intr;
	attr.sample_id_all = head.flags & 1;
	attr.build_id = head.flags >> 1 & 1;
	tally_record_format_init(&format, &attr);

	exact = malloc(size ? size : 1);
	if (!exact)
		return 0;
	memcpy(exact, data, size);
	if (tally_record_decode(&format, exact, size, &record, NULL) > 0)
		touch_record(&format, &record);
	if (tally_read_decode(&format, exact, size, &read) > 0)
		touch_read(&format, &read);
	free(exact);
	return 0;
}
