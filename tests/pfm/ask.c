/*
 * ask LIBRARY [LAYER]: what a library with libpfm4's interface says.
 *
 * Without standard input to read, all PMUs, events and attributes; else the encoding of each line
 * "LAYER<tab>LEVELS<tab>EVENT". One line an answer, its parts between tabs, so that the answers of
 * two libraries can be compared as text.
 */
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	typeof(pfm_initialize) *initialize;
	typeof(pfm_get_pmu_info) *pmu_info;
	typeof(pfm_get_event_next) *event_next;
	typeof(pfm_get_event_info) *event_info;
	typeof(pfm_get_event_attr_info) *attr_info;
	typeof(pfm_get_os_event_encoding) *encode;
} lib;

static int load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		fprintf(stderr, "ask: %s\n", dlerror());
		return -1;
	}
	lib.initialize = dlsym(handle, "pfm_initialize");
	lib.pmu_info = dlsym(handle, "pfm_get_pmu_info");
	lib.event_next = dlsym(handle, "pfm_get_event_next");
	lib.event_info = dlsym(handle, "pfm_get_event_info");
	lib.attr_info = dlsym(handle, "pfm_get_event_attr_info");
	lib.encode = dlsym(handle, "pfm_get_os_event_encoding");
	if (!lib.initialize || !lib.pmu_info || !lib.event_next || !lib.event_info ||
	    !lib.attr_info || !lib.encode) {
		fprintf(stderr, "ask: %s has not all of the interface\n", path);
		return -1;
	}
	return lib.initialize();
}

static const char *text(const char *s)
{
	return s && *s ? s : "-";
}

static void show_event(int idx, pfm_os_t os)
{
	pfm_event_info_t e = {.size = sizeof e};

	if (lib.event_info(idx, os, &e) != PFM_SUCCESS)
		return;
	printf("event\t%s\t%#llx\t%s\t%u\t%u\t%u\t%d\t%d\t%s\n", e.name, (unsigned long long)e.code,
	       text(e.equiv), e.is_precise, e.is_speculative, e.support_hw_smpl, e.dtype, e.nattrs,
	       text(e.desc));
	for (int i = 0; i < e.nattrs; i++) {
		pfm_event_attr_info_t a = {.size = sizeof a};

		if (lib.attr_info(idx, i, os, &a) != PFM_SUCCESS)
			continue;
		printf("attr\t%s\t%d\t%#llx\t%s\t%u\t%u\t%u\t%u\t%d\t%d\t%#llx\t%s\n", a.name,
		       a.type, (unsigned long long)a.code, text(a.equiv), a.is_dfl, a.is_precise,
		       a.is_speculative, a.support_hw_smpl, a.ctrl, a.idx,
		       (unsigned long long)a.dfl_val64, text(a.desc));
	}
}

static void show_all(pfm_os_t os)
{
	for (int id = 0; id < 2000; id++) {
		pfm_pmu_info_t p = {.size = sizeof p};

		if (lib.pmu_info(id, &p) != PFM_SUCCESS)
			continue;
		printf("pmu\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%u\t%u\t%s\n", p.name, id, p.type,
		       p.nevents, p.max_encoding, p.num_cntrs, p.num_fixed_cntrs, p.is_present,
		       p.is_dfl, text(p.desc));
		for (int i = p.first_event; i != -1; i = lib.event_next(i))
			show_event(i, os);
	}
}

/* The numbers of events are each library's own: what they stand for can be compared. */
static const char *name_of(int idx)
{
	pfm_event_info_t e = {.size = sizeof e};

	return lib.event_info(idx, PFM_OS_NONE, &e) == PFM_SUCCESS ? e.name : "?";
}

static void show_codes(const char *event, int levels)
{
	char *full = NULL;
	pfm_pmu_encode_arg_t arg = {.fstr = &full, .size = sizeof arg};
	int rc = lib.encode(event, levels, PFM_OS_NONE, &arg);

	printf("%d", rc);
	if (rc == PFM_SUCCESS) {
		printf("\t%s\t%s", full, name_of(arg.idx));
		for (int i = 0; i < arg.count; i++)
			printf("\t%#llx", (unsigned long long)arg.codes[i]);
		free(arg.codes);
		free(full);
	}
	putchar('\n');
}

static void show_attr(const char *event, int levels, pfm_os_t os)
{
	struct perf_event_attr attr = {0};
	char *full = NULL;
	pfm_perf_encode_arg_t arg = {.attr = &attr, .fstr = &full, .size = sizeof arg};
	int rc = lib.encode(event, levels, os, &arg);

	printf("%d", rc);
	if (rc == PFM_SUCCESS) {
		printf("\t%s\t%s\t%d\t%d\t", full, name_of(arg.idx), arg.cpu, arg.flags);
		for (size_t i = 0; i < sizeof attr; i++)
			printf("%02x", ((unsigned char *)&attr)[i]);
		free(full);
	}
	putchar('\n');
}

static void answer(char *line)
{
	char *end, *event;
	long os = strtol(line, &end, 0);
	long levels = strtol(end, &event, 0);

	if (*event != '\t') {
		puts("?");
		return;
	}
	event[strcspn(event, "\n")] = '\0';
	if (os == PFM_OS_NONE)
		show_codes(event + 1, levels);
	else
		show_attr(event + 1, levels, os);
}

int main(int argc, char **argv)
{
	char line[4096];

	if (argc < 2) {
		fprintf(stderr, "usage: ask LIBRARY [LAYER] <questions\n");
		return 2;
	}
	if (load(argv[1]) != PFM_SUCCESS)
		return 1;
	if (argc > 2) {
		show_all(atoi(argv[2]));
		return 0;
	}
	while (fgets(line, sizeof line, stdin))
		answer(line);
	return 0;
}
