// SPDX-License-Identifier: MIT
/*
 * Where this runs decides who can lift a refusal: the user, root, whoever started the container, or
 * whoever owns the host of a virtual machine.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/probe/refusal/refusal.h"
#include "lib/probe/system.h"

static bool contained_by(const struct tally_system *system, const char *name)
{
	return system->container && !strcmp(system->container, name);
}

static void write_lack(struct tly_refusal *r, const char *capability, bool has, char *buf,
		       size_t size)
{
	snprintf(buf, size, "%s, which %s", capability,
		 has && tly_refusal_system(r)->user_namespace
			 ? "holds only inside its user namespace here"
			 : "this process lacks");
}

void tly_write_perfmon(struct tly_refusal *r, char *buf, size_t size)
{
	const struct tally_system *system = tly_refusal_system(r);

	write_lack(r, "CAP_PERFMON", system->cap_perfmon || system->cap_sys_admin, buf, size);
}

void tly_write_admin(struct tly_refusal *r, char *buf, size_t size)
{
	write_lack(r, "CAP_SYS_ADMIN", tly_refusal_system(r)->cap_sys_admin, buf, size);
}

/* Docker knows the capabilities of Linux 5.8 since version 23 only: Debian 12 has 20.10. */
static const char *for_old_docker(const struct tally_system *system, const char *capability)
{
	return contained_by(system, "docker") && !strcmp(capability, "PERFMON")
		       ? " (before Docker 23: SYS_ADMIN)"
		       : "";
}

/* What a container has in a user namespace of its own counts nowhere else. */
static void write_outside_right(const struct tally_system *system, const char *capability,
				char *buf, size_t size)
{
	if (contained_by(system, "podman"))
		snprintf(buf, size, "sudo podman run --cap-add %s ...", capability);
	else
		snprintf(buf, size, "run it as root outside of the user namespace");
}

/*
 * A capability outside of the bounding set is for whoever started the container (or the service,
 * where it is root that lacks it) to give. False when this process can get it by itself.
 */
static bool write_start_right(const struct tally_system *system, const char *capability, bool gain,
			      char *buf, size_t size)
{
	if (system->user_namespace) {
		write_outside_right(system, capability, buf, size);
		return true;
	}
	if (gain || (!system->container && geteuid() != 0))
		return false;
	if (contained_by(system, "kubernetes"))
		snprintf(buf, size, "in the pod's securityContext: capabilities: {add: [%s]}",
			 capability);
	else if (contained_by(system, "podman") || contained_by(system, "docker"))
		snprintf(buf, size, "%s run --cap-add %s ...%s", system->container, capability,
			 for_old_docker(system, capability));
	else
		snprintf(buf, size, "start its container or service with CAP_%s", capability);
	return true;
}

void tly_write_perfmon_right(struct tly_refusal *r, char *buf, size_t size)
{
	const struct tally_system *system = tly_refusal_system(r);
	char exe[PATH_MAX];
	ssize_t length;

	if (write_start_right(system, "PERFMON", system->may_gain_perfmon, buf, size))
		return;
	length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	/* In a run nobody has the rights that its file would give. */
	if (!system->may_gain_perfmon || tally_user_mode())
		length = 0;
	exe[length > 0 ? length : 0] = '\0';
	snprintf(buf, size, "run it as root%s%s",
		 length > 0 ? ", or sudo setcap cap_perfmon+ep " : "", exe);
}

void tly_write_admin_right(struct tly_refusal *r, char *buf, size_t size)
{
	const struct tally_system *system = tly_refusal_system(r);

	if (!write_start_right(system, "SYS_ADMIN", system->may_gain_sys_admin, buf, size))
		snprintf(buf, size, "run it as root");
}

void tly_write_sysctl(struct tly_refusal *r, char *buf, size_t size)
{
	const struct tally_system *system = tly_refusal_system(r);

	snprintf(buf, size, "%ssudo sysctl kernel.perf_event_paranoid",
		 system->container || system->user_namespace ? "on the host: " : "");
}

/* Who set the filter knows how to lift it: the options of the usual suspects. */
void tly_write_filter(struct tly_refusal *r, char *buf, size_t size)
{
	const struct tally_system *system = tly_refusal_system(r);

	if (contained_by(system, "kubernetes"))
		snprintf(buf, size,
			 "in the pod's securityContext: seccompProfile: {type: Unconfined}, "
			 "capabilities: {add: [PERFMON]}");
	else if (contained_by(system, "podman") || contained_by(system, "docker"))
		snprintf(buf, size, "%s run --security-opt seccomp=unconfined%s ...%s",
			 system->container, system->user_namespace ? "" : " --cap-add PERFMON",
			 system->user_namespace ? "" : for_old_docker(system, "PERFMON"));
	else if (contained_by(system, "systemd-nspawn"))
		snprintf(buf, size, "systemd-nspawn --system-call-filter=perf_event_open ...");
	else
		snprintf(buf, size,
			 "allow perf_event_open in the filter of the service or sandbox that "
			 "started this process (systemd: SystemCallFilter=perf_event_open)");
}

/* Not by tly_refusal_system(): most refusals on a machine without a PMU come for this one reason.
 */
static const char *virtualization(const struct tly_refusal *r)
{
	return r->system ? r->system->virtualization : tly_system_virtualization();
}

void tly_write_machine(struct tly_refusal *r, char *buf, size_t size)
{
	const char *name = virtualization(r);

	if (name)
		snprintf(buf, size, "this virtual machine (%s)", name);
	else
		snprintf(buf, size, "this machine");
}

void tly_write_pmu(struct tly_refusal *r, char *buf, size_t size)
{
	static const struct {
		const char *virtualization, *remedy;
	} remedies[] = {
		{"kvm", "start the virtual machine with a PMU (QEMU: -cpu host,pmu=on), or take a "
			"bare-metal instance"},
		{"qemu", "run it under KVM with -cpu host,pmu=on: QEMU's own emulation has no PMU"},
		{"vmware", "set vpmc.enable = \"TRUE\" in the virtual machine's .vmx file"},
		{"hyper-v", "on the host: Set-VMProcessor NAME -Perfmon @(\"pmu\")"},
		{"xen", "start the hypervisor with vpmu=on"},
	};
	const char *name = virtualization(r), *remedy = "take a bare-metal machine";

	if (!name)
		remedy = "see what the driver found (dmesg | grep -i perf): the firmware can "
			 "switch the PMU off";
	for (size_t i = 0; name && i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (!strcmp(name, remedies[i].virtualization))
			remedy = remedies[i].remedy;
	snprintf(buf, size, "%s", remedy);
}
