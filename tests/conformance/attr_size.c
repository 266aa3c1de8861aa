// SPDX-License-Identifier: MIT
/* The size negotiation of struct perf_event_attr, its layout, and its reserved parts. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"

/* An attr in two pages, so that any size up to one page and a byte can be offered. */
static unsigned char *room(void)
{
	size_t length = 2 * (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *map =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	return map;
}

static struct perf_event_attr *offer(unsigned char *bytes, uint32_t size)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.size = size;
	memcpy(bytes, &attr, sizeof(attr));
	return (struct perf_event_attr *)(void *)bytes;
}

/* The size of the implementation's own structure, as E2BIG tells it. */
static uint32_t own_size(void)
{
	unsigned char *bytes = room();
	struct perf_event_attr *attr = offer(bytes, 8);

	CHECK_REFUSED(attr, 0, -1, -1, 0, E2BIG);
	CHECK(attr->size != 8);
	return attr->size;
}

static const struct published {
	struct abi_row about;
	uint32_t size, constant;
} published[] = {
	{{"attr.size-ver0", "64 bytes"}, 64, PERF_ATTR_SIZE_VER0},
	{{"attr.size-ver1", "72 bytes"}, 72, PERF_ATTR_SIZE_VER1},
	{{"attr.size-ver2", "80 bytes"}, 80, PERF_ATTR_SIZE_VER2},
	{{"attr.size-ver3", "96 bytes"}, 96, PERF_ATTR_SIZE_VER3},
	{{"attr.size-ver4", "104 bytes"}, 104, PERF_ATTR_SIZE_VER4},
	{{"attr.size-ver5", "112 bytes"}, 112, PERF_ATTR_SIZE_VER5},
	{{"attr.size-ver6", "120 bytes"}, 120, PERF_ATTR_SIZE_VER6},
	{{"attr.size-ver7", "128 bytes"}, 128, PERF_ATTR_SIZE_VER7},
};

/* What lies behind the offered size must not be looked at: it would be refused. */
ABI_TABLE(published)
{
	unsigned char *bytes = room();
	struct perf_event_attr *attr = offer(bytes, row->size);

	CHECK_EQ(row->constant, row->size);
	memset(bytes + row->size, 0xff, 4096 - row->size);
	OPEN_SELF(attr);
	CHECK_EQ(attr->size, row->size);
}

ABI_CASE("attr.size", "0 stands for 64; odd sizes between 64 and a page open")
{
	static const uint32_t sizes[] = {65, 68, 71, 100, 119, 127};
	unsigned char *bytes = room();
	struct perf_event_attr *attr = offer(bytes, 0);

	memset(bytes + 64, 0xff, 4096 - 64);
	OPEN_SELF(attr);
	CHECK_EQ(attr->size, 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(bytes, 0, 4096);
		offer(bytes, sizes[i]);
		OPEN_SELF(attr);
		CHECK_EQ(attr->size, sizes[i]);
	}
}

ABI_CASE("attr.size-larger-zero", "a page with a zero tail opens")
{
	unsigned char *bytes = room();
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr *attr = offer(bytes, page);

	OPEN_SELF(attr);
	CHECK_EQ(attr->size, page);
	bytes[page] = 1; /* behind the offer */
	OPEN_SELF(attr);
}

ABI_CASE("attr.size-larger-nonzero errno.e2big",
	 "a nonzero byte in the tail: E2BIG and the own size")
{
	uint32_t own = own_size(), page = (uint32_t)sysconf(_SC_PAGESIZE);
	const uint32_t ends[] = {own, own + 7, page - 1};

	CHECK_CMP(own, >=, PERF_ATTR_SIZE_VER0);
	CHECK_EQ(own % 8, 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		unsigned char *bytes = room();
		struct perf_event_attr *attr = offer(bytes, page);

		bytes[ends[i]] = 1;
		CHECK_REFUSED(attr, 0, -1, -1, 0, E2BIG);
		CHECK_EQ(attr->size, own);
		bytes[ends[i]] = 0;
		attr->size = page;
		OPEN_SELF(attr);
	}
}

