// SPDX-License-Identifier: MIT
/* The functions of perfmon/pfmlib.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <perfmon/pfmlib_perf_event.h>

#include "pfm/event.h"
#include "pfm/host.h"
#include "pfm/tracepoints.h"

enum {
	INDEX_BITS =
		20, /* of an event identifier: the number within the unit; above, the unit's id */
	ALL_LEVELS = PFM_PLM0 | PFM_PLM1 | PFM_PLM2 | PFM_PLM3 | PFM_PLMH,
};

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

pfm_err_t pfm_initialize(void)
{
	int result;

	pthread_mutex_lock(&init_lock);
	if (!tly_pfm_host.ready) {
		struct processor cpu = tly_pfm_processor();

		tly_pfm_detect(&tly_pfm_host, &cpu);
		tly_pfm_host.ready = true;
	}
	result = tly_pfm_host.result;
	pthread_mutex_unlock(&init_lock);
	return result;
}

void pfm_terminate(void)
{
	pthread_mutex_lock(&init_lock);
	tly_pfm_tracepoints_forget();
	tly_pfm_sysfs_forget();
	tly_pfm_host.ready = false;
	pthread_mutex_unlock(&init_lock);
}

int pfm_get_version(void)
{
	return LIBPFM_VERSION;
}

const char *pfm_strerror(int code)
{
	switch (code) {
	case PFM_SUCCESS:
		return "success";
	case PFM_ERR_NOTSUPP:
		return "not supported";
	case PFM_ERR_INVAL:
		return "invalid argument";
	case PFM_ERR_NOINIT:
		return "pfm_initialize() has not been called";
	case PFM_ERR_NOTFOUND:
		return "no such event";
	case PFM_ERR_FEATCOMB:
		return "these unit masks or modifiers do not go together";
	case PFM_ERR_UMASK:
		return "a unit mask is missing or wrong";
	case PFM_ERR_NOMEM:
		return "out of memory";
	case PFM_ERR_ATTR:
		return "no such unit mask or modifier";
	case PFM_ERR_ATTR_VAL:
		return "the modifier does not take this value";
	case PFM_ERR_ATTR_SET:
		return "the modifier has another value already";
	case PFM_ERR_TOOMANY:
		return "too many attributes";
	case PFM_ERR_TOOSMALL:
		return "too little room for the codes";
	default:
		return "unknown error code";
	}
}

/*
 * Whether a struct that says it has `said` bytes can be filled in by us, who know `known` of them.
 * 0 stands for the oldest version; what comes behind ours must be zero.
 */
static bool size_fits(const void *object, size_t said, size_t known, size_t oldest)
{
	const unsigned char *byte = object;

	if (said == 0)
		said = oldest;
	if (said < oldest)
		return false;
	for (size_t i = known; i < said; i++)
		if (byte[i])
			return false;
	return true;
}

static unsigned int count_events(const struct table_pmu *pmu)
{
	size_t systems = 0;

	if (pmu->encoder == TABLE_ENCODE_PERF)
		tly_pfm_tracepoint_systems(&systems);
	return pmu->n_events + systems;
}

static int identifier(const struct event *event)
{
	return (int)event->pmu->id << INDEX_BITS | (int)event->number;
}

static bool find_identifier(int idx, struct event *event)
{
	unsigned int id = (unsigned int)idx >> INDEX_BITS;
	unsigned int number = idx & ((1 << INDEX_BITS) - 1);
	const struct sysfs_unit *device = tly_pfm_sysfs_unit(id);
	const struct table_pmu *pmu = device ? &device->pmu : tly_pfm_unit(id);

	if (idx < 0 || !pmu)
		return false;
	*event = (struct event){.pmu = pmu, .device = device, .number = number};
	if (device)
		return number < device->n_events;
	if (number < pmu->n_events) {
		event->entry = table_event(pmu, number);
		return true;
	}
	if (pmu->encoder == TABLE_ENCODE_PERF) {
		size_t n;
		const struct tracepoint_system *systems = tly_pfm_tracepoint_systems(&n);

		if (number - pmu->n_events < n)
			event->system = &systems[number - pmu->n_events];
	}
	return event->system;
}

