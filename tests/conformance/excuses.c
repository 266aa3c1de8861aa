// SPDX-License-Identifier: MIT
/* The rows of the matrix that no case can show, each with the reason. */
#include "conformance.h"

ABI_EXCUSE("errno.ebusy",
	   "wants two units that exclude each other, such as trace and branch records");
ABI_EXCUSE("errno.enodev",
	   "wants a processor without a feature of its own kind; nothing to ask for");
ABI_EXCUSE("errno.enosys", "wants a processor whose user stack cannot be copied; x86 has no such");
ABI_EXCUSE("life.legacy-constraints", "a bug of kernels before 2.6.34 that nobody is to reproduce");
ABI_EXCUSE("life.portability", "about clients on other systems, where this suite does not build");
ABI_EXCUSE("rdpmc.self-only", "a rule for readers; breaking it gives a wrong number, not an error");
ABI_EXCUSE("record.aux_output_hw_id",
	   "written only by units that tag their AUX data, on hybrid hosts");
ABI_EXCUSE("record.lost_samples", "written only when a PEBS area of Intel overflows");
ABI_EXCUSE("record.misc.guest_kernel", "wants a guest running under KVM on this machine");
ABI_EXCUSE("record.misc.guest_user", "wants a guest running under KVM on this machine");
ABI_EXCUSE("record.misc.hypervisor", "no x86 implementation reports this mode");
