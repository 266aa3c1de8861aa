// SPDX-License-Identifier: MIT
/*
 * Demangling is libiberty's: its C++ and Rust demanglers carry an exception that lets a program of
 * any licence link them, which the C++ runtime as a dependency of a C library would not be worth.
 * Their entry points are called directly, since cplus_demangle() also brings Ada's, which ends the
 * process when memory is short.
 */
#include <libiberty/demangle.h>
#include <stddef.h>

#include "lib/symbol/symtab.h"

char *tly_demangle(const char *name)
{
	char *text = NULL;

	/* Rust's older names are C++ names with a hash at the end: Rust goes first. */
	if (name[0] != '_')
		return NULL;
	if (name[1] == 'R' || name[1] == 'Z')
		text = rust_demangle(name, DMGL_NO_OPTS);
	if (!text && name[1] == 'Z')
		text = cplus_demangle_v3(name, DMGL_NO_OPTS);
	return text;
}