/* Loops that do not trust PFM_PMU_MAX of the header that they were built with end at the first. */
static int no_unit(pfm_pmu_t id)
{
	return (unsigned int)id >= tly_pfm_host.end ? PFM_ERR_INVAL : PFM_ERR_NOTSUPP;
}

pfm_err_t pfm_get_pmu_info(pfm_pmu_t id, pfm_pmu_info_t *info)
{
	const struct sysfs_unit *device;
	const struct table_pmu *pmu;
	unsigned int n;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!info || !size_fits(info, info->size, sizeof(*info), PFM_PMU_INFO_ABI0))
		return PFM_ERR_INVAL;
	device = tly_pfm_sysfs_unit(id);
	pmu = device ? &device->pmu : tly_pfm_unit(id);
	if (!pmu)
		return no_unit(id);
	n = count_events(pmu);
	*info = (pfm_pmu_info_t){
		.name = device ? device->name : table_string(pmu->name),
		.desc = device ? device->desc : table_string(pmu->desc),
		.size = info->size,
		.pmu = id,
		.type = pmu->type,
		.nevents = n,
		.first_event = n ? (int)id << INDEX_BITS : -1,
		.max_encoding = pmu->max_encoding,
		.num_cntrs = pmu->counters,
		.num_fixed_cntrs = pmu->fixed,
		.is_present = device || host_has(pmu),
		.is_dfl = table_is_architected(pmu),
	};
	if (pmu->encoder == TABLE_ENCODE_X86_ARCH) {
		info->num_cntrs = tly_pfm_host.arch_counters;
		info->num_fixed_cntrs = tly_pfm_host.arch_fixed;
	}
	return PFM_SUCCESS;
}

int pfm_get_event_next(int idx)
{
	struct event event;

	if (!tly_pfm_host.ready || !find_identifier(idx, &event))
		return -1;
	return event.number + 1 < count_events(event.pmu) ? idx + 1 : -1;
}

int pfm_find_event(const char *str)
{
	struct request request;
	int rc;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!str)
		return PFM_ERR_INVAL;
	rc = tly_pfm_parse(str, PFM_OS_NONE, &request);
	return rc ? rc : identifier(&request.event);
}

static unsigned int speculation(unsigned int flags)
{
	if (flags & TABLE_SPEC_TRUE)
		return PFM_EVENT_INFO_SPEC_TRUE;
	return flags & TABLE_SPEC_FALSE ? PFM_EVENT_INFO_SPEC_FALSE : PFM_EVENT_INFO_SPEC_NA;
}

static unsigned int count_masks(const struct event *event)
{
	if (event->device)
		return 0;
	return event->entry ? event->entry->n_masks : event->system->n_points;
}

static unsigned int count_fields(const struct event *event)
{
	return event->device ? event->device->n_fields : 0;
}

static bool os_is_known(pfm_os_t os)
{
	return (int)os >= 0 && os < PFM_OS_MAX;
}

pfm_err_t pfm_get_event_info(int idx, pfm_os_t os, pfm_event_info_t *info)
{
	struct event event;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!os_is_known(os) || !info ||
	    !size_fits(info, info->size, sizeof(*info), PFM_EVENT_INFO_ABI0) ||
	    !find_identifier(idx, &event))
		return PFM_ERR_INVAL;
	*info = (pfm_event_info_t){
		.size = info->size,
		.pmu = event.pmu->id,
		.dtype = PFM_DTYPE_UINT64,
		.idx = idx,
		.nattrs = count_masks(&event) + count_fields(&event) +
			  __builtin_popcount(tly_pfm_mods_of(&event, os)) +
			  __builtin_popcount(tly_pfm_perf_mods_of(&event, os)),
	};
	if (event.device) {
		info->name = device_event(&event)->name;
		info->desc = device_event(&event)->desc;
		info->code = device_event(&event)->config[0];
		return PFM_SUCCESS;
	}
	if (event.system) {
		info->name = event.system->name;
		info->desc = event.system->desc;
		return PFM_SUCCESS;
	}
	info->name = table_string(event.entry->name);
	info->desc = table_string(event.entry->desc);
	info->equiv = table_string(event.entry->equiv);
	info->code = event.entry->code;
	info->is_precise = !!(event.entry->flags & TABLE_PRECISE);
	info->is_speculative = speculation(event.entry->flags);
	info->support_hw_smpl = !!(event.entry->flags & TABLE_HW_SMPL);
	return PFM_SUCCESS;
}