ABI_CASE("attr.size-too-small errno.e2big",
	 "1 to 63: E2BIG and the own size, also from read-only memory")
{
	uint32_t own = own_size();
	unsigned char *bytes = room();
	struct perf_event_attr *attr;

	for (uint32_t size = 1; size < PERF_ATTR_SIZE_VER0; size++) {
		attr = offer(bytes, size);
		CHECK_REFUSED(attr, 0, -1, -1, 0, E2BIG);
		CHECK_EQ(attr->size, own);
	}
	attr = offer(bytes, 63);
	CHECK_OK(mprotect(bytes, 4096, PROT_READ));
	CHECK_REFUSED(attr, 0, -1, -1, 0, E2BIG);
	CHECK_EQ(attr->size, 63);
}

ABI_CASE("attr.size-too-big errno.e2big", "more than a page: E2BIG and the own size")
{
	uint32_t own = own_size(), page = (uint32_t)sysconf(_SC_PAGESIZE);
	const uint32_t sizes[] = {page + 1, 2 * page, UINT32_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_event_attr *attr = offer(room(), sizes[i]);

		CHECK_REFUSED(attr, 0, -1, -1, 0, E2BIG);
		CHECK_EQ(attr->size, own);
	}
}

static void set_bit(struct perf_event_attr *attr, unsigned int bit)
{
	uint64_t word;

	memcpy(&word, (char *)attr + 40, sizeof(word));
	word |= 1ULL << bit;
	memcpy((char *)attr + 40, &word, sizeof(word));
}

ABI_CASE("attr.reserved-bits errno.einval.masks", "each bit above sigtrap: EINVAL")
{
	/* a structure longer than any known one may have given the next bits a meaning */
	unsigned int first = own_size() > 136 ? 48 : 38;

	for (unsigned int bit = first; bit < 64; bit++) {
		struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

		set_bit(&attr, bit);
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	}
}

ABI_CASE("attr.reserved-fields errno.einval.masks",
	 "the u16 at 110 and the top bit of the u32 at 116: EINVAL")
{
	static const unsigned char places[] = {110, 111, 119};

	for (size_t i = 0; i < sizeof(places); i++) {
		struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

		((unsigned char *)&attr)[places[i]] = 0x80;
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	}
}

#define AT(member, place)                                                                          \
	{                                                                                          \
		.field = #member, .offset = offsetof(struct perf_event_attr, member),              \
		.wanted = place                                                                    \
	}

ABI_CASE("attr.layout-offsets attr.legacy-fields",
	 "each field of the header is where the documents put it")
{
	static const struct {
		const char *field;
		size_t offset, wanted;
	} fields[] = {
		AT(type, 0),
		AT(size, 4),
		AT(config, 8),
		AT(sample_period, 16),
		AT(sample_freq, 16),
		AT(sample_type, 24),
		AT(read_format, 32),
		AT(wakeup_events, 48),
		AT(wakeup_watermark, 48),
		AT(bp_type, 52),
		AT(bp_addr, 56),
		AT(kprobe_func, 56),
		AT(uprobe_path, 56),
		AT(config1, 56),
		AT(bp_len, 64),
		AT(kprobe_addr, 64),
		AT(probe_offset, 64),
		AT(config2, 64),
		AT(branch_sample_type, 72),
		AT(sample_regs_user, 80),
		AT(sample_stack_user, 88),
		AT(clockid, 92),
		AT(sample_regs_intr, 96),
		AT(aux_watermark, 104),
		AT(sample_max_stack, 108),
		AT(aux_sample_size, 112),
		AT(sig_data, 120),
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].offset != fields[i].wanted)
			FAIL("%s is at %zu, wanted %zu", fields[i].field, fields[i].offset,
			     fields[i].wanted);
	CHECK_CMP(sizeof(struct perf_event_attr), >=, 128);
}

