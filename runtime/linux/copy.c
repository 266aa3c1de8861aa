// SPDX-License-Identifier: MIT
#include "runtime/linux/copy.h"

#include <asm/errno.h>

#include "runtime/fs.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/own_memory.h"
#include "runtime/segment.h"
#include "runtime/translate/translate.h"

int64_t copy_bytes(void *to, const void *from, size_t size);
int64_t copy_eight(uint64_t *to, uint64_t from);
int64_t copy_string(char *to, const char *from, size_t size);

extern const char copy_faulty[], copy_faulty_end[], copy_faulted[];

int64_t copy_load(uint64_t *to, uint64_t from, unsigned int size);
int64_t copy_load_fs(uint64_t *to, uint64_t from, unsigned int size);
int64_t copy_store(uint64_t to, uint64_t value, unsigned int size);
int64_t copy_code(uint64_t to[2], uint64_t from);

bool linux_load(uint64_t *value, uint64_t address, unsigned int size, bool fs)
{
	if (fs && segment_is_fs()) {
		address += fs_base();
		fs = false;
	}
	return !(__builtin_expect(fs, 0) ? copy_load_fs(value, address, size)
					 : copy_load(value, address, size));
}

bool linux_store(uint64_t address, uint64_t value, unsigned int size)
{
	return !copy_store(address, value, size);
}

bool linux_load_code(uint64_t code[2], uint64_t pc)
{
	return !copy_code(code, pc);
}

int64_t copy_from_any(void *to, uint64_t from, size_t size)
{
	return copy_bytes(to, (const void *)from, size);
}

int64_t copy_in(void *to, uint64_t from, size_t size)
{
	return own_has(from, size) ? -EFAULT : copy_from_any(to, from, size);
}

int64_t copy_word(uint64_t *to, uint64_t from)
{
	return own_has(from, sizeof(*to)) ? -EFAULT : copy_eight(to, from);
}

int64_t copy_out(uint64_t to, const void *from, size_t size)
{
	if (own_has(to, size))
		return -EFAULT;
	if (!copy_bytes((void *)to, from, size))
		return 0;
	/* It may be a page whose code has been translated: a stack that is executable. */
	memory_unwatch(to, size);
	return copy_bytes((void *)to, from, size);
}

int64_t copy_string_in(char *to, uint64_t from, size_t size)
{
	const size_t readable = own_before(from, size);
	const int64_t length = copy_string(to, (const char *)from, readable);

	return length == -ENAMETOOLONG && readable < size ? -EFAULT : length;
}

bool copy_fault(uint64_t *rip)
{
	if (*rip < (uint64_t)copy_faulty || *rip >= (uint64_t)copy_faulty_end)
		return false;
	*rip = (uint64_t)copy_faulted;
	return true;
}
