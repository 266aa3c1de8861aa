/* SPDX-License-Identifier: MIT */
/* The names of sampled registers. */
#ifndef TOOL_REGISTERS_H
#define TOOL_REGISTERS_H

#define REGISTER_NAME_SIZE 16

/*
 * The name of the register with bit @number of a mask on @arch, as uname -m calls it (NULL: this
 * machine); "r12" where it is not known. The halves of a vector register have one name.
 */
const char *register_name(const char *arch, unsigned int number, char scratch[REGISTER_NAME_SIZE]);

#endif
