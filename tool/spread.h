/* SPDX-License-Identifier: MIT */
/* Mean and standard deviation of numbers that come one by one (Welford's recurrence). */
#ifndef TOOL_SPREAD_H
#define TOOL_SPREAD_H

#include <stdint.h>

struct spread {
	uint64_t n;
	double mean;
	double squares; /* sum of squared distances from the mean */
	double min, max;
};

/* Start from a zeroed struct. */
void spread_add(struct spread *spread, double value);

/* Of the sample, with n - 1 below; 0 for fewer than two numbers. */
double spread_deviation(const struct spread *spread);

/* The deviation in percent of the mean; 0 where the mean is 0. */
double spread_percent(const struct spread *spread);

#endif