static void describe_mask(const struct event *event, unsigned int i, pfm_event_attr_info_t *info)
{
	const struct table_mask *mask;

	info->type = PFM_ATTR_UMASK;
	info->ctrl = PFM_ATTR_CTRL_PMU;
	if (event->system) {
		info->name = event->system->points[i];
		info->desc = event->system->descs[i];
		tly_pfm_tracepoint_id(event->system, i, &info->code);
		info->dfl_val64 = info->code;
		return;
	}
	mask = &table_masks(event->entry)[i];
	info->name = table_string(mask->name);
	info->desc = table_string(mask->desc);
	info->equiv = table_string(mask->equiv);
	info->code = mask->code;
	info->is_dfl = !!(mask->flags & TABLE_DEFAULT);
	info->is_precise = !!(mask->flags & TABLE_PRECISE);
	info->is_speculative = speculation(mask->flags);
	info->support_hw_smpl = !!(mask->flags & TABLE_HW_SMPL);
	info->dfl_val64 = mask->code;
}

static void describe_field(const struct event *event, unsigned int i, pfm_event_attr_info_t *info)
{
	const struct sysfs_field *field = &event->device->fields[i];

	info->name = field->name;
	info->desc = field->desc;
	info->type = PFM_ATTR_MOD_INTEGER;
	info->ctrl = PFM_ATTR_CTRL_PMU;
	info->code = i;
	info->dfl_val64 = tly_pfm_field_get(field, device_event(event)->config);
}

/* The opaque numbers of modifiers are each vendor's own. */
static uint64_t mod_code(const struct event *event, unsigned int i)
{
	if (event->pmu->encoder == TABLE_ENCODE_AMD64 && 1U << i == TABLE_MOD_H)
		return 5;
	if (event->pmu->encoder == TABLE_ENCODE_AMD64 && 1U << i == TABLE_MOD_G)
		return 6;
	if (1U << i == TABLE_MOD_HV)
		return 2;
	return i;
}

static void describe_mod(const struct event *event, unsigned int i, pfm_event_attr_info_t *info)
{
	info->name = tly_pfm_mods[i].name;
	info->desc = tly_pfm_mods[i].desc;
	info->type = tly_pfm_mods[i].type;
	info->ctrl = PFM_ATTR_CTRL_PMU;
	info->code = mod_code(event, i);
	if (1U << i == TABLE_MOD_LDLAT)
		info->dfl_int = 3;
	else if (1U << i == TABLE_MOD_FE_THRES)
		info->dfl_int = 1;
}

static void describe_perf_mod(unsigned int i, pfm_event_attr_info_t *info)
{
	info->name = tly_pfm_perf_mods[i].name;
	info->desc = tly_pfm_perf_mods[i].desc;
	info->type = tly_pfm_perf_mods[i].type;
	info->ctrl = PFM_ATTR_CTRL_PERF_EVENT;
	info->code = i;
	if (i == PERF_MOD_MH)
		info->dfl_bool = 1;
	else if (i == PERF_MOD_CPU)
		info->dfl_int = -1;
}

/* The bit of a set that has `rank` lower ones set; -1 if there are not as many. */
static int nth_bit(unsigned int set, unsigned int rank)
{
	for (; set; set &= set - 1)
		if (rank-- == 0)
			return __builtin_ctz(set);
	return -1;
}

