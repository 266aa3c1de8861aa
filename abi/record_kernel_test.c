// SPDX-License-Identifier: MIT
/* The decoder against rings that the running kernel filled. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/record_build.h"

#define RING_PAGES 64

struct ring {
	int fd;
	size_t page;
	struct perf_event_mmap_page *control;
	uint8_t *data;
};

static bool ring_open(struct ring *ring, struct perf_event_attr *attr)
{
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	ring->fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return false;
	ring->control = mmap(NULL, (1 + RING_PAGES) * ring->page, PROT_READ | PROT_WRITE,
			     MAP_SHARED, ring->fd, 0);
	if (ring->control == MAP_FAILED) {
		close(ring->fd);
		return false;
	}
	ring->data = (uint8_t *)ring->control + ring->page;
	return true;
}

static void ring_close(struct ring *ring)
{
	munmap(ring->control, (1 + RING_PAGES) * ring->page);
	close(ring->fd);
}

/* Faults in pages, which is what the events below count. */
static void touch_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p =
		mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < 8; i++)
		((volatile uint8_t *)p)[i * page] = 1;
	munmap(p, 8 * page);
}

static uint64_t sample_fields_accepted(struct perf_event_attr *attr)
{
	uint64_t accepted = 0;

	for (uint64_t bit = 1; bit < PERF_SAMPLE_MAX; bit <<= 1) {
		int fd;

		attr->sample_type = accepted | bit;
		fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			continue;
		close(fd);
		accepted |= bit;
	}
	attr->sample_type = accepted;
	return accepted;
}

/* Decodes all of the ring; each sample must end exactly where its decoded fields end. */
static size_t check_ring(struct ring *ring, struct perf_event_attr *attr)
{
	struct tally_record_format format;
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	size_t samples = 0;
	uint64_t id;

	assert_int_equal(ioctl(ring->fd, PERF_EVENT_IOC_ID, &id), 0);
	tally_record_format_init(&format, attr);
	assert_true(head < RING_PAGES * ring->page);
	for (uint64_t pos = 0; pos < head;) {
		struct tally_record record;
		const char *why = "";
		long size =
			tally_record_decode(&format, ring->data + pos, head - pos, &record, &why);
		size_t in_sample, from_end;

		if (size <= 0)
			fail_msg("record type %u at %llu: %s", record.type, (long long)pos, why);
		pos += (uint64_t)size;
		if (attr->sample_type & PERF_SAMPLE_TID)
			assert_int_equal(record.id.pid, getpid());
		if (tally_record_id_position(&format, &in_sample, &from_end))
			assert_int_equal(record.id.id, id);
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		if (attr->sample_type & PERF_SAMPLE_CODE_PAGE_SIZE)
			assert_int_equal(record.sample.code_page_size % ring->page, 0);
		if (attr->sample_type & PERF_SAMPLE_CALLCHAIN) {
			assert_true(record.sample.nr_ips > 0);
			assert_true(tally_u64(record.sample.ips) >= PERF_CONTEXT_MAX);
		}
		if (attr->sample_type & PERF_SAMPLE_STACK_USER) {
			assert_int_equal(record.sample.stack_size, 1024);
			assert_true(record.sample.stack_dyn_size > 0);
		}
		if (attr->sample_type & PERF_SAMPLE_REGS_USER) {
			uint64_t first, last;

			assert_int_equal(record.sample.regs_user.abi, PERF_SAMPLE_REGS_ABI_64);
			assert_true(tally_regs_get(&record.sample.regs_user, 0, &first));
			assert_true(tally_regs_get(&record.sample.regs_user, 8, &last));
			if (attr->sample_type & PERF_SAMPLE_IP)
				assert_int_equal(last, record.sample.ip);
		}
		if (attr->sample_type & PERF_SAMPLE_READ) {
			struct tally_read_entry entry =
				tally_read_entry(&format, &record.sample.read, 0);

			assert_int_equal(record.sample.read.nr, 1);
			assert_int_equal(entry.id, id);
			assert_true(entry.value > 0);
		}
	}
	return samples;
}

static struct perf_event_attr live_attr(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.size = PERF_ATTR_SIZE_VER5,
		.sample_period = 1,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.comm = 1,
		.sample_regs_user = 0x1ff, /* ax to ip */
		.sample_regs_intr = 0x1ff,
		.sample_stack_user = 1024,
	};
}

static void test_kernel_all_fields(void **state)
{
	struct perf_event_attr attr = live_attr();
	struct ring ring;

	(void)state;
	if (!sample_fields_accepted(&attr)) {
		print_message("perf_event_open refuses page-faults: %s\n", strerror(errno));
		skip();
	}
	assert_true(ring_open(&ring, &attr));
	touch_pages();
	ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_true(check_ring(&ring, &attr) >= 8);
	ring_close(&ring);
}

static void test_kernel_random_fields(void **state)
{
	struct perf_event_attr attr = live_attr();
	uint64_t accepted = sample_fields_accepted(&attr);

	(void)state;
	if (!accepted) {
		print_message("perf_event_open refuses page-faults: %s\n", strerror(errno));
		skip();
	}
	for (int i = 0; i < 60; i++) {
		struct ring ring;

		attr.sample_type = next_random() & accepted;
		attr.sample_id_all = next_random() & 1;
		assert_true(ring_open(&ring, &attr));
		touch_pages();
		ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
		if (attr.sample_id_all || !(attr.sample_type & ALL_IDS))
			assert_true(check_ring(&ring, &attr) >= 8);
		ring_close(&ring);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_all_fields),
		cmocka_unit_test(test_kernel_random_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
