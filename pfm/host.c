// SPDX-License-Identifier: MIT
#include "pfm/host.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <perfmon/pfmlib.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

struct host tly_pfm_host;

#if defined(__x86_64__) || defined(__i386__)
static struct processor identify(void)
{
	unsigned int a, b, c, d, leaves;
	struct processor cpu = {.vendor = -1};

	if (!__get_cpuid(0, &leaves, &b, &c, &d))
		return cpu;
	if (b == signature_INTEL_ebx && c == signature_INTEL_ecx && d == signature_INTEL_edx)
		cpu.vendor = TABLE_INTEL;
	else if (b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx)
		cpu.vendor = TABLE_AMD;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return cpu;
	cpu.stepping = a & 0xf;
	cpu.family = a >> 8 & 0xf;
	cpu.model = a >> 4 & 0xf;
	if (cpu.family == 6 || cpu.family == 15)
		cpu.model |= (a >> 16 & 0xf) << 4;
	if (cpu.family == 15)
		cpu.family += a >> 20 & 0xff;
	if (cpu.vendor == TABLE_INTEL && leaves >= 10 && __get_cpuid(10, &a, &b, &c, &d))
		cpu.counters = a & 0xff ? a >> 8 & 0xff : 0, cpu.fixed = d & 0x1f;
	return cpu;
}
#elif defined(__aarch64__)
static struct processor identify(void)
{
	static const char path[] = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
	struct processor cpu = {.vendor = TABLE_ARM};
	unsigned long long midr;
	FILE *file = fopen(path, "re");

	if (!file || fscanf(file, "%llx", &midr) != 1)
		cpu.vendor = -1;
	else
		cpu.family = midr >> 24 & 0xff, cpu.model = midr >> 4 & 0xfff;
	if (file)
		fclose(file);
	return cpu;
}
#else
static struct processor identify(void)
{
	return (struct processor){.vendor = -1};
}
#endif

static bool models_match(const struct table_pmu *pmu, const struct processor *cpu)
{
	const struct table_model *models = table_models(pmu);

	for (unsigned int i = 0; i < pmu->n_models; i++)
		if (models[i].vendor == cpu->vendor && models[i].family == cpu->family &&
		    cpu->model >= models[i].first && cpu->model <= models[i].last &&
		    cpu->stepping >= models[i].first_stepping &&
		    cpu->stepping <= models[i].last_stepping)
			return true;
	return false;
}

/*
 * Within a tally run the counters are not the processor's, whatever that says it is. They
 * understand its codes, of what they have.
 */
static bool is_virtual(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/cpu/caps/pmu_name", "re");
	char name[16] = "";
	bool found;

	if (!file)
		return false;
	found = fgets(name, sizeof(name), file) && !strcmp(name, "tally\n");
	fclose(file);
	return found;
}

struct processor tly_pfm_processor(void)
{
	struct processor cpu = identify();

	cpu.is_virtual = is_virtual();
	return cpu;
}

/* Counters of the processor's own model, and not of whatever processor. */
static bool is_of_a_model(const struct table_pmu *pmu)
{
	return pmu->type == PFM_PMU_TYPE_CORE && pmu->n_models;
}

static bool is_present(const struct table_pmu *pmu, const struct processor *cpu)
{
	switch (pmu->encoder) {
	case TABLE_ENCODE_TALLY:
		return cpu->is_virtual;
	case TABLE_ENCODE_PERF:
	case TABLE_ENCODE_PERF_RAW:
		return true;
	case TABLE_ENCODE_X86_ARCH:
		return !cpu->is_virtual && cpu->counters > 0;
	case TABLE_ENCODE_ARM_ARCH:
		return cpu->vendor == TABLE_ARM;
	case TABLE_ENCODE_RAPL:
	case TABLE_ENCODE_AMD64_L3:
	case TABLE_ENCODE_AMD64_NB:
		return models_match(pmu, cpu) && tly_pfm_device_type(pmu) >= 0;
	default:
		return models_match(pmu, cpu);
	}
}

/* Whether a list with commas has the name. With forced units, what follows the comma is an option.
 */
