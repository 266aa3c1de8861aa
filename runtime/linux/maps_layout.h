/* SPDX-License-Identifier: MIT */
/* What processes of the run know of their own memory, for who looks at their maps. */
#ifndef RUNTIME_LINUX_MAPS_LAYOUT_H
#define RUNTIME_LINUX_MAPS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/maps_view.h"

/* Whether that is this process, be it by the number of one of its threads. */
bool maps_layout_is_own(int pid);

/* As it is now, of this process, or of another one of the run that lets itself be read. maps_layout_free()
 * afterwards. */
bool maps_layout_of(int pid, struct maps_layout *layout);

void maps_layout_free(struct maps_layout *layout);

#endif