/* Fields, masks, modifiers of the unit and those of perf, one behind the other. */
static bool describe_attr(const struct event *event, unsigned int number, pfm_os_t os,
			  pfm_event_attr_info_t *info)
{
	unsigned int mods = tly_pfm_mods_of(event, os);
	int i;

	if (number < count_fields(event)) {
		describe_field(event, number, info);
		return true;
	}
	number -= count_fields(event);
	if (number < count_masks(event)) {
		describe_mask(event, number, info);
		return true;
	}
	number -= count_masks(event);
	i = nth_bit(mods, number);
	if (i >= 0) {
		describe_mod(event, i, info);
		return true;
	}
	i = nth_bit(tly_pfm_perf_mods_of(event, os), number - __builtin_popcount(mods));
	if (i >= 0)
		describe_perf_mod(i, info);
	return i >= 0;
}

pfm_err_t pfm_get_event_attr_info(int eidx, int aidx, pfm_os_t os, pfm_event_attr_info_t *info)
{
	pfm_event_attr_info_t found = {.idx = aidx};
	struct event event;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!os_is_known(os) || !info || aidx < 0 ||
	    !size_fits(info, info->size, sizeof(*info), PFM_ATTR_INFO_ABI0) ||
	    !find_identifier(eidx, &event))
		return PFM_ERR_INVAL;
	found.size = info->size;
	if (!describe_attr(&event, aidx, os, &found))
		return PFM_ERR_INVAL;
	*info = found;
	return PFM_SUCCESS;
}

/* Parse and encode, and make the full name where it is wanted. */
static int make(const char *str, int plm, pfm_os_t os, struct request *request)
{
	int rc = tly_pfm_parse(str, os, request);

	if (rc)
		return rc;
	request->plm = plm;
	rc = tly_pfm_encode(request);
	if (rc)
		tly_pfm_verbose("%s: %s", pfm_strerror(rc), str);
	return rc;
}

static int encode_bare(const char *str, int plm, pfm_pmu_encode_arg_t *arg)
{
	uint64_t *codes = arg->codes;
	struct request request;
	char *name = NULL;
	int rc;

	if (!size_fits(arg, arg->size, sizeof(*arg), PFM_RAW_ENCODE_ABI0))
		return PFM_ERR_INVAL;
	rc = make(str, plm, PFM_OS_NONE, &request);
	if (rc)
		return rc;
	if (codes && arg->count < (int)request.n_codes)
		return PFM_ERR_TOOSMALL;
	if (!codes) {
		codes = malloc(request.n_codes * sizeof(*codes));
		if (!codes)
			return PFM_ERR_NOMEM;
	}
	if (arg->fstr) {
		name = tly_pfm_full_name(&request);
		if (!name) {
			if (!arg->codes)
				free(codes);
			return PFM_ERR_NOMEM;
		}
		*arg->fstr = name;
	}
	memcpy(codes, request.codes, request.n_codes * sizeof(*codes));
	arg->codes = codes;
	arg->count = request.n_codes;
	arg->idx = identifier(&request.event);
	return PFM_SUCCESS;
}

static int encode_perf(const char *str, int plm, pfm_os_t os, pfm_perf_encode_arg_t *arg)
{
	struct perf_event_attr attr;
	struct request request;
	char *name = NULL;
	int rc, cpu;

	if (!size_fits(arg, arg->size, sizeof(*arg), PFM_PERF_ENCODE_ABI0) || !arg->attr)
		return PFM_ERR_INVAL;
	rc = make(str, plm, os, &request);
	if (rc)
		return rc;
	/* The values for the name need the attr; the caller's is written when all has gone well. */
	rc = tly_pfm_fill_attr(&request, &attr, &cpu);
	if (rc)
		return rc;
	if (arg->fstr) {
		name = tly_pfm_full_name(&request);
		if (!name)
			return PFM_ERR_NOMEM;
		*arg->fstr = name;
	}
	tly_pfm_fill_attr(&request, arg->attr, &cpu);
	arg->idx = identifier(&request.event);
	arg->cpu = cpu;
	arg->flags = 0;
	return PFM_SUCCESS;
}

