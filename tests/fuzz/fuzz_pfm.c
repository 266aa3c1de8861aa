// SPDX-License-Identifier: MIT
/*
 * The parser of libtally-pfm's event strings. Input: one byte for the layer and the levels, then
 * the text. A full name that comes out must go in again and say the same.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <perfmon/pfmlib_perf_event.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_bare(const char *text, int levels)
{
	char *name = NULL, *again = NULL;
	pfm_pmu_encode_arg_t one = {.fstr = &name, .size = sizeof(one)};
	pfm_pmu_encode_arg_t two = {.fstr = &again, .size = sizeof(two)};

	if (pfm_get_os_event_encoding(text, levels, PFM_OS_NONE, &one) != PFM_SUCCESS) {
		require(!name && !one.codes);
		return;
	}
	require(pfm_find_event(text) >= 0);
	/* A mask that is default may take fewer modifiers than one that is named. */
	if (pfm_get_os_event_encoding(name, levels, PFM_OS_NONE, &two) == PFM_SUCCESS) {
		require(one.count == two.count && one.idx == two.idx);
		require(!memcmp(one.codes, two.codes, one.count * sizeof(*one.codes)));
	}
	free(name);
	free(again);
	free(one.codes);
	free(two.codes);
}

static void check_perf(const char *text, int levels, pfm_os_t os)
{
	struct perf_event_attr attr = {0};
	char *name = NULL;
	pfm_perf_encode_arg_t arg = {.attr = &attr, .fstr = &name, .size = sizeof(arg)};

	if (pfm_get_os_event_encoding(text, levels, os, &arg) != PFM_SUCCESS) {
		require(!name && !attr.type && !attr.config);
		return;
	}
	require(attr.precise_ip <= 3 && arg.cpu >= -1);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	require(pfm_initialize() == PFM_SUCCESS);
	text = strndup((const char *)data + 1, size - 1);
	require(text);
	if (*data % 3 == 0)
		check_bare(text, *data / 3 % 32);
	else
		check_perf(text, *data / 3 % 32, *data % 3);
	free(text);
	return 0;
}
