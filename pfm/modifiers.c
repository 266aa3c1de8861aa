// SPDX-License-Identifier: MIT
#include "pfm/event.h"

#define BOOL(name, desc)                                                                           \
	{                                                                                          \
		name, desc, PFM_ATTR_MOD_BOOL                                                      \
	}
#define INTEGER(name, desc)                                                                        \
	{                                                                                          \
		name, desc, PFM_ATTR_MOD_INTEGER                                                   \
	}

const struct modifier tly_pfm_mods[N_MODS] = {
	BOOL("k", "count in the kernel"),
	BOOL("u", "count in user mode"),
	BOOL("e", "count how often the condition begins (on Intel with c=1 or more)"),
	BOOL("i", "count the cycles with fewer events than c, instead of those with as many"),
	INTEGER("c",
		"count the cycles with at least this many events (0 to 255; 0: count the events)"),
	BOOL("t", "count for all hardware threads of the core"),
	INTEGER("ldlat", "count loads that take at least this many cycles (1 to 65535)"),
	BOOL("intx", "count in transactions only"),
	BOOL("intxcp", "do not count in transactions that abort"),
	INTEGER("fe_thres", "count when the front end is short for this many cycles (1 to 4095)"),
	BOOL("h", "count in the host, when it runs guests"),
	BOOL("g", "count in guests"),
	BOOL("hv", "count in the hypervisor"),
};

const struct modifier tly_pfm_perf_mods[N_PERF_MODS] = {
	BOOL("u", "count in user mode"),
	BOOL("k", "count in the kernel"),
	BOOL("h", "count in the hypervisor"),
	INTEGER("period", "take a sample every so many events"),
	INTEGER("freq", "take so many samples a second"),
	INTEGER("precise", "how exact the address of a sample has to be (0 to 3)"),
	BOOL("excl", "let no other group use the processor's counters meanwhile"),
	BOOL("mg", "count in guests"),
	BOOL("mh", "count in the host"),
	INTEGER("cpu", "the processor to count on"),
	BOOL("pinned", "keep the event on a counter all the time"),
	BOOL("hw_smpl", "let the hardware write the samples"),
};

unsigned int tly_pfm_mods_of(const struct event *event, pfm_os_t os)
{
	unsigned int mods = event->entry ? event->entry->mods : 0;

	/* The kernel sets the levels from fields of their own. */
	if (os != PFM_OS_NONE)
		mods &= ~(TABLE_MOD_K | TABLE_MOD_U | TABLE_MOD_H | TABLE_MOD_HV);
	return mods;
}

/* Whether attr.exclude_hv can be changed. Early tables of family 17h did not know of the level. */
static bool has_hypervisor(const struct event *event)
{
	switch (event->pmu->encoder) {
	case TABLE_ENCODE_AMD64:
		return event->entry->mods & TABLE_MOD_H &&
		       event->pmu->id != PFM_PMU_AMD64_FAM11H_TURION &&
		       event->pmu->id != PFM_PMU_AMD64_FAM17H_ZEN1 &&
		       event->pmu->id != PFM_PMU_AMD64_FAM17H_ZEN2;
	case TABLE_ENCODE_ARM:
	case TABLE_ENCODE_ARM_ARCH:
		return event->entry->mods & TABLE_MOD_HV;
	case TABLE_ENCODE_PERF:
		return event->entry && event->entry->aux != PERF_TYPE_SOFTWARE;
	case TABLE_ENCODE_PERF_RAW:
		return true;
	default:
		return false;
	}
}

unsigned int tly_pfm_perf_mods_of(const struct event *event, pfm_os_t os)
{
	unsigned int mods = 1 << PERF_MOD_U | 1 << PERF_MOD_K | 1 << PERF_MOD_MG | 1 << PERF_MOD_MH;
	unsigned int flags = event->entry ? event->entry->flags : 0;

	/* Devices outside of the processors know no levels and take no samples. */
	if (event->device && !event->device->core)
		return os == PFM_OS_PERF_EVENT_EXT
			       ? 1 << PERF_MOD_EXCL | 1 << PERF_MOD_CPU | 1 << PERF_MOD_PINNED
			       : 0;
	if (os == PFM_OS_NONE || event->pmu->encoder == TABLE_ENCODE_AMD64_NB)
		return 0;
	if (event->pmu->encoder == TABLE_ENCODE_RAPL && event->pmu->id == PFM_PMU_INTEL_RAPL)
		mods = 0;
	if (has_hypervisor(event))
		mods |= 1 << PERF_MOD_H;
	if (os == PFM_OS_PERF_EVENT)
		return mods;

	mods |= 1 << PERF_MOD_PERIOD | 1 << PERF_MOD_FREQ | 1 << PERF_MOD_EXCL | 1 << PERF_MOD_CPU |
		1 << PERF_MOD_PINNED;
	if (event->pmu->encoder == TABLE_ENCODE_PERF) {
		if (has_hypervisor(event))
			mods |= 1 << PERF_MOD_PRECISE;
	} else if (event->device) {
		mods |= 1 << PERF_MOD_PRECISE;
	} else if (event->pmu->encoder == TABLE_ENCODE_PERF_RAW) {
		mods |= 1 << PERF_MOD_PRECISE | 1 << PERF_MOD_HW_SMPL;
	} else if (flags & TABLE_PRECISE) {
		mods |= 1 << PERF_MOD_PRECISE;
	} else if (flags & TABLE_HW_SMPL) {
		mods |= 1 << PERF_MOD_HW_SMPL;
	}
	return mods;
}
