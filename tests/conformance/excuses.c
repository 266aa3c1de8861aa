// SPDX-License-Identifier: MIT
/* The rows of the matrix that no case can show, each with the reason. */
#include "conformance.h"

ABI_EXCUSE("life.legacy-constraints", "a bug of kernels before 2.6.34 that nobody is to reproduce");
ABI_EXCUSE("life.portability", "about clients on other systems, where this suite does not build");
ABI_EXCUSE("record.misc.hypervisor", "no x86 implementation ever reports this mode");
ABI_EXCUSE("branch.hv", "x86 has no hypervisor level of its own: the bit filters nothing");
