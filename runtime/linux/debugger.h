/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_DEBUGGER_H
#define RUNTIME_LINUX_DEBUGGER_H

/* The program is about to do to another what debuggers do. Says once that it will not work. */
void debugger_seen(void);

#endif
