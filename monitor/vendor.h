/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_VENDOR_H
#define MONITOR_VENDOR_H

#include <stdint.h>

#include "monitor/machine.h"

/* enum core_vendor, by what the processor says of itself. */
uint32_t vendor_of(cpuid_answers *ask);

#endif
