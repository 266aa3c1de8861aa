// SPDX-License-Identifier: MIT
/* Whether an event opens on this machine: asked of the kernel, by opening and closing it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/attr.h>

#include "tool/list.h"

static int try_open(const struct tally_event *event)
{
	pid_t pid = 0;
	int cpu = -1, fd;

	/* Units outside of the processors count for the machine, on the processors they name. */
	if (*event->cpus) {
		pid = -1;
		cpu = atoi(event->cpus);
	}
	event->attr->disabled = 1;
	fd = tally_attr_open(event->attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC, NULL);
	if (fd == -EACCES && !event->attr->exclude_kernel && pid == 0) {
		/* What users may count is their own half; some units cannot tell it apart. */
		event->attr->exclude_kernel = event->attr->exclude_hv = 1;
		fd = tally_attr_open(event->attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC, NULL);
		if (fd == -EINVAL)
			fd = -EACCES;
	}
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

enum list_state list_try(const char *name)
{
	struct tally_events *events = tally_events_new();
	enum list_state state = LIST_UNTRIED;

	if (events && !tally_events_parse(events, name, 0, NULL)) {
		int ret = try_open(tally_events_at(events, 0));

		state = !ret						     ? LIST_AVAILABLE
			: ret == -EACCES || ret == -EPERM		     ? LIST_FORBIDDEN
			: ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM ? LIST_UNTRIED
									     : LIST_UNSUPPORTED;
	}
	tally_events_free(events);
	return state;
}
