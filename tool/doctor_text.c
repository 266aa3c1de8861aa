// SPDX-License-Identifier: MIT
/*
 * The findings for people: the facts, a mark for each ability, and below, once each, the reasons
 * with what to type. The last lines say what it comes to.
 */
#include "tool/doctor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "tool/reasons.h"
#include "tool/terminal.h"

#define COLUMNS 80
#define LABEL	22

struct style {
	FILE *out;
	bool utf8;
	const char *good, *bad, *warn, *bold, *plain;
};

static struct style choose_style(FILE *out)
{
	struct style style = {out, tool_utf8(), "", "", "", "", ""};

	if (tool_colours(out)) {
		style.good = "\033[32m";
		style.bad = "\033[31m";
		style.warn = "\033[33m";
		style.bold = "\033[1m";
		style.plain = "\033[0m";
	}
	return style;
}

static void heading(const struct style *style, const char *text)
{
	fprintf(style->out, "\n%s%s%s\n", style->bold, text, style->plain);
}

static void fact(const struct style *style, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fact(const struct style *style, const char *label, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(style->out, "  %-*s", LABEL, label);
	tool_wrap(style->out, text, LABEL + 2, COLUMNS);
}

static const char *paranoid_meaning(int level)
{
	if (level <= -1)
		return "everybody may measure everything";
	if (level == 0)
		return "all but raw tracepoint data, for everybody";
	if (level == 1)
		return "one's own programs and the kernel's work for them";
	if (level == 2)
		return "one's own programs, user code alone";
	return "nothing without CAP_PERFMON, where the distribution's kernel has it so";
}

static void write_settings(const struct style *style, const struct doctor *doctor)
{
	const struct tally_system *system = &doctor->system;
	static const char *const filters[] = {"none", "strict", "filter"};
	char caps[128] = "";

	heading(style, "Settings");
	if (system->paranoid == INT_MIN)
		fact(style, "perf_event_paranoid", "not readable");
	else
		fact(style, "perf_event_paranoid", "%d (%s)", system->paranoid,
		     tally_system_privileged(system) ? "does not bind this process: CAP_PERFMON"
						     : paranoid_meaning(system->paranoid));
	snprintf(caps, sizeof(caps), "%s%s%s%s", system->cap_perfmon ? "CAP_PERFMON " : "",
		 system->cap_sys_admin ? "CAP_SYS_ADMIN " : "",
		 system->cap_sys_ptrace ? "CAP_SYS_PTRACE " : "",
		 system->cap_ipc_lock ? "CAP_IPC_LOCK " : "");
	caps[strlen(caps) - (*caps != '\0')] = '\0';
	fact(style, "capabilities", "%s%s", *caps ? caps : "none of use here",
	     *caps && system->user_namespace ? " (within a user namespace: of no use here)" : "");
	fact(style, "seccomp", "%s%s",
	     system->seccomp < 0 || system->seccomp > 2 ? "unknown" : filters[system->seccomp],
	     system->seccomp > 0 ? system->has_syscall ? ", lets perf_event_open pass"
						       : ", stops perf_event_open"
				 : "");
	fact(style, "hardware PMU", "%s%s%s", system->has_pmu ? "yes" : "none",
	     *system->pmu_name ? ", " : "", system->pmu_name);
	fact(style, "event units", "%s", *system->units ? system->units : "none");
	fact(style, "tracefs", "%s%s", *system->tracefs ? system->tracefs : "not mounted",
	     *system->tracefs && !system->tracefs_readable ? ", not readable" : "");
	if (doctor->ring_budget == SIZE_MAX)
		fact(style, "ring buffers", "as large as memory allows");
	else
		fact(style, "ring buffers", "%zu KiB for this user (perf_event_mlock_kb is %ld)",
		     doctor->ring_budget / 1024, system->mlock_kb);
	fact(style, "samples", "at most %ld a second, call chains of %ld frames",
	     system->max_sample_rate, system->max_stack);
	fact(style, "kernel addresses", "%s",
	     system->kptr_restrict == 0 || (system->kptr_restrict == 1 && system->cap_sys_admin)
		     ? "shown"
		     : "hidden (kptr_restrict)");
	fact(style, "debuginfod", "%s",
	     doctor->debuginfod ? doctor->debuginfod : "off (DEBUGINFOD_URLS is not set)");
}

static void write_ability(const struct style *style, const struct tally_ability *ability,
			  struct tool_reasons *reasons)
{
	static const struct {
		const char *sign, *word;
	} marks[] = {
		[TALLY_CAN] = {"\xe2\x9c\x93", "yes"},
		[TALLY_CANNOT] = {"\xe2\x9c\x97", "no "},
		[TALLY_MAY_NOT] = {"\xe2\x9c\x97", "no "},
	};
	const char *colour = ability->verdict == TALLY_CAN	? style->good
			     : ability->verdict == TALLY_CANNOT ? style->bad
								: style->warn;

	fprintf(style->out, "  %s%s%s %-13s ", colour,
		style->utf8 ? marks[ability->verdict].sign : marks[ability->verdict].word,
		style->plain, ability->name);
	if (ability->verdict != TALLY_CAN)
		fprintf(style->out, "%-35s [%zu]\n", ability->what,
			tool_reason(reasons, ability->error.what, ability->error.remedy));
	else if (*ability->detail)
		fprintf(style->out, "%-35s %.24s\n", ability->what, ability->detail);
	else
		fprintf(style->out, "%s\n", ability->what);
}

static void write_abilities(const struct style *style, const struct doctor *doctor,
			    struct tool_reasons *reasons)
{
	static const char *const titles[TALLY_ABILITY_GROUPS] = {
		[TALLY_ABILITY_EVENT] = "Events",
		[TALLY_ABILITY_SCOPE] = "Whose code",
		[TALLY_ABILITY_SAMPLE] = "Samples",
	};

	for (size_t group = 0; group < TALLY_ABILITY_GROUPS; group++) {
		heading(style, titles[group]);
		for (size_t i = 0; i < doctor->nr_abilities; i++)
			if (doctor->abilities[i].group == group)
				write_ability(style, &doctor->abilities[i], reasons);
	}
}

/* What `tally run` adds to what the kernel offers. */
static void write_user_mode(const struct style *style, const struct doctor *doctor)
{
	if (doctor->counts && doctor->system.has_pmu)
		return;
	tool_wrap(style->out,
		  doctor->counts
			  ? "There is no PMU: of a command that tally starts, instructions and "
			    "branches are counted exactly in user mode (tally run), cycles and "
			    "misses computed by a model; tally stat does so by itself, tally "
			    "record with --pmu=user or -e cycles. What runs already can be "
			    "measured with software events alone."
			  : "Commands that tally starts are measured in user mode (tally run): "
			    "instructions and branches exactly, cycles and misses by a model. "
			    "What runs already cannot be.",
		  0, COLUMNS);
}

static void write_conclusion(const struct style *style, const struct doctor *doctor)
{
	const struct tally_ability *own = doctor_ability(doctor, "user");
	const struct tally_ability *kernel = doctor_ability(doctor, "kernel");
	char text[1024];

	fputc('\n', style->out);
	fputs(doctor->counts && doctor->samples ? style->good : style->bad, style->out);
	if (!doctor->counts)
		snprintf(text, sizeof(text), "The kernel lets nothing be measured here: %s.",
			 own->error.what[0] ? own->error.what
					    : doctor_ability(doctor, "software")->error.what);
	else
		snprintf(text, sizeof(text), "tally stat %s here with %s events.",
			 doctor->samples ? "and record work" : "works, record does not,",
			 doctor->system.has_pmu ? "hardware and software" : "software");
	tool_wrap(style->out, text, 0, COLUMNS);
	fputs(style->plain, style->out);
	write_user_mode(style, doctor);
	if (doctor->counts && kernel->verdict != TALLY_CAN)
		tool_wrap(style->out, "Only user code is seen, not what the kernel does for it.", 0,
			  COLUMNS);
}

static void write_machine(const struct style *style, const struct doctor *doctor)
{
	const struct tally_system *system = &doctor->system;
	char text[512];

	snprintf(text, sizeof(text), "%s %s %s, %ld processor%s%s%s%s%s%s%s",
		 doctor->kernel.sysname, doctor->kernel.release, doctor->kernel.machine,
		 doctor->processors, doctor->processors == 1 ? "" : "s",
		 system->virtualization ? ", virtual machine (" : "",
		 system->virtualization ? system->virtualization : "",
		 system->virtualization ? ")" : "", system->container ? ", container (" : "",
		 system->container ? system->container : "", system->container ? ")" : "");
	fputs(style->bold, style->out);
	tool_wrap(style->out, text, 0, COLUMNS);
	fputs(style->plain, style->out);
}

void doctor_write_text(const struct doctor *doctor, FILE *out)
{
	const struct style style = choose_style(out);
	struct tool_reasons reasons = {0};

	write_machine(&style, doctor);
	write_settings(&style, doctor);
	write_abilities(&style, doctor, &reasons);
	if (reasons.nr)
		fputc('\n', out);
	tool_reasons_write(&reasons, out, 0, style.bold, style.plain);
	write_conclusion(&style, doctor);
}
