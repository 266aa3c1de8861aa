// SPDX-License-Identifier: MIT
#include "lib/error.h"

#include <stdarg.h>
#include <stdio.h>

/*
 * The code of this thread's last error that nobody wants to read about. tly_error_remedy() and
 * tly_error_at() follow a tly_error() at once and must return its code even then: a 0 would be
 * taken for success.
 */
static _Thread_local int unread_code;

int tly_error(struct tally_error *err, int code, const char *what, ...)
{
	va_list ap;

	if (!err) {
		unread_code = code;
		return code;
	}
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
		return unread_code;
	va_start(ap, remedy);
	vsnprintf(err->remedy, sizeof(err->remedy), remedy, ap);
	va_end(ap);
	return err->code;
}

int tly_error_at(struct tally_error *err, uint64_t offset)
{
	if (!err)
		return unread_code;
	err->offset = offset;
	return err->code;
}
