// SPDX-License-Identifier: MIT
/* Codes and modifiers made into struct perf_event_attr. */
#include <limits.h>
#include <string.h>

#include "pfm/event.h"
#include "pfm/host.h"

enum { MAX_PRECISE = 3 };

/* What the kernel sets itself in x86's event selects: levels, interrupt and enable. */
static const uint64_t kernels_x86_bits = 1ULL << 16 | 1ULL << 17 | 1ULL << 20 | 1ULL << 22;
static const uint64_t kernels_amd_bits = 1ULL << 40 | 1ULL << 41;

/*
 * Of a processor with several kinds of cores each kind is a device with a type of its own; else the
 * kernel takes raw codes for the only one.
 */
static uint32_t type_of_cores(const struct table_pmu *pmu)
{
	const char *devices = table_string(pmu->devices);
	int type = devices && strcmp(devices, "cpu") != 0 ? tly_pfm_device_type(pmu) : -1;

	return type < 0 ? PERF_TYPE_RAW : (uint32_t)type;
}

static int type_and_config(const struct request *request, uint32_t *type, uint64_t *config)
{
	const struct event *event = &request->event;
	int device;

	*type = PERF_TYPE_RAW;
	*config = request->codes[0];
	switch (event->pmu->encoder) {
	case TABLE_ENCODE_INTEL:
	case TABLE_ENCODE_X86_ARCH:
		*type = type_of_cores(event->pmu);
		*config &= ~kernels_x86_bits;
		return PFM_SUCCESS;
	case TABLE_ENCODE_AMD64:
		*config &= ~(kernels_x86_bits | kernels_amd_bits);
		return PFM_SUCCESS;
	case TABLE_ENCODE_ARM:
	case TABLE_ENCODE_ARM_ARCH:
		*type = type_of_cores(event->pmu);
		*config = event->entry->code;
		return PFM_SUCCESS;
	case TABLE_ENCODE_PERF:
		*type = event->entry ? event->entry->aux : PERF_TYPE_TRACEPOINT;
		return PFM_SUCCESS;
	case TABLE_ENCODE_PERF_RAW:
	case TABLE_ENCODE_TALLY:
		return PFM_SUCCESS;
	case TABLE_ENCODE_SYSFS:
		*type = event->device->type;
		return PFM_SUCCESS;
	case TABLE_ENCODE_AMD64_L3:
	case TABLE_ENCODE_AMD64_NB:
		*config &= ~kernels_x86_bits;
		break;
	default:
		break;
	}
	device = tly_pfm_device_type(event->pmu);
	if (device < 0)
		return PFM_ERR_NOTSUPP;
	*type = device;
	return PFM_SUCCESS;
}

static bool given(const struct request *request, enum perf_mod mod)
{
	return request->perf_given >> mod & 1;
}

static int check_values(const struct request *request)
{
	if (given(request, PERF_MOD_PERIOD) && given(request, PERF_MOD_FREQ))
		return PFM_ERR_ATTR_VAL;
	if (given(request, PERF_MOD_PERIOD) && request->perf_value[PERF_MOD_PERIOD] == 0)
		return PFM_ERR_ATTR_VAL;
	if (given(request, PERF_MOD_FREQ) && request->perf_value[PERF_MOD_FREQ] == 0)
		return PFM_ERR_ATTR_VAL;
	if (request->perf_value[PERF_MOD_PRECISE] > MAX_PRECISE)
		return PFM_ERR_ATTR_VAL;
	if (request->perf_value[PERF_MOD_CPU] > INT_MAX)
		return PFM_ERR_ATTR_VAL;
	return PFM_SUCCESS;
}

/* The values that the modifiers come to, those not given among them. */
static void complete_values(struct request *request)
{
	uint64_t *value = request->perf_value;
	uint64_t *precise = &value[PERF_MOD_PRECISE], *samples = &value[PERF_MOD_HW_SMPL];

	if (!given(request, PERF_MOD_U) && !given(request, PERF_MOD_K) &&
	    !given(request, PERF_MOD_H)) {
		value[PERF_MOD_U] = !!(request->plm & PFM_PLM3);
		value[PERF_MOD_K] = !!(request->plm & PFM_PLM0);
		value[PERF_MOD_H] = !!(request->plm & PFM_PLMH);
	}
	/* That one of the two is named counts, whatever its value: as in libpfm4. */
	value[PERF_MOD_MG] = given(request, PERF_MOD_MG);
	value[PERF_MOD_MH] = given(request, PERF_MOD_MH) || !given(request, PERF_MOD_MG);
	/* Its device in the kernel refuses to leave anything out. */
	if (request->event.pmu->encoder == TABLE_ENCODE_RAPL)
		value[PERF_MOD_U] = value[PERF_MOD_K] = value[PERF_MOD_MG] = value[PERF_MOD_MH] = 1;
	if (*samples && !*precise)
		*precise = 1;
	*samples = *precise;
}

/* Units without the level leave attr.exclude_hv alone, whether or not `h` may be written. */
static bool has_hypervisor(const struct event *event)
{
	switch (event->pmu->encoder) {
	case TABLE_ENCODE_AMD64:
		return event->entry->mods & TABLE_MOD_H;
	case TABLE_ENCODE_ARM:
	case TABLE_ENCODE_ARM_ARCH:
		return event->entry->mods & TABLE_MOD_HV;
	case TABLE_ENCODE_PERF:
	case TABLE_ENCODE_PERF_RAW:
		return true;
	default:
		return false;
	}
}

static void fill_levels(const struct request *request, struct perf_event_attr *attr)
{
	const uint64_t *value = request->perf_value;
	unsigned int mods = tly_pfm_perf_mods_of(&request->event, request->os);

	if (!(mods & 1 << PERF_MOD_U))
		return;
	attr->exclude_user = !value[PERF_MOD_U];
	attr->exclude_kernel = !value[PERF_MOD_K];
	if (has_hypervisor(&request->event))
		attr->exclude_hv = !value[PERF_MOD_H];
	attr->exclude_guest = !value[PERF_MOD_MG];
	attr->exclude_host = !value[PERF_MOD_MH];
}

int tly_pfm_fill_attr(struct request *request, struct perf_event_attr *attr, int *cpu)
{
	const uint64_t *value = request->perf_value;
	uint64_t config;
	uint32_t type;
	int rc;

	rc = check_values(request);
	if (!rc)
		rc = type_and_config(request, &type, &config);
	if (rc)
		return rc;
	complete_values(request);
	attr->type = type;
	attr->config = config;
	if (request->n_codes > 1)
		attr->config1 = request->codes[1];
	if (request->n_codes > 2)
		attr->config2 = request->codes[2];
	fill_levels(request, attr);
	if (given(request, PERF_MOD_PERIOD))
		attr->sample_period = value[PERF_MOD_PERIOD];
	if (given(request, PERF_MOD_FREQ)) {
		attr->sample_freq = value[PERF_MOD_FREQ];
		attr->freq = 1;
	}
	if (given(request, PERF_MOD_PRECISE) || given(request, PERF_MOD_HW_SMPL))
		attr->precise_ip = value[PERF_MOD_PRECISE];
	if (given(request, PERF_MOD_EXCL))
		attr->exclusive = value[PERF_MOD_EXCL];
	if (given(request, PERF_MOD_PINNED))
		attr->pinned = value[PERF_MOD_PINNED];
	*cpu = given(request, PERF_MOD_CPU) ? (int)value[PERF_MOD_CPU] : -1;
	return PFM_SUCCESS;
}
