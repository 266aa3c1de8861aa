// SPDX-License-Identifier: MIT
#include "tool/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool tool_colours(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
}

bool tool_utf8(void)
{
	return setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8");
}

int tool_columns(FILE *out, int fallback)
{
	struct winsize size;

	if (ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col)
		return fallback;
	return size.ws_col;
}

void tool_wrap(FILE *out, const char *text, int indent, int columns)
{
	int column = indent;

	for (const char *word = text; *word;) {
		int length = (int)strcspn(word, " ");

		if (column > indent && column + 1 + length > columns) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", length, word);
		column += length;
		word += length;
		word += strspn(word, " ");
	}
	fputc('\n', out);
}
