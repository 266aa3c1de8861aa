// SPDX-License-Identifier: MIT
#include "tool/registers.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define XMM_FIRST 32 /* two bits for each of 16, the low half first */
#define XMM_LAST  63

static const char *const x86[] = {"AX", "BX",	 "CX",	"DX",  "SI",  "DI",  "BP",  "SP",
				  "IP", "FLAGS", "CS",	"SS",  "DS",  "ES",  "FS",  "GS",
				  "R8", "R9",	 "R10", "R11", "R12", "R13", "R14", "R15"};

static const char *name_x86(unsigned int number, char scratch[REGISTER_NAME_SIZE])
{
	if (number < sizeof(x86) / sizeof(x86[0]))
		return x86[number];
	if (number < XMM_FIRST || number > XMM_LAST)
		return NULL;
	snprintf(scratch, REGISTER_NAME_SIZE, "XMM%u", (number - XMM_FIRST) / 2);
	return scratch;
}

static const char *name_arm64(unsigned int number, char scratch[REGISTER_NAME_SIZE])
{
	static const char *const special[] = {"lr", "sp", "pc"};

	if (number > 32)
		return NULL;
	if (number >= 30)
		return special[number - 30];
	snprintf(scratch, REGISTER_NAME_SIZE, "x%u", number);
	return scratch;
}

const char *register_name(const char *arch, unsigned int number, char scratch[REGISTER_NAME_SIZE])
{
	const char *name = NULL;
	struct utsname here;

	if (!arch)
		arch = uname(&here) ? "" : here.machine;
	if (!strcmp(arch, "x86_64") || (arch[0] == 'i' && !strcmp(arch + 2, "86")))
		name = name_x86(number, scratch);
	else if (!strcmp(arch, "aarch64"))
		name = name_arm64(number, scratch);
	if (name)
		return name;
	snprintf(scratch, REGISTER_NAME_SIZE, "r%u", number);
	return scratch;
}
