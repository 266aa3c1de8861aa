// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/record.h>

#include "recorder.h"

enum { DATA = 256 * PAGE };

struct recorder recorder_begin(struct perf_event_attr attr)
{
	struct recorder r = {.attr = attr};

	r.attr.size = sizeof(attr);
	r.attr.disabled = 1;
	r.attr.exclude_kernel = 1;
	r.attr.precise_ip = 2;
	r.fd = (int)syscall(SYS_perf_event_open, &r.attr, 0, -1, -1, 0);
	if (r.fd < 0 && errno == ENOENT) {
		print_message("there is no such PMU");
		skip();
	}
	assert_return_code(r.fd, errno);
	r.page = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	assert_ptr_not_equal(r.page, MAP_FAILED);
	return r;
}

struct recorder recorder_begin_at(uint64_t config, uint64_t period, uint64_t sample_type)
{
	return recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = config,
		.sample_period = period,
		.sample_type = sample_type,
	});
}

void recorder_end(struct recorder *r)
{
	munmap(r->page, PAGE + DATA);
	close(r->fd);
}

void recorder_run(struct recorder *r, void (*work)(void *), void *argument)
{
	assert_return_code(ioctl(r->fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	work(argument);
	assert_return_code(ioctl(r->fd, PERF_EVENT_IOC_DISABLE, 0), errno);
}

const struct tally_sample *recorder_next(struct recorder *r)
{
	const unsigned char *data = (const unsigned char *)r->page + PAGE;
	struct tally_record_format format;
	const char *why = "";
	long size;

	tally_record_format_init(&format, &r->attr);
	assert_in_range(r->page->data_head, 0, DATA); /* nothing has been lost, nor gone around */
	do {
		if (r->tail == r->page->data_head)
			return NULL;
		size = tally_record_decode(&format, data + r->tail, r->page->data_head - r->tail,
					   &r->record, &why);
		if (size <= 0)
			fail_msg("%s", why);
		r->tail += (uint64_t)size;
		assert_int_not_equal(r->record.type, PERF_RECORD_LOST);
	} while (r->record.type != PERF_RECORD_SAMPLE);
	return &r->record.sample;
}

bool recorder_is_exact(const struct recorder *r)
{
	return r->record.misc & PERF_RECORD_MISC_EXACT_IP;
}
