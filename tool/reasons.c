// SPDX-License-Identifier: MIT
#include "tool/reasons.h"

#include <stdbool.h>
#include <string.h>

#include "tool/terminal.h"

#define COLUMNS 80

size_t tool_reason(struct tool_reasons *reasons, const char *what, const char *remedy)
{
	for (size_t i = 0; i < reasons->nr; i++)
		if (!strcmp(reasons->list[i].what, what) &&
		    !strcmp(reasons->list[i].remedy, remedy))
			return i + 1;
	if (reasons->nr == TOOL_MAX_REASONS)
		return 0;
	reasons->list[reasons->nr].what = what;
	reasons->list[reasons->nr].remedy = remedy;
	return ++reasons->nr;
}

static void write_remedy(const char *remedy, FILE *out, int indent)
{
	static const char separator[] = ", or ";
	char way[1024];

	for (bool first = true; *remedy; first = false) {
		const char *end = strstr(remedy, separator);
		size_t length = end ? (size_t)(end - remedy) : strlen(remedy);

		snprintf(way, sizeof(way), "%s%.*s", first ? "" : "or ", (int)length, remedy);
		fprintf(out, "%*s", indent, "");
		tool_wrap(out, way, indent, COLUMNS);
		remedy += length;
		if (end)
			remedy += strlen(separator);
	}
}

void tool_reasons_write(const struct tool_reasons *reasons, FILE *out, int indent, const char *bold,
			const char *plain)
{
	for (size_t i = 0; i < reasons->nr; i++) {
		fprintf(out, "%*s%s[%zu]%s ", indent, "", bold, i + 1, plain);
		tool_wrap(out, reasons->list[i].what, indent + 4, COLUMNS);
		write_remedy(reasons->list[i].remedy, out, indent + 4);
	}
}
