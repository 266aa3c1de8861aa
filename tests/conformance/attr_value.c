// SPDX-License-Identifier: MIT
/* Values of single fields: an otherwise good event with one thing changed opens, or is refused. */
#include <time.h>

#include "conformance.h"

enum field {
	F_CONFIG,
	F_PERIOD,
	F_SAMPLE_TYPE,
	F_READ_FORMAT,
	F_REGS_USER,
	F_REGS_INTR,
	F_STACK_USER,
	F_CLOCKID,
	F_AUX_SAMPLE,
	F_BRANCH,
};

static void set_field(struct perf_event_attr *attr, enum field field, uint64_t value)
{
	switch (field) {
	case F_CONFIG:
		attr->config = value;
		break;
	case F_PERIOD:
		attr->sample_period = value;
		break;
	case F_SAMPLE_TYPE:
		attr->sample_type = value;
		break;
	case F_READ_FORMAT:
		attr->read_format = value;
		break;
	case F_REGS_USER:
		attr->sample_type = PERF_SAMPLE_REGS_USER;
		attr->sample_regs_user = value;
		break;
	case F_REGS_INTR:
		attr->sample_type = PERF_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = value;
		break;
	case F_STACK_USER:
		attr->sample_type = PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = (uint32_t)value;
		break;
	case F_CLOCKID:
		attr->use_clockid = 1;
		attr->clockid = (int32_t)value;
		break;
	case F_AUX_SAMPLE:
		attr->sample_type = PERF_SAMPLE_AUX;
		attr->aux_sample_size = (uint32_t)value;
		break;
	case F_BRANCH:
		attr->sample_type = PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = value;
		break;
	}
}

