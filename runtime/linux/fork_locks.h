/* SPDX-License-Identifier: MIT */
/*
 * Locks of what a forked child goes on with as it was: fork(2) holds them, in this order, and those
 * of slots, heap and translator behind them, so that the child finds nothing half done, and no lock
 * held by a thread that it does not have. Who holds one takes none that comes before it.
 */
#ifndef RUNTIME_LINUX_FORK_LOCKS_H
#define RUNTIME_LINUX_FORK_LOCKS_H

#include "runtime/lock.h"

extern struct lock event_map_changing, event_map_lock, event_fds_lock, event_passed_lock,
	virtual_folders_lock, semaphores_lock, maps_files_lock;

#endif
