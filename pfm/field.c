// SPDX-License-Identifier: MIT
/* Fields of perf_event_attr.config, config1 and config2, as format/ in sysfs describes them. */
#include <stdlib.h>
#include <string.h>

#include "pfm/sysfs.h"

static bool take_number(const char **text, unsigned int limit, unsigned int *number)
{
	char *end;
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	value = strtoul(*text, &end, 10);
	*text = end;
	*number = value;
	return value < limit;
}

bool tly_pfm_field_parse(const char *text, struct sysfs_field *field)
{
	static const char config[] = "config";
	unsigned int first, last;

	if (strncmp(text, config, strlen(config)) != 0)
		return false;
	text += strlen(config);
	field->config = 0;
	field->bits = 0;
	if (*text != ':' && *text != '\0' && !take_number(&text, SYSFS_CONFIGS, &field->config))
		return false;
	if (*text == '\0')
		field->bits = ~0ULL;
	while (*text == ':' || (*text == ',' && field->bits)) {
		text++;
		if (!take_number(&text, 64, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!take_number(&text, 64, &last) || last < first)
				return false;
		}
		field->bits |= ~0ULL >> (63 - last) & ~0ULL << first;
	}
	return *text == '\0' && field->bits;
}

uint64_t tly_pfm_field_get(const struct sysfs_field *field, const uint64_t *config)
{
	uint64_t value = 0;
	unsigned int at = 0;

	for (uint64_t rest = field->bits; rest; rest &= rest - 1)
		value |= (config[field->config] >> __builtin_ctzll(rest) & 1) << at++;
	return value;
}

bool tly_pfm_field_set(const struct sysfs_field *field, uint64_t value, uint64_t *config)
{
	unsigned int width = __builtin_popcountll(field->bits);
	uint64_t word = config[field->config] & ~field->bits;

	if (width < 64 && value >> width)
		return false;
	for (uint64_t rest = field->bits; rest; rest &= rest - 1, value >>= 1)
		word |= (value & 1) << __builtin_ctzll(rest);
	config[field->config] = word;
	return true;
}
