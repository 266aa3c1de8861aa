// SPDX-License-Identifier: MIT
/* `tally doctor`: what can be measured here, and what to type where it cannot. */
#include "tool/doctor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/commands.h"

enum {
	KEY_JSON = 0x100,
};

static const struct tool_option options[] = {
	{KEY_JSON, "json", TOOL_NONE, false, NULL, "write JSON (tally-doctor(1) has the schema)"},
	{0},
};

const struct tally_ability *doctor_ability(const struct doctor *doctor, const char *name)
{
	for (size_t i = 0; i < doctor->nr_abilities; i++)
		if (!strcmp(doctor->abilities[i].name, name))
			return &doctor->abilities[i];
	assert(!"an ability of this name");
	return NULL;
}

static bool can(const struct doctor *doctor, const char *name)
{
	return doctor_ability(doctor, name)->verdict == TALLY_CAN;
}

static bool examine(struct doctor *doctor)
{
	tally_system_probe(&doctor->system);
	uname(&doctor->kernel);
	doctor->processors = sysconf(_SC_NPROCESSORS_ONLN);
	doctor->ring_budget = tally_system_ring_budget();
	doctor->debuginfod = getenv("DEBUGINFOD_URLS");
	if (doctor->debuginfod && !*doctor->debuginfod)
		doctor->debuginfod = NULL;

	doctor->nr_abilities = tally_abilities_count();
	doctor->abilities = calloc(doctor->nr_abilities, sizeof(*doctor->abilities));
	if (!doctor->abilities)
		return false;
	for (size_t i = 0; i < doctor->nr_abilities; i++)
		tally_ability_probe(i, &doctor->system, &doctor->abilities[i]);
	doctor->counts = can(doctor, "software") && can(doctor, "user");
	doctor->samples =
		can(doctor, "ring-buffer") && (can(doctor, "clock") || can(doctor, "hardware"));
	return true;
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	struct doctor doctor = {0};
	bool json = false, healthy;
	int key;

	while ((key = tool_next_option(&parse)) > 0)
		json = true; /* the only option there is */
	if (key < 0)
		return key == -2 ? TOOL_OK : TOOL_USAGE;
	if (parse.index < argc)
		return tool_usage(command, "unexpected argument '%s'", argv[parse.index]);
	if (!examine(&doctor))
		return tool_fail("out of memory");
	if (json)
		doctor_write_json(&doctor, stdout);
	else
		doctor_write_text(&doctor, stdout);
	healthy = doctor.counts && doctor.samples;
	free(doctor.abilities);
	if (fflush(stdout) || ferror(stdout))
		return tool_fail("cannot write to standard output");
	return healthy ? TOOL_OK : TOOL_FAILED;
}

const struct tool_command doctor_command = {
	.name = "doctor",
	.summary = "say what this machine can measure, and how to lift what forbids the rest",
	.usage = "[--json]",
	.options = options,
	.run = run,
};
