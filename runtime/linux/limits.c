// SPDX-License-Identifier: MIT
#include "runtime/linux/limits.h"

#include <asm/errno.h>
#include <linux/resource.h>

#include "abi/limits.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/files.h"
#include "runtime/linux/fixed.h"
#include "runtime/linux/syscalls.h"
#include "runtime/say.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

_Static_assert(LIMITS_DATA >=
		       2 * (TRANSLATE_CODE_SIZE + TRANSLATE_META_SIZE + TRANSLATE_TABLE_SIZE) +
			       (64UL << 20),
	       "");

struct limit {
	uint64_t now, max;
};

/* What of the resource belongs to the runtime. */
static uint64_t ours(uint64_t resource)
{
	switch ((uint32_t)resource) {
	case RLIMIT_AS:
		return arena_reserves() ? LIMITS_SPACE : LIMITS_LEAST_SPACE;
	case RLIMIT_DATA:
		return LIMITS_DATA;
	default:
		return 0;
	}
}

/* Whether the process is one of this run. */
static bool runs(int64_t pid)
{
	char path[32];

	if (!pid)
		return true;
	format(path, sizeof(path), "/proc/%d/exe", pid);
	return files_lead_to_runtime(-1, path);
}

/* prlimit(2) in terms of the program; @to and @old may be NULL. */
static int64_t change(int64_t pid, uint64_t resource, const struct limit *to, struct limit *old)
{
	const uint64_t part = ours(resource);
	struct limit before, wanted;
	int64_t error = sys(__NR_prlimit64, pid, resource, NULL, &before);

	if (!error && to) {
		if (resource == RLIMIT_AS && to->now != LIMITS_NONE)
			fixed_end();
		wanted = (struct limit){limits_to_kernel(to->now, part),
					limits_to_kernel(to->max, part)};
		error = sys(__NR_prlimit64, pid, resource, &wanted, NULL);
		/* A limit from outside of the run that leaves no room for what is ours. */
		if (error == -EPERM && to->max <= before.max) {
			wanted.max = wanted.max < before.max ? wanted.max : before.max;
			wanted.now = wanted.now < before.max ? wanted.now : before.max;
			error = sys(__NR_prlimit64, pid, resource, &wanted, NULL);
		}
	}
	if (!error && old)
		*old = (struct limit){limits_to_program(before.now, part),
				      limits_to_program(before.max, part)};
	return error;
}

uint64_t limits_data(void)
{
	struct limit limit;

	return change(0, RLIMIT_DATA, NULL, &limit) ? LIMITS_NONE : limit.now;
}

/* Whose limit, which, and where in memory the new and the old one are. */
struct request {
	int64_t pid;
	uint64_t resource, to, old;
};

static struct request read_request(const struct syscall *call)
{
	const uint64_t *args = call->args;

	switch ((uint32_t)call->number) {
	case __NR_getrlimit:
		return (struct request){.resource = args[0], .old = args[1]};
	case __NR_setrlimit:
		return (struct request){.resource = args[0], .to = args[1]};
	default:
		return (struct request){(int)args[0], args[1], args[2], args[3]};
	}
}

int64_t sys_limit(struct thread *thread, struct syscall *call)
{
	const struct request request = read_request(call);
	struct limit to, old;
	int64_t error;

	/* Without an address there is nothing to adjust, or a mistake. */
	if (!ours(request.resource) || (!request.to && !request.old) || !runs(request.pid))
		return syscall_pass(thread, call);
	if (request.to && copy_in(&to, request.to, sizeof(to)))
		return -EFAULT;
	error = change(request.pid, request.resource, request.to ? &to : NULL, &old);
	if (!error && request.old)
		error = copy_out(request.old, &old, sizeof(old));
	return error;
}
