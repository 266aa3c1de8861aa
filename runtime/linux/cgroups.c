// SPDX-License-Identifier: MIT
/* A cgroup is made by making its folder: then it is told to who records that. */
#include <linux/fcntl.h>

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/syscalls.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

static void tell(struct thread *thread, int64_t folder)
{
	int64_t cgroup = proc_cgroup_of((int)folder);
	char path[PROC_PATH];

	if (cgroup >= 0 && proc_cgroup_path((int)folder, path))
		core_cgroup_made(&thread->events, (uint64_t)cgroup, path);
}

/* mkdir and mkdirat */
int64_t sys_mkdir(struct thread *thread, struct syscall *call)
{
	const bool at = (uint32_t)call->number == __NR_mkdirat;
	const uint64_t parent = at ? call->args[0] : (uint64_t)AT_FDCWD, path = call->args[at];
	int64_t result = syscall_pass(thread, call), folder;

	if (result || !thread->events.events || !arena_events())
		return result;
	folder = sys(__NR_openat, parent, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0) {
		tell(thread, folder);
		sys(__NR_close, folder);
	}
	return result;
}