ABI_CASE("attr.layout-offsets", "an attr written byte by byte means the same to the implementation")
{
	static const struct {
		size_t offset;
		uint64_t good, bad;
		int error; /* what the bad value gives */
	} words[] = {
		{8, PERF_COUNT_SW_PAGE_FAULTS, 1000, ENOENT},	   /* config */
		{16, 5, 1ULL << 63, EINVAL},			   /* sample_period */
		{24, PERF_SAMPLE_IP, 1ULL << 40, EINVAL},	   /* sample_type */
		{32, PERF_FORMAT_ID, 1ULL << 40, EINVAL},	   /* read_format */
		{40, 1 | 1 << 5, 1 | 1 << 5 | 1ULL << 63, EINVAL}, /* the bits */
	};
	uint64_t raw[128 / 8] = {0};
	struct perf_event_attr *attr = (struct perf_event_attr *)(void *)raw;

	raw[0] = PERF_TYPE_SOFTWARE | (uint64_t)sizeof(raw) << 32;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		raw[words[i].offset / 8] = words[i].good;
	OPEN_SELF(attr);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		raw[words[i].offset / 8] = words[i].bad;
		CHECK_REFUSED(attr, 0, -1, -1, 0, words[i].error);
		raw[words[i].offset / 8] = words[i].good;
	}
	raw[0] |= UINT32_MAX;
	CHECK_REFUSED(attr, 0, -1, -1, 0, ENOENT);
}

#define CHECK_BIT(field, value, bits)                                                              \
	do {                                                                                       \
		struct perf_event_attr one = {.field = (value)};                                   \
		uint64_t word_;                                                                    \
                                                                                                   \
		memcpy(&word_, (const char *)&one + 40, sizeof(word_));                            \
		if (word_ != (uint64_t)(bits))                                                     \
			FAIL("%s is %#llx in the bit word", #field, (unsigned long long)word_);    \
	} while (0)

ABI_CASE("attr.bit-order", "each bit field is where the documents put it")
{
	CHECK_BIT(disabled, 1, 1 << 0);
	CHECK_BIT(inherit, 1, 1 << 1);
	CHECK_BIT(pinned, 1, 1 << 2);
	CHECK_BIT(exclusive, 1, 1 << 3);
	CHECK_BIT(exclude_user, 1, 1 << 4);
	CHECK_BIT(exclude_kernel, 1, 1 << 5);
	CHECK_BIT(exclude_hv, 1, 1 << 6);
	CHECK_BIT(exclude_idle, 1, 1 << 7);
	CHECK_BIT(mmap, 1, 1 << 8);
	CHECK_BIT(comm, 1, 1 << 9);
	CHECK_BIT(freq, 1, 1 << 10);
	CHECK_BIT(inherit_stat, 1, 1 << 11);
	CHECK_BIT(enable_on_exec, 1, 1 << 12);
	CHECK_BIT(task, 1, 1 << 13);
	CHECK_BIT(watermark, 1, 1 << 14);
	CHECK_BIT(precise_ip, 3, 3 << 15);
	CHECK_BIT(mmap_data, 1, 1 << 17);
	CHECK_BIT(sample_id_all, 1, 1 << 18);
	CHECK_BIT(exclude_host, 1, 1 << 19);
	CHECK_BIT(exclude_guest, 1, 1 << 20);
	CHECK_BIT(exclude_callchain_kernel, 1, 1 << 21);
	CHECK_BIT(exclude_callchain_user, 1, 1 << 22);
	CHECK_BIT(mmap2, 1, 1 << 23);
	CHECK_BIT(comm_exec, 1, 1 << 24);
	CHECK_BIT(use_clockid, 1, 1 << 25);
	CHECK_BIT(context_switch, 1, 1 << 26);
	CHECK_BIT(write_backward, 1, 1 << 27);
	CHECK_BIT(namespaces, 1, 1 << 28);
	CHECK_BIT(ksymbol, 1, 1 << 29);
	CHECK_BIT(bpf_event, 1, 1 << 30);
	CHECK_BIT(aux_output, 1, 1ULL << 31);
	CHECK_BIT(cgroup, 1, 1ULL << 32);
	CHECK_BIT(text_poke, 1, 1ULL << 33);
	CHECK_BIT(build_id, 1, 1ULL << 34);
	CHECK_BIT(inherit_thread, 1, 1ULL << 35);
	CHECK_BIT(remove_on_exec, 1, 1ULL << 36);
	CHECK_BIT(sigtrap, 1, 1ULL << 37);
}
