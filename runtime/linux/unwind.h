/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_UNWIND_H
#define RUNTIME_LINUX_UNWIND_H

/* Code is not mapped any more where it was: what is known of it for call chains is not true. */
void unwind_forget(void);

/* Code is where there was none. */
void unwind_more(void);

#endif
