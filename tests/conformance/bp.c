// SPDX-License-Identifier: MIT
/* Hardware breakpoints: types, lengths, places, and how many there are. */
#include <linux/hw_breakpoint.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

/* Sixteen bytes on a boundary, with room on both sides. */
static volatile union {
	uint64_t words[6];
	unsigned char bytes[48];
} area __attribute__((aligned(16)));

#define MIDDLE (&area.bytes[16])

static int open_running(uint32_t type, const volatile void *at, uint64_t length)
{
	struct perf_event_attr attr = abi_breakpoint(type, at, length);

	attr.disabled = 0;
	return OPEN_SELF(&attr);
}

static const struct refused {
	struct abi_row about;
	uint32_t type;
	uint64_t length;
	int offset;
} refused[] = {
	{{"bp.type.empty", "EMPTY: EINVAL"}, HW_BREAKPOINT_EMPTY, 4, 0},
	{{"bp.type.combine", "X with R: EINVAL"}, HW_BREAKPOINT_X | HW_BREAKPOINT_R, 8, 0},
	{{"bp.type.combine", "X with W: EINVAL"}, HW_BREAKPOINT_X | HW_BREAKPOINT_W, 8, 0},
	{{"bp.type.combine", "all three: EINVAL"}, HW_BREAKPOINT_X | HW_BREAKPOINT_RW, 8, 0},
	{{"bp.len.invalid", "0: EINVAL"}, HW_BREAKPOINT_W, 0, 0},
	{{"bp.len.invalid", "3: EINVAL"}, HW_BREAKPOINT_W, 3, 0},
	{{"bp.len.invalid", "5: EINVAL"}, HW_BREAKPOINT_W, 5, 0},
	{{"bp.len.invalid", "6: EINVAL"}, HW_BREAKPOINT_W, 6, 0},
	{{"bp.len.invalid", "7: EINVAL"}, HW_BREAKPOINT_W, 7, 0},
	{{"bp.len.invalid", "9: EINVAL"}, HW_BREAKPOINT_W, 9, 0},
	{{"bp.len.invalid", "2^32 + 4: EINVAL"}, HW_BREAKPOINT_W, (1ULL << 32) + 4, 0},
	{{"bp.len.exec", "execute with 4: EINVAL"}, HW_BREAKPOINT_X, 4, 0},
	{{"bp.len.exec", "execute with 1: EINVAL"}, HW_BREAKPOINT_X, 1, 0},
	{{"bp.addr", "2 bytes at an odd address: EINVAL"}, HW_BREAKPOINT_W, 2, 1},
	{{"bp.addr", "4 bytes at 2 modulo 4: EINVAL"}, HW_BREAKPOINT_W, 4, 2},
	{{"bp.addr", "8 bytes at 4 modulo 8: EINVAL"}, HW_BREAKPOINT_W, 8, 4},
};

ABI_TABLE(refused)
{
	struct perf_event_attr attr = abi_breakpoint(row->type, MIDDLE + row->offset, row->length);

	close(open_running(HW_BREAKPOINT_W, MIDDLE, 4)); /* there are breakpoints at all */
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
}

ABI_CASE("bp.type.r", "x86 hardware cannot watch reads alone: EINVAL, or it counts reads only")
{
	struct perf_event_attr attr = abi_breakpoint(HW_BREAKPOINT_R, MIDDLE, 4);
	int fd;

	close(open_running(HW_BREAKPOINT_W, MIDDLE, 4));
	fd = perf_open(&attr, 0, -1, -1, 0);
	if (fd < 0) {
		CHECK_EQ(errno, EINVAL);
		return;
	}
	START(fd);
	work_store4(MIDDLE);
	CHECK_EQ(VALUE(fd), 0);
	work_load4(MIDDLE);
	CHECK_EQ(VALUE(fd), 1);
}

ABI_CASE("bp.type.w config.breakpoint-zero type.breakpoint", "one for each store, none for a load")
{
	int fd = open_running(HW_BREAKPOINT_W, MIDDLE, 4);

	for (int i = 1; i <= 5; i++) {
		work_store4(MIDDLE);
		work_load4(MIDDLE);
		CHECK_EQ(VALUE(fd), i);
	}
}

