/* SPDX-License-Identifier: MIT */
/* All of libtally. See libtally(3). */
#ifndef TALLY_TALLY_H
#define TALLY_TALLY_H

#include <tally/attr.h>
#include <tally/counter.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/perfdata.h>
#include <tally/probe.h>
#include <tally/record.h>
#include <tally/sampler.h>
#include <tally/symbol.h>
#include <tally/workload.h>

#endif
