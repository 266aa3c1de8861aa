// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "lib/symbol/cfi.h"
#include "lib/symbol/machine.h"

struct tly_cfi {
	char unused;
};

void tly_cfi_free(struct tly_cfi *cfi)
{
	free(cfi);
}

size_t tally_machine_unwind(struct tally_machine *machine, uint32_t pid, uint64_t time,
			    const struct tally_sample *sample, uint64_t *ips, size_t max,
			    bool *truncated)
{
	(void)machine, (void)pid, (void)time;
	if (truncated)
		*truncated = true;
	if (max)
		ips[0] = sample->ip;
	return max ? 1 : 0;
}
