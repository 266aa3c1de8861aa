// SPDX-License-Identifier: MIT
/* The findings for programs; tally-doctor(1) documents every member. */
#include "tool/doctor.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "tool/json.h"

static void write_strings(struct tool_json *json, const char *key, const char *list)
{
	char name[sizeof(((struct tally_system *)0)->units)];

	tool_json_array(json, key);
	while (*list) {
		size_t length = strcspn(list, " ");

		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		tool_json_text(json, NULL, name);
		list += length;
		list += strspn(list, " ");
	}
	tool_json_end(json);
}

static void write_setting(struct tool_json *json, const char *key, long value, long absent)
{
	if (value == absent)
		tool_json_null(json, key);
	else
		tool_json_int(json, key, value);
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_system(struct tool_json *json, const struct doctor *doctor)
{
	const struct tally_system *system = &doctor->system;

	tool_json_object(json, "machine");
	tool_json_text(json, "kernel", doctor->kernel.release);
	tool_json_text(json, "architecture", doctor->kernel.machine);
	tool_json_int(json, "processors", doctor->processors);
	tool_json_text(json, "virtualization", system->virtualization);
	tool_json_text(json, "container", system->container);
	tool_json_bool(json, "pmu", system->has_pmu);
	tool_json_text(json, "pmu_name", text_or_null(system->pmu_name));
	write_strings(json, "units", system->units);
	tool_json_end(json);

	tool_json_object(json, "settings");
	write_setting(json, "perf_event_paranoid", system->paranoid, INT_MIN);
	write_setting(json, "perf_event_mlock_kb", system->mlock_kb, -1);
	write_setting(json, "perf_event_max_sample_rate", system->max_sample_rate, -1);
	write_setting(json, "perf_event_max_stack", system->max_stack, -1);
	write_setting(json, "kptr_restrict", system->kptr_restrict, -1);
	tool_json_text(json, "tracefs", text_or_null(system->tracefs));
	tool_json_bool(json, "tracefs_readable", system->tracefs_readable);
	tool_json_text(json, "debuginfod", doctor->debuginfod);
	tool_json_end(json);

	tool_json_object(json, "process");
	tool_json_array(json, "capabilities");
	if (system->cap_perfmon)
		tool_json_text(json, NULL, "CAP_PERFMON");
	if (system->cap_sys_admin)
		tool_json_text(json, NULL, "CAP_SYS_ADMIN");
	if (system->cap_sys_ptrace)
		tool_json_text(json, NULL, "CAP_SYS_PTRACE");
	if (system->cap_ipc_lock)
		tool_json_text(json, NULL, "CAP_IPC_LOCK");
	tool_json_end(json);
	tool_json_bool(json, "user_namespace", system->user_namespace);
	write_setting(json, "seccomp", system->seccomp, -1);
	tool_json_bool(json, "perf_event_open", system->has_syscall);
	if (doctor->ring_budget == SIZE_MAX)
		tool_json_null(json, "ring_budget");
	else
		tool_json_uint(json, "ring_budget", doctor->ring_budget);
	tool_json_uint(json, "attr_size", system->attr_size);
	tool_json_end(json);
}

static void write_ability(struct tool_json *json, const struct tally_ability *ability)
{
	static const char *const groups[TALLY_ABILITY_GROUPS] = {
		[TALLY_ABILITY_EVENT] = "event",
		[TALLY_ABILITY_SCOPE] = "scope",
		[TALLY_ABILITY_SAMPLE] = "sample",
	};
	static const char *const verdicts[] = {
		[TALLY_CAN] = "can",
		[TALLY_CANNOT] = "cannot",
		[TALLY_MAY_NOT] = "may-not",
	};

	tool_json_object(json, NULL);
	tool_json_text(json, "name", ability->name);
	tool_json_text(json, "group", groups[ability->group]);
	tool_json_text(json, "verdict", verdicts[ability->verdict]);
	tool_json_bool(json, "needs_pmu", ability->pmu);
	tool_json_text(json, "detail", text_or_null(ability->detail));
	tool_json_int(json, "errno", -ability->error.code);
	tool_json_text(json, "reason", text_or_null(ability->error.what));
	tool_json_text(json, "remedy", text_or_null(ability->error.remedy));
	tool_json_end(json);
}

void doctor_write_json(const struct doctor *doctor, FILE *out)
{
	struct tool_json json;

	tool_json_start(&json, out, true);
	tool_json_object(&json, NULL);
	tool_json_bool(&json, "stat", doctor->counts);
	tool_json_bool(&json, "record", doctor->samples);
	write_system(&json, doctor);
	tool_json_array(&json, "abilities");
	for (size_t i = 0; i < doctor->nr_abilities; i++)
		write_ability(&json, &doctor->abilities[i]);
	tool_json_end(&json);
	tool_json_end(&json);
	tool_json_finish(&json);
}
