// SPDX-License-Identifier: MIT
/* Where an event of the unit of probes is to be: what perf_event_open(2) looks up for it. */
#include "runtime/linux/event_probe.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>

#include "core/core.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/files.h"
#include "runtime/linux/uprobes.h"
#include "runtime/sys.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

/* Of the kernel's own numbers, but what it says: it cannot execute that in another place. */
#define ENOTSUPP 524

/* ---- the path ---- */

/* As the kernel reads a file that it executes. */
static bool has_pages(const char *path)
{
	struct statfs fs;

	return sys(__NR_statfs, path, &fs) || fs.f_type != PROC_SUPER_MAGIC;
}

static int64_t find_file(uint64_t from, struct stat *file)
{
	char path[PATH_MAX + 16];
	int64_t length, error;

	if (!from)
		return -EINVAL;
	length = copy_string_in(path, from, PATH_MAX);
	if (length < 0)
		return length == -ENAMETOOLONG ? -E2BIG : length;
	if (!length)
		return -EINVAL;
	files_program_link(AT_FDCWD, path);
	error = sys(__NR_newfstatat, AT_FDCWD, path, file, 0);
	if (error)
		return error;
	if (!S_ISREG(file->st_mode))
		return -EINVAL;
	return has_pages(path) ? 0 : -EIO;
}

/* ---- the instruction ---- */

enum { OPERAND_SIZE = 0x66, TWO_BYTES = 0x0f, MOV_TO_SEGMENT = 0x8e };

static bool is_between(uint8_t byte, uint8_t first, uint8_t last)
{
	return byte >= first && byte <= last;
}

static bool is_bad_prefix(uint8_t byte)
{
	enum { ES = 0x26, CS = 0x2e, SS = 0x36, DS = 0x3e, LOCK = 0xf0 };

	return byte == ES || byte == CS || byte == SS || byte == DS || byte == LOCK;
}

static bool is_prefix(uint8_t byte)
{
	/* FS, GS, operand and address size, repne and rep, REX */
	return is_between(byte, 0x64, 0x67) || is_between(byte, 0xf2, 0xf3) ||
	       is_between(byte, 0x40, 0x4f);
}

/* What is none in 64 bits, what only the kernel may execute, and interrupts. */
static bool is_bad_opcode(uint8_t byte)
{
	static const uint8_t bad[][2] = {
		{0x06, 0x07}, {0x0e, 0x0e}, {0x16, 0x17}, {0x1e, 0x1f}, {0x27, 0x27}, {0x2f, 0x2f},
		{0x37, 0x37}, {0x3f, 0x3f}, {0x60, 0x61}, {0x6c, 0x6f}, {0x82, 0x82}, {0x9a, 0x9a},
		{0xcc, 0xcf}, {0xd4, 0xd4}, {0xd6, 0xd6}, {0xe4, 0xe7}, {0xea, 0xea}, {0xec, 0xef},
		{0xf1, 0xf1}, {0xf4, 0xf4}, {0xfa, 0xfb},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (is_between(byte, bad[i][0], bad[i][1]))
			return true;
	return false;
}

/* Relative branches, which with 16 bits processors take in different ways. */
static bool is_branch(const uint8_t *opcode)
{
	return is_between(opcode[0], 0x70, 0x7f) || is_between(opcode[0], 0xe8, 0xe9) ||
	       opcode[0] == 0xeb || (opcode[0] == TWO_BYTES && is_between(opcode[1], 0x80, 0x8f));
}

/* Whether the kernel refuses to put a probe on it: as it is refused natively, byte by byte. */
static bool is_refused(const uint8_t code[INSN_MAX + 2])
{
	const uint8_t *opcode = code;
	bool short_operands = false;

	for (; opcode < code + INSN_MAX && (is_prefix(*opcode) || is_bad_prefix(*opcode));
	     opcode++) {
		if (is_bad_prefix(*opcode))
			return true;
		short_operands |= *opcode == OPERAND_SIZE;
	}
	if (is_bad_opcode(*opcode) || (short_operands && is_branch(opcode)))
		return true;
	/* to ss, behind which nothing interrupts */
	return *opcode == MOV_TO_SEGMENT && (opcode[1] >> 3 & 7) == 2;
}

/* As the kernel, which looks at the instruction where somebody has it mapped. */
static int64_t check_instruction(const struct core_probe *probe)
{
	const uint64_t at = uprobes_place(probe);
	uint8_t code[INSN_MAX + 2] = {0};

	if (!at || !linux_code(code, at, INSN_MAX))
		return 0;
	return is_refused(code) ? -ENOTSUPP : 0;
}

int64_t event_probe_find(const struct perf_event_attr *attr, struct core_file *to)
{
	const uint32_t counter = (uint32_t)(attr->config >> 32);
	struct stat file = {0};
	int64_t error;

	error = find_file(attr->uprobe_path, &file);
	if (error)
		return error;
	if ((int64_t)attr->probe_offset > file.st_size || counter % 2)
		return -EINVAL;
	*to = (struct core_file){file.st_dev, file.st_ino};
	return event_probe_check(attr, to);
}

int64_t event_probe_check(const struct perf_event_attr *attr, const struct core_file *file)
{
	const struct core_probe probe = {.file = *file, .offset = attr->probe_offset};

	return check_instruction(&probe);
}