ABI_CASE("bp.type.rw", "a load and a store add one each")
{
	int fd = open_running(HW_BREAKPOINT_RW, MIDDLE, 4);

	for (int i = 1; i <= 5; i++) {
		work_store4(MIDDLE);
		CHECK_EQ(VALUE(fd), 2 * i - 1);
		work_load4(MIDDLE);
		CHECK_EQ(VALUE(fd), 2 * i);
	}
}

ABI_CASE("bp.type.x bp.len.exec", "one for each execution")
{
	int fd = open_running(HW_BREAKPOINT_X, (const void *)(uintptr_t)work_called, sizeof(long));

	work_calls(7);
	CHECK_EQ(VALUE(fd), 7);
	work_call_chain();
	CHECK_EQ(VALUE(fd), 8);
}

ABI_CASE("bp.addr", "an execute breakpoint may be at any byte")
{
	int fd = open_running(HW_BREAKPOINT_X, (const char *)(uintptr_t)work_called + 1,
			      sizeof(long));

	work_calls(3);
	CHECK_EQ(VALUE(fd), 3);
}

static const struct length {
	struct abi_row about;
	unsigned int bytes;
} lengths[] = {
	{{"bp.len.1", "1 byte"}, 1},
	{{"bp.len.2", "2 bytes"}, 2},
	{{"bp.len.4", "4 bytes"}, 4},
	{{"bp.len.8", "8 bytes"}, 8},
};

ABI_TABLE(lengths)
{
	int fd = open_running(HW_BREAKPOINT_W, MIDDLE, row->bytes);
	uint64_t inside = 0;

	for (int i = -8; i < 16; i++)
		work_store1(MIDDLE + i);
	CHECK_EQ(VALUE(fd), row->bytes);
	/* a wide store that touches the range counts once */
	work_store8(MIDDLE);
	CHECK_EQ(VALUE(fd), row->bytes + 1);
	work_store8(MIDDLE + 8);
	work_store8(MIDDLE - 8);
	inside = VALUE(fd);
	CHECK_EQ(inside, row->bytes + 1);
}

ABI_CASE("type.breakpoint config.breakpoint-zero", "a nonzero config is tolerated")
{
	struct perf_event_attr attr = abi_breakpoint(HW_BREAKPOINT_W, MIDDLE, 4);
	int fd;

	attr.config = 12345;
	attr.disabled = 0;
	fd = OPEN_SELF(&attr);
	work_store4(MIDDLE);
	CHECK_EQ(VALUE(fd), 1);
}

#define KERNEL_ADDRESS 0xffffffff81000000ULL

ABI_CASE("bp.kernel-address errno.eperm", "an ordinary user: refused; with exclude_kernel: EINVAL")
{
	struct perf_event_attr attr = abi_breakpoint(HW_BREAKPOINT_W, (void *)KERNEL_ADDRESS, 4);

	close(open_running(HW_BREAKPOINT_W, MIDDLE, 4));
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	abi_drop_rights();
	abi_need_level(-1, 2);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.exclude_kernel = 0;
	if (abi_paranoid() >= 2)
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
	else
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EPERM);
}

ABI_CASE("bp.slots errno.enospc.open",
	 "one more than the hardware has: ENOSPC; closing one makes room")
{
	int fds[64], count = 0, more;

	while (count < 64) {
		struct perf_event_attr attr =
			abi_breakpoint(HW_BREAKPOINT_W, &area.words[count % 6], 8);

		fds[count] = perf_open(&attr, 0, -1, -1, 0);
		if (fds[count] < 0)
			break;
		count++;
	}
	if (count == 64)
		CANNOT("there is room for 64 breakpoints");
	if (count == 0)
		abi_need_events();
	CHECK_EQ(errno, ENOSPC);
	CHECK_CMP(count, >, 0);
	CHECK_OK(close(fds[0]));
	more = open_running(HW_BREAKPOINT_W, MIDDLE, 4);
	work_store4(MIDDLE);
	CHECK_EQ(VALUE(more), 1);
}
