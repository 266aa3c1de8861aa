/* SPDX-License-Identifier: MIT */
/* What processes of the run know of their own memory, for who looks at their maps. */
#ifndef RUNTIME_LINUX_MAPS_LAYOUT_H
#define RUNTIME_LINUX_MAPS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/maps_view.h"

/* This process's as it is now; another's, if it is one of the run and lets itself be read. maps_layout_free()
 * afterwards. */
bool maps_layout_own(struct maps_layout *layout);
bool maps_layout_of(int pid, struct maps_layout *layout);

void maps_layout_free(struct maps_layout *layout);

#endif
