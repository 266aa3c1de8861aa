// SPDX-License-Identifier: MIT
#include "runtime/linux/code_files.h"

#include <asm/stat.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/sys.h"

static _Alignas(PAGE) struct store_file files[CODE_FILES_MAX];
static uint32_t nr_files; /* 0: nobody asks */
static uint64_t began;	  /* in nanoseconds */

uint64_t code_files_now(void)
{
	struct __kernel_timespec time = {0};

	sys(__NR_clock_gettime, CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000UL + (uint64_t)time.tv_nsec;
}

void code_files_boot(void)
{
	nr_files = 1;
	began = code_files_now();
}

const struct store_file *code_file(uint32_t number)
{
	return &files[number];
}

uint32_t code_files_known(void)
{
	return nr_files;
}

void code_files_copy(struct store_file *to)
{
	memcpy(to, files, sizeof(files));
}

/* A file that is changed within so much of the last time may look the same. */
#define SETTLED_NS 2000000000UL

bool code_file_identify(int fd, struct store_file *file)
{
	struct stat stat = {0};

	if (sys(__NR_fstat, fd, &stat) || !S_ISREG(stat.st_mode))
		return false;
	*file = (struct store_file){
		.device = stat.st_dev,
		.inode = stat.st_ino,
		.size = (uint64_t)stat.st_size,
		.modified = stat.st_mtime * 1000000000UL + stat.st_mtime_nsec,
		.changed = stat.st_ctime * 1000000000UL + stat.st_ctime_nsec,
	};
	return true;
}

bool code_file_same(const struct store_file *a, const struct store_file *b)
{
	return a->inode == b->inode && a->device == b->device && a->size == b->size &&
	       a->modified == b->modified && a->changed == b->changed;
}

bool code_file_is_settled(const struct store_file *file)
{
	return file->changed + SETTLED_NS <= began;
}

uint32_t code_file_number(int fd)
{
	struct store_file file;
	uint32_t n = 1;

	if (!nr_files || !code_file_identify(fd, &file))
		return 0;
	while (n < nr_files && !code_file_same(&files[n], &file))
		n++;
	if (n == CODE_FILES_MAX)
		return 0;
	files[n] = file;
	nr_files = n == nr_files ? n + 1 : nr_files;
	return n;
}
