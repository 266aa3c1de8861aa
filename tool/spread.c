// SPDX-License-Identifier: MIT
#include "tool/spread.h"

#include <math.h>

void spread_add(struct spread *spread, double value)
{
	double distance = value - spread->mean;

	if (!spread->n || value < spread->min)
		spread->min = value;
	if (!spread->n || value > spread->max)
		spread->max = value;
	spread->n++;
	spread->mean += distance / (double)spread->n;
	spread->squares += distance * (value - spread->mean);
}

double spread_deviation(const struct spread *spread)
{
	return spread->n < 2 ? 0 : sqrt(spread->squares / (double)(spread->n - 1));
}

double spread_percent(const struct spread *spread)
{
	return spread->mean == 0 ? 0 : 100 * spread_deviation(spread) / fabs(spread->mean);
}
