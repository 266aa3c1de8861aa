// SPDX-License-Identifier: MIT
#include "lib/counter/refusal.h"

#include <string.h>

#include "lib/error.h"

int tly_refusal_explain(const struct tly_refusal *refusal, struct tally_error *err)
{
	return tly_error(err, refusal->code, "%s cannot be opened: %s",
			 refusal->name ? refusal->name : "the event", strerror(-refusal->code));
}
