// SPDX-License-Identifier: MIT
/*
 * The program `tally`. Whatever is measured in user mode begins with `tally run`, which is to take
 * no time, so that this is all there is in here. The other commands, and the libraries that they
 * need for debugging information, compression and tracepoints, are a shared object beside it:
 * loading those takes longer than a short command.
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "tool/command.h"
#include "tool/commands.h"
#include "tool/parts.h"

#define TOOLS "tally-tools.so"

static int run_tools(int argc, char **argv)
{
	char path[PATH_MAX];
	void *tools;
	tool_main_function *tools_main;

	if (!tool_find_part(TOOLS, path))
		return tool_fail("cannot find " TOOLS
				 ", which belongs to tally: install tally anew");
	tools = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	tools_main = tools ? (tool_main_function *)dlsym(tools, "tool_main") : NULL;
	if (!tools_main)
		return tool_fail("cannot load %s: install that, or tally anew", dlerror());
	return tools_main(&run_command, argc, argv);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], run_command.name))
		return run_command.run(&run_command, argc - 1, argv + 1);
	return run_tools(argc, argv);
}
