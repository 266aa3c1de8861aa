/* SPDX-License-Identifier: MIT */
/*
 * Records in time order.
 *
 * A recorder empties one ring after the other and then writes a FINISHED_ROUND. What it finds in a
 * ring is ordered, but rings overlap: a record of this round may be older than any of the round
 * before, since its ring was emptied later. It cannot be older than the newest of two rounds ago.
 * So at the end of a round all that is not newer than the newest record of the round before goes
 * out, and no more than two rounds are ever held.
 */
#ifndef LIB_PERFDATA_ORDER_H
#define LIB_PERFDATA_ORDER_H

#include <tally/perfdata.h>

struct tly_order;

struct tly_order *tly_order_new(void);
void tly_order_free(struct tly_order *order);

/* As tally_perfdata_next_ordered(), with the error in reader->error. */
int tly_order_next(struct tly_order *order, struct tally_perfdata *reader,
		   struct tally_perfdata_record *record);

#endif
