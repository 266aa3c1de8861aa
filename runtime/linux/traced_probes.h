/* SPDX-License-Identifier: MIT */
/*
 * Uprobes that the tracing directory has (uprobe_events), as `perf probe` places them. The kernel
 * puts its breakpoint into code that is executed elsewhere in a run, so a tracepoint of such a
 * probe is an event of the run's own unit of probes.
 */
#ifndef RUNTIME_LINUX_TRACED_PROBES_H
#define RUNTIME_LINUX_TRACED_PROBES_H

#include <stdint.h>

struct event_request;

/*
 * Changes a request for a tracepoint of that kind into one for the probe: 0, or an errno value for
 * what we cannot do. All others are left as they are.
 */
int64_t traced_probe(struct event_request *request);

#endif
