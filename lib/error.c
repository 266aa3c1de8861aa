// SPDX-License-Identifier: MIT
#include "lib/error.h"

#include <stdarg.h>
#include <stdio.h>

int tly_error(struct tally_error *err, int code, const char *what, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->offset = TALLY_NO_OFFSET;
	err->remedy[0] = '\0';
	va_start(ap, what);
	vsnprintf(err->what, sizeof(err->what), what, ap);
	va_end(ap);
	return code;
}

int tly_error_remedy(struct tally_error *err, const char *remedy, ...)
{
	va_list ap;

	if (!err)
		return 0;
	va_start(ap, remedy);
	vsnprintf(err->remedy, sizeof(err->remedy), remedy, ap);
	va_end(ap);
	return err->code;
}

int tly_error_at(struct tally_error *err, uint64_t offset)
{
	if (!err)
		return 0;
	err->offset = offset;
	return err->code;
}
