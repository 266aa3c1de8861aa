// SPDX-License-Identifier: MIT
/*
 * The program's working folder, to which paths may be relative. Only where virtual files can be
 * near it has to be known: whether they are is asked of the kernel once, at the first path after it
 * has changed.
 */
#include <linux/limits.h>

#include "runtime/linux/syscalls.h"
#include "runtime/linux/virtual.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum { UNKNOWN, NEAR, FAR, ANSWERS = 4 };

/* The answer, and above it how often the folder has changed: who was asking meanwhile shall not
 * say where it was before. */
static uint32_t known;

static bool lies_near(const char *folder)
{
	return !strcmp(folder, "/") || !strncmp(folder, "/sys", 4) || !strncmp(folder, "/proc", 5);
}

bool virtual_near_here(void)
{
	uint32_t seen = __atomic_load_n(&known, __ATOMIC_ACQUIRE), answer = seen % ANSWERS;
	char folder[PATH_MAX];

	if (answer != UNKNOWN)
		return answer == NEAR;
	answer = sys(__NR_getcwd, folder, sizeof(folder)) > 0 && lies_near(folder) ? NEAR : FAR;
	__atomic_compare_exchange_n(&known, &seen, seen + answer, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return answer == NEAR;
}

bool virtual_from_here(const char *path, char *absolute, size_t size)
{
	const size_t more = strlen(path) + 2;
	int64_t length;

	if (!*path || more > size || !virtual_near_here())
		return false;
	/* with the end of the string, and that of the folder, which may be "/" */
	length = sys(__NR_getcwd, absolute, size - more);
	if (length <= 0)
		return false;
	absolute[length - 1] = '/';
	memcpy(absolute + length, path, more - 1);
	return true;
}

int64_t sys_chdir(struct thread *thread, struct syscall *call)
{
	const int64_t result = syscall_pass(thread, call);
	uint32_t seen = __atomic_load_n(&known, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&known, &seen, (seen / ANSWERS + 1) * ANSWERS, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return result;
}