static bool list_has(const char *list, const char *name, bool first_only)
{
	size_t len = strlen(name);

	while (list && *list) {
		size_t word = strcspn(list, ",");

		if (word == len && strncasecmp(list, name, len) == 0)
			return true;
		if (first_only)
			break;
		list += word;
		list += *list == ',';
	}
	return false;
}

bool tly_pfm_may_have(const char *name)
{
	return !tly_pfm_host.forced && !list_has(getenv("LIBPFM_DISABLED_PMUS"), name, false);
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && atoi(value);
}

/*
 * PAPI looks at numbers until one is wrong, wants counters of a processor and gives up at the
 * second such unit. Those that go with any processor have the greatest numbers, behind a gap: the
 * loop ends before them where there are others.
 */
static unsigned int end_of_loops(bool has_model)
{
	unsigned int end = PFM_PMU_MAX;

	for (size_t i = 0; i < tly_pfm_table.n_pmus; i++) {
		const struct table_pmu *pmu = table_pmus() + i;
		bool is_general =
			pmu->encoder == TABLE_ENCODE_TALLY || pmu->encoder == TABLE_ENCODE_ARM_ARCH;

		if (pmu->id >= end && !(is_general && has_model))
			end = pmu->id + 1;
	}
	return end;
}

void tly_pfm_detect(struct host *host, const struct processor *cpu)
{
	const char *forced = getenv("LIBPFM_FORCE_PMU"), *disabled = getenv("LIBPFM_DISABLED_PMUS");
	bool any = false, has_model = false;

	host->verbose = is_set("LIBPFM_VERBOSE");
	host->debug = is_set("LIBPFM_DEBUG");
	host->out = is_set("LIBPFM_DEBUG_STDOUT") ? stdout : stderr;
	host->forced = forced != NULL;
	host->encode_inactive = getenv("LIBPFM_ENCODE_INACTIVE") != NULL;
	host->arch_counters = cpu->counters;
	host->arch_fixed = cpu->fixed;
	memset(host->present, 0, sizeof(host->present));

	for (size_t i = 0; i < tly_pfm_table.n_pmus && i < 64 * 16; i++) {
		const struct table_pmu *pmu = table_pmus() + i;
		const char *name = table_string(pmu->name);
		bool present = forced ? list_has(forced, name, true) : is_present(pmu, cpu);

		if (list_has(disabled, name, false))
			present = false;
		/* A run has one kind of processor, also where the machine has two. */
		if (cpu->is_virtual && !forced && has_model && is_of_a_model(pmu))
			present = false;
		if (!present)
			continue;
		host->present[i / 64] |= 1ULL << (i % 64);
		any = true;
		has_model |= is_of_a_model(pmu);
		tly_pfm_debug("%s is present", name);
	}
	if (forced && !any)
		tly_pfm_verbose("LIBPFM_FORCE_PMU=%s: no such PMU", forced);
	/* A wrong name there leaves nothing usable, and is no error to programs. */
	host->end = end_of_loops(has_model);
	host->result = any || forced ? PFM_SUCCESS : PFM_ERR_NOTSUPP;
}

const struct table_pmu *tly_pfm_unit(unsigned int id)
{
	const struct table_pmu *pmus = table_pmus();
	size_t low = 0, high = tly_pfm_table.n_pmus;

	/* They are sorted by it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pmus[middle].id == id)
			return &pmus[middle];
		if (pmus[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

int tly_pfm_device_type(const struct table_pmu *pmu)
{
	const char *list = table_string(pmu->devices);

	while (list && *list) {
		int len = strcspn(list, ","), type, fields;
		char path[256];
		FILE *file;

		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%.*s/type", len, list);
		file = fopen(path, "re");
		if (file) {
			fields = fscanf(file, "%d", &type);
			fclose(file);
			if (fields == 1)
				return type;
		}
		list += len;
		list += *list == ',';
	}
	return -1;
}

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	FILE *out = tly_pfm_host.out;

	flockfile(out);
	fputs("libtally-pfm: ", out);
	vfprintf(out, format, args);
	fputc('\n', out);
	funlockfile(out);
}

void tly_pfm_verbose(const char *format, ...)
{
	va_list args;

	if (!tly_pfm_host.verbose && !tly_pfm_host.debug)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void tly_pfm_debug(const char *format, ...)
{
	va_list args;

	if (!tly_pfm_host.debug)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