pfm_err_t pfm_get_os_event_encoding(const char *str, int dfl_plm, pfm_os_t os, void *args)
{
	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!str || !args || dfl_plm & ~ALL_LEVELS)
		return PFM_ERR_INVAL;
	switch (os) {
	case PFM_OS_NONE:
		return encode_bare(str, dfl_plm, args);
	case PFM_OS_PERF_EVENT:
	case PFM_OS_PERF_EVENT_EXT:
		return encode_perf(str, dfl_plm, os, args);
	default:
		return PFM_ERR_NOTSUPP;
	}
}

pfm_err_t pfm_get_event_encoding(const char *str, int dfl_plm, char **fstr, int *idx,
				 uint64_t **codes, int *count)
{
	pfm_pmu_encode_arg_t arg = {.fstr = fstr, .size = sizeof(arg)};
	int rc;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!str || !codes || !count)
		return PFM_ERR_INVAL;
	arg.codes = *codes;
	arg.count = *count;
	rc = pfm_get_os_event_encoding(str, dfl_plm, PFM_OS_NONE, &arg);
	if (rc)
		return rc;
	*codes = arg.codes;
	*count = arg.count;
	if (idx)
		*idx = arg.idx;
	return PFM_SUCCESS;
}

pfm_err_t pfm_get_perf_event_encoding(const char *str, int dfl_plm, struct perf_event_attr *attr,
				      char **fstr, int *idx)
{
	pfm_perf_encode_arg_t arg = {.attr = attr, .fstr = fstr, .size = sizeof(arg)};
	int rc;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!str || !attr)
		return PFM_ERR_INVAL;
	rc = pfm_get_os_event_encoding(str, dfl_plm, PFM_OS_PERF_EVENT, &arg);
	if (!rc && idx)
		*idx = arg.idx;
	return rc;
}

static const char *fault_of(const struct table_pmu *pmu, const struct table_event *event,
			    unsigned int number)
{
	const char *name = table_string(event->name);

	if (!name || !*name)
		return "has no name";
	if (!table_string(event->desc))
		return "has no description";
	if (event->n_masks > MAX_MASKS)
		return "has too many unit masks";
	if (pmu->encoder != TABLE_ENCODE_PERF_RAW &&
	    tly_pfm_table_find_event(pmu, name, strlen(name)) > (int)number)
		return "is not found by its name";
	for (unsigned int i = 0; i < event->n_masks; i++) {
		const struct table_mask *mask = &table_masks(event)[i];
		const char *label = table_string(mask->name);

		if (!label || !*label)
			return "has a unit mask without a name";
		if (tly_pfm_table_find_mask(event, label, strlen(label)) < 0)
			return "has a unit mask that is not found by its name";
	}
	return NULL;
}

pfm_err_t pfm_pmu_validate(pfm_pmu_t id, FILE *fp)
{
	const struct table_pmu *pmu;
	int rc = PFM_SUCCESS;

	if (!tly_pfm_host.ready)
		return PFM_ERR_NOINIT;
	if (!fp)
		return PFM_ERR_INVAL;
	if (tly_pfm_sysfs_unit(id))
		return PFM_SUCCESS;
	pmu = tly_pfm_unit(id);
	if (!pmu)
		return no_unit(id);
	for (unsigned int i = 0; i < pmu->n_events; i++) {
		const struct table_event *event = table_event(pmu, i);
		const char *fault = fault_of(pmu, event, i);

		if (!fault)
			continue;
		fprintf(fp, "%s: event %u (%s) %s\n", table_string(pmu->name), i,
			event->name ? table_string(event->name) : "", fault);
		rc = PFM_ERR_INVAL;
	}
	return rc;
}
