/* SPDX-License-Identifier: MIT */
/*
 * `tally __complete [--] WORD...`, which the shells' completions call: what may stand in place of
 * the last WORD of a command line whose earlier words, behind `tally`, are the others.
 *
 * Each line of output is a candidate, a tab and its description. A line that begins with a colon
 * is a request to the shell:
 *
 *	:files		complete names of files
 *	:command N	complete a command of its own, which begins at word N (from 0)
 *	:nospace	add no space behind a candidate: more belongs to the word
 */
#ifndef TOOL_COMPLETE_H
#define TOOL_COMPLETE_H

int tool_complete(int argc, char **argv);

#endif
