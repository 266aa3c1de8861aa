// SPDX-License-Identifier: MIT
/* What of abi-matrix.tsv the cases show. */
#ifndef CONFORMANCE_MATRIX_H
#define CONFORMANCE_MATRIX_H

#include <stdbool.h>

struct matrix;

/* NULL, and a line on stderr, when the file cannot be read. */
struct matrix *matrix_read(const char *path);
void matrix_free(struct matrix *matrix);

/* Some case names this id. */
void matrix_named(struct matrix *matrix, const char *id);

enum matrix_result { MATRIX_PASSED, MATRIX_FAILED, MATRIX_SKIPPED };

/* A case that names this id has run. */
void matrix_ran(struct matrix *matrix, const char *id, enum matrix_result result);

/* Prints how many rows were shown, were contradicted, or were only skipped. */
void matrix_print_results(const struct matrix *matrix);

/*
 * Prints the counts of each area, the excused rows and the rows without a case. True when there
 * are none of the last, no case names an id that the matrix lacks, and no excused row has a case.
 */
bool matrix_print(const struct matrix *matrix);

#endif