static const struct value {
	struct abi_row about;
	enum field field;
	uint64_t value;
	int error; /* 0: opens */
} values[] = {
	{{"attr.config config.sw.unknown", "1000: ENOENT"}, F_CONFIG, 1000, ENOENT},
	{{"attr.config config.sw.unknown", "bit 32 set: ENOENT"}, F_CONFIG, 1ULL << 32 | 2, ENOENT},
	{{"attr.config-legacy-msb", "bit 63 set: ENOENT"}, F_CONFIG, 1ULL << 63 | 2, ENOENT},
	{{"attr.sample_period", "2^63 - 1 opens"}, F_PERIOD, INT64_MAX, 0},
	{{"attr.sample_period", "2^63: EINVAL"}, F_PERIOD, 1ULL << 63, EINVAL},
	{{"attr.sample_type-field sample.unknown-bit errno.einval.masks", "bit 24 opens"},
	 F_SAMPLE_TYPE,
	 1ULL << 24,
	 0},
	{{"attr.sample_type-field sample.unknown-bit errno.einval.masks", "bit 25: EINVAL"},
	 F_SAMPLE_TYPE,
	 1ULL << 25,
	 EINVAL},
	{{"attr.sample_type-field sample.unknown-bit", "bit 31: EINVAL"},
	 F_SAMPLE_TYPE,
	 1ULL << 31,
	 EINVAL},
	{{"attr.sample_type-field sample.unknown-bit", "bit 63: EINVAL"},
	 F_SAMPLE_TYPE,
	 1ULL << 63,
	 EINVAL},
	{{"attr.read_format-field read.unknown-bit", "all five bits open"}, F_READ_FORMAT, 31, 0},
	{{"attr.read_format-field read.unknown-bit errno.einval.masks", "bit 5: EINVAL"},
	 F_READ_FORMAT,
	 1ULL << 5,
	 EINVAL},
	{{"attr.read_format-field read.unknown-bit", "bit 63: EINVAL"},
	 F_READ_FORMAT,
	 1ULL << 63,
	 EINVAL},
	{{"attr.sample_regs_user-field sample.regs_user", "no register: EINVAL"},
	 F_REGS_USER,
	 0,
	 EINVAL},
	{{"attr.sample_regs_user-field", "ip and sp open"}, F_REGS_USER, 0x180, 0},
	{{"attr.sample_regs_user-field", "ds: EINVAL"}, F_REGS_USER, 1 << 12, EINVAL},
	{{"attr.sample_regs_user-field", "es: EINVAL"}, F_REGS_USER, 1 << 13, EINVAL},
	{{"attr.sample_regs_user-field", "fs: EINVAL"}, F_REGS_USER, 1 << 14, EINVAL},
	{{"attr.sample_regs_user-field", "gs: EINVAL"}, F_REGS_USER, 1 << 15, EINVAL},
	{{"attr.sample_regs_user-field", "bit 24 (reserved): EINVAL"},
	 F_REGS_USER,
	 1 << 24,
	 EINVAL},
	{{"attr.sample_regs_user-field", "xmm0: EOPNOTSUPP"}, F_REGS_USER, 1ULL << 32, EOPNOTSUPP},
	{{"attr.sample_regs_intr-field sample.regs_intr", "no register: EINVAL"},
	 F_REGS_INTR,
	 0,
	 EINVAL},
	{{"attr.sample_regs_intr-field", "ip and sp open"}, F_REGS_INTR, 0x180, 0},
	{{"attr.sample_regs_intr-field", "bit 24 (reserved): EINVAL"},
	 F_REGS_INTR,
	 1 << 24,
	 EINVAL},
	{{"attr.sample_stack_user-field", "8 opens"}, F_STACK_USER, 8, 0},
	{{"attr.sample_stack_user-field", "65528 opens"}, F_STACK_USER, 65528, 0},
	{{"attr.sample_stack_user-field", "12: EINVAL"}, F_STACK_USER, 12, EINVAL},
	{{"attr.sample_stack_user-field", "65535: EINVAL"}, F_STACK_USER, 65535, EINVAL},
	{{"attr.sample_stack_user-field", "65536: EINVAL"}, F_STACK_USER, 65536, EINVAL},
	{{"attr.clockid", "CLOCK_MONOTONIC"}, F_CLOCKID, CLOCK_MONOTONIC, 0},
	{{"attr.clockid", "CLOCK_MONOTONIC_RAW"}, F_CLOCKID, CLOCK_MONOTONIC_RAW, 0},
	{{"attr.clockid", "CLOCK_REALTIME"}, F_CLOCKID, CLOCK_REALTIME, 0},
	{{"attr.clockid", "CLOCK_BOOTTIME"}, F_CLOCKID, CLOCK_BOOTTIME, 0},
	{{"attr.clockid", "CLOCK_TAI"}, F_CLOCKID, CLOCK_TAI, 0},
	{{"attr.clockid attr.use_clockid", "CLOCK_PROCESS_CPUTIME_ID: EINVAL"},
	 F_CLOCKID,
	 CLOCK_PROCESS_CPUTIME_ID,
	 EINVAL},
	{{"attr.clockid attr.use_clockid", "-1: EINVAL"}, F_CLOCKID, UINT32_MAX, EINVAL},
	{{"attr.clockid attr.use_clockid", "1000: EINVAL"}, F_CLOCKID, 1000, EINVAL},
	{{"attr.aux_sample_size", "65536: EINVAL"}, F_AUX_SAMPLE, 65536, EINVAL},
	{{"attr.aux_sample_size sample.aux", "4096 without an AUX leader: EINVAL"},
	 F_AUX_SAMPLE,
	 4096,
	 EINVAL},
	{{"sample.branch_stack errno.eopnotsupp",
	  "any user branch on a software event: EOPNOTSUPP"},
	 F_BRANCH,
	 PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY,
	 EOPNOTSUPP},
	{{"sample.branch_stack branch.kind-required", "no branch kind: EINVAL"},
	 F_BRANCH,
	 PERF_SAMPLE_BRANCH_USER,
	 EINVAL},
	{{"branch.plm_all branch.kind-required", "the privilege bits alone: EINVAL"},
	 F_BRANCH,
	 PERF_SAMPLE_BRANCH_PLM_ALL,
	 EINVAL},
	{{"branch.kind-required", "bit 40: EINVAL"}, F_BRANCH, 1ULL << 40 | 8 | 1, EINVAL},
};

ABI_TABLE(values)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	set_field(&attr, row->field, row->value);
	if (row->error)
		CHECK_REFUSED(&attr, 0, -1, -1, 0, row->error);
	else
		OPEN_SELF(&attr);
}

ABI_CASE("attr.sample_stack_user-field attr.use_clockid branch.ignored-without-sample-bit",
	 "fields whose selecting bit is clear are not checked")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_stack_user = 13;
	attr.sample_regs_user = 1 << 24;
	attr.clockid = 1000;
	attr.branch_sample_type = 0x12345678;
	OPEN_SELF(&attr);
}
