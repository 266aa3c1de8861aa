// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/event/vendor.h"

struct walk {
	int (*visit)(const struct tly_vendor_event *event, void *ctx);
	void *ctx;
	pfm_pmu_info_t unit;
	bool with_unit; /* in the names: where another unit may have the same */
};

static void write_encoding(const struct perf_event_attr *attr, char *buf, size_t size)
{
	if (attr->type != PERF_TYPE_RAW)
		return;
	snprintf(buf, size, "r%" PRIx64, (uint64_t)attr->config);
	if (attr->config1)
		snprintf(buf + strlen(buf), size - strlen(buf), "/config1=0x%" PRIx64 "/",
			 (uint64_t)attr->config1);
}

/* Offers it if it can be counted as it stands; an event may need one of its masks. */
static int offer(const struct walk *walk, const pfm_event_info_t *event, const char *mask,
		 const char *mask_desc)
{
	char full[TLY_VENDOR_NAME], encoding[80] = "", desc[TLY_VENDOR_NAME];
	size_t prefix = strlen(walk->unit.name) + strlen("::");
	struct perf_event_attr attr;
	int cpu, rc;

	snprintf(full, sizeof(full), "%s::%s%s%s", walk->unit.name, event->name, *mask ? ":" : "",
		 mask);
	rc = tly_vendor_encode(full, &attr, &cpu);
	/* Those of other machines are not encoded; there an event stands for all of its masks. */
	if (rc && walk->unit.is_present)
		return 0;
	if (!rc)
		write_encoding(&attr, encoding, sizeof(encoding));
	snprintf(desc, sizeof(desc), "%s%s%s", event->desc, *mask ? ": " : "", mask_desc);
	return walk->visit(
		&(struct tly_vendor_event){
			.name = walk->with_unit ? full : full + prefix,
			.encoding = encoding,
			.unit = walk->unit.name,
			.desc = desc,
		},
		walk->ctx);
}

static int walk_event(const struct walk *walk, int idx)
{
	pfm_event_info_t event = {.size = sizeof(event)};
	int ret;

	if (pfm_get_event_info(idx, PFM_OS_NONE, &event) != PFM_SUCCESS)
		return 0;
	ret = offer(walk, &event, "", "");
	for (int i = 0; !ret && i < event.nattrs; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};

		if (pfm_get_event_attr_info(idx, i, PFM_OS_NONE, &attr) != PFM_SUCCESS ||
		    attr.type != PFM_ATTR_UMASK)
			break;
		ret = offer(walk, &event, attr.name, attr.desc);
	}
	return ret;
}

static unsigned int count_cores(void)
{
	unsigned int nr = 0;
	pfm_pmu_info_t unit;

	for (int id = 0; id < TLY_VENDOR_UNITS; id++)
		if (tly_vendor_unit(id, &unit) && tly_vendor_is_here(&unit) &&
		    unit.type == PFM_PMU_TYPE_CORE && !unit.is_dfl)
			nr++;
	return nr;
}

int tly_vendor_walk(bool others, int (*visit)(const struct tly_vendor_event *event, void *ctx),
		    void *ctx)
{
	struct walk walk = {.visit = visit, .ctx = ctx};
	int ret = 0;

	if (pfm_initialize() != PFM_SUCCESS)
		return 0;
	walk.with_unit = others || count_cores() > 1;
	for (int id = 0; !ret && id < TLY_VENDOR_UNITS; id++) {
		if (!tly_vendor_unit(id, &walk.unit) || walk.unit.type == PFM_PMU_TYPE_OS_GENERIC ||
		    tly_vendor_is_here(&walk.unit) == others)
			continue;
		for (int i = walk.unit.first_event; !ret && i >= 0; i = pfm_get_event_next(i))
			ret = walk_event(&walk, i);
	}
	return ret;
}
