// SPDX-License-Identifier: MIT
#include "runtime/linux/event_passed_count.h"

#include <linux/perf_event.h>

#include "core/event.h"
#include "core/read_format.h"
#include "runtime/sys.h"

/* What the event at @fd, which leads its group or is by itself, gives in @format. */
static void read_count(int fd, uint64_t format, struct core_count *count)
{
	const bool group = format & PERF_FORMAT_GROUP;
	uint64_t words[256], *at = words;
	const int64_t n = sys(__NR_read, fd, words, sizeof(words)) / (int64_t)sizeof(words[0]);

	if (n <= (int64_t)(group + core_read_times(format)))
		return;
	at += group;
	if (!group)
		count->value = *at++;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		count->enabled = *at++;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		count->running = *at++;
	if (group)
		count->value = *at;
}

/* Times that its format leaves out another event reads that joins it for a moment; which the kernel
 * refuses while children live that have inherited it, and from then on its own reads as well. */
void event_passed_count(int fd, const struct perf_event_attr *of, int pid, int cpu,
			struct core_count *count)
{
	const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_GROUP | times,
		.disabled = 1,
		.inherit = of->inherit,
		.use_clockid = of->use_clockid,
		.clockid = of->clockid,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int64_t other;

	read_count(fd, of->read_format, count);
	if ((of->read_format & times) == times)
		return;
	other = sys(__NR_perf_event_open, &attr, pid, cpu, fd, PERF_FLAG_FD_CLOEXEC);
	if (other < 0)
		return;
	read_count((int)other, attr.read_format, count);
	sys(__NR_close, other);
}
