// SPDX-License-Identifier: MIT
#include "lib/probe/refusal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"

static bool contained_by(const struct tally_system *system, const char *name)
{
	return system->container && !strcmp(system->container, name);
}

/* Who set the filter knows how to lift it: the options of the usual suspects. */
static void remedy_filter(const struct tally_system *system, struct tally_error *err)
{
	if (contained_by(system, "kubernetes"))
		tly_error_remedy(err, "in the pod's securityContext: seccompProfile: {type: "
				      "Unconfined}, capabilities: {add: [PERFMON]}");
	else if (contained_by(system, "podman"))
		tly_error_remedy(err, "podman run --security-opt seccomp=unconfined --cap-add "
				      "PERFMON ...");
	else if (contained_by(system, "docker"))
		tly_error_remedy(err, "docker run --security-opt seccomp=unconfined --cap-add "
				      "PERFMON ...");
	else
		tly_error_remedy(err, "allow perf_event_open in the filter of the service or "
				      "sandbox that started this process (systemd: "
				      "SystemCallFilter=perf_event_open)");
}

static enum tally_verdict no_syscall(const struct tally_system *system, struct tally_error *err)
{
	int code = system->syscall_error;

	if (system->seccomp > 0) {
		tly_error(err, code, "a seccomp filter answers perf_event_open with %s",
			  strerror(-code));
		remedy_filter(system, err);
		return TALLY_MAY_NOT;
	}
	if (code == -ENOSYS) {
		tly_error(err, code, "this kernel or sandbox has no perf_event_open");
		tly_error_remedy(err, "run on a Linux kernel built with CONFIG_PERF_EVENTS=y, "
				      "outside of gVisor and the like");
		return TALLY_CANNOT;
	}
	tly_error(err, code, "something in front of the kernel answers perf_event_open with %s",
		  strerror(-code));
	remedy_filter(system, err);
	return TALLY_MAY_NOT;
}

/*
 * The capability that lifts the refusal. Distributions that know levels above 2 ask for the older
 * and larger one there, whatever is to be measured.
 */
static bool takes_sys_admin(const struct tally_system *system, const struct tly_need *need)
{
	return need->sys_admin || system->paranoid > 2;
}

/* A capability outside of the bounding set can only be given by whoever started the container. */
static void remedy_right(const struct tally_system *system, const struct tly_need *need,
			 struct tally_error *err)
{
	bool admin = takes_sys_admin(system, need);
	bool gain = admin ? system->may_gain_sys_admin : system->may_gain_perfmon;
	bool by_level = need->paranoid != TLY_PRIVILEGED && system->paranoid > need->paranoid;
	const char *capability = admin ? "SYS_ADMIN" : "PERFMON";
	const char * or = by_level ? ", or " : "";
	char level[96] = "", exe[PATH_MAX];
	ssize_t length;

	if (by_level)
		snprintf(level, sizeof(level), "%ssudo sysctl kernel.perf_event_paranoid=%d",
			 system->container || system->user_namespace ? "on the host: " : "",
			 need->paranoid);
	if (contained_by(system, "kubernetes") && !gain) {
		tly_error_remedy(err, "in the pod's securityContext: capabilities: {add: [%s]}",
				 capability);
	} else if (system->container && !gain) {
		tly_error_remedy(err, "%s run --cap-add %s ...%s%s",
				 contained_by(system, "podman") ? "podman" : "docker", capability,
				 or, level);
	} else if (system->user_namespace) {
		tly_error_remedy(err, "%s%srun it as root outside of the user namespace", level,
				 or);
	} else if (admin) {
		tly_error_remedy(err, "%s%srun it as root", level, or);
	} else {
		length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		exe[length > 0 ? length : 0] = '\0';
		tly_error_remedy(err, "%s%ssudo setcap cap_perfmon+ep %s", level, or, exe);
	}
}

static enum tally_verdict no_right(const struct tally_system *system, const struct tly_need *need,
				   int code, struct tally_error *err)
{
	bool admin = takes_sys_admin(system, need);
	bool has = system->cap_sys_admin || (!admin && system->cap_perfmon);
	const char *capability = admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON";

	if (has && !system->user_namespace) {
		tly_error(err, code, "refused in spite of %s: a security module or a lockdown",
			  system->cap_sys_admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
		tly_error_remedy(err, "see /sys/kernel/security/lockdown and the audit log "
				      "(SELinux, class perf_event)");
		return TALLY_MAY_NOT;
	}
	if (need->paranoid != TLY_PRIVILEGED && system->paranoid > need->paranoid)
		tly_error(err, code, "%s needs perf_event_paranoid %d or less (it is %d), or %s",
			  need->what, need->paranoid, system->paranoid, capability);
	else if (has)
		tly_error(err, code, "%s needs %s, which holds only inside its user namespace here",
			  need->what, capability);
	else
		tly_error(err, code, "%s needs %s, which this process lacks", need->what,
			  capability);
	remedy_right(system, need, err);
	return TALLY_MAY_NOT;
}

static enum tally_verdict no_pmu(const struct tally_system *system, int code,
				 struct tally_error *err)
{
	static const struct {
		const char *virtualization, *remedy;
	} remedies[] = {
		{"kvm", "start the virtual machine with a PMU (QEMU: -cpu host,pmu=on), or take a "
			"bare-metal instance"},
		{"qemu", "run it under KVM with -cpu host,pmu=on; QEMU's own emulation has no PMU"},
		{"vmware", "set vpmc.enable = \"TRUE\" in the virtual machine's .vmx file"},
		{"hyper-v", "on the host: Set-VMProcessor NAME -Perfmon @(\"pmu\")"},
		{"xen", "start the hypervisor with vpmu=on"},
	};

	if (!system->virtualization) {
		tly_error(err, code, "the kernel shows no hardware PMU");
		tly_error_remedy(err, "'dmesg | grep -i perf' says what the driver found; the "
				      "firmware can switch the PMU off");
		return TALLY_CANNOT;
	}
	tly_error(err, code, "this virtual machine (%s) has no hardware PMU",
		  system->virtualization);
	tly_error_remedy(err, "ask for a bare-metal machine: this hypervisor shows no PMU");
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (!strcmp(system->virtualization, remedies[i].virtualization))
			tly_error_remedy(err, "%s", remedies[i].remedy);
	return TALLY_CANNOT;
}

enum tally_verdict tly_refusal(const struct tally_system *system, const struct tly_need *need,
			       int code, struct tally_error *err)
{
	if (!system->has_syscall)
		return no_syscall(system, err);
	switch (-code) {
	case EACCES:
	case EPERM:
		return no_right(system, need, code, err);
	case EMFILE:
	case ENFILE:
		tly_error(err, code, "no file descriptor is left (%s)", strerror(-code));
		tly_error_remedy(err, "ulimit -n 65536");
		return TALLY_MAY_NOT;
	case EBUSY:
		tly_error(err, code, "every hardware counter is taken");
		tly_error_remedy(err, "sudo sysctl kernel.nmi_watchdog=0, and end other profilers");
		return TALLY_MAY_NOT;
	case ENOMEM:
		tly_error(err, code, "the kernel is short of memory");
		return TALLY_MAY_NOT;
	}
	if (need->pmu && !system->has_pmu)
		return no_pmu(system, code, err);
	if (need->pmu)
		tly_error(err, code, "this processor's PMU does not offer it (%s)",
			  strerror(-code));
	else
		tly_error(err, code, "this kernel does not offer it (%s)", strerror(-code));
	return TALLY_CANNOT;
}
