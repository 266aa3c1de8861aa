/* SPDX-License-Identifier: MIT */
/* Call frame information of one dso. */
#ifndef LIB_SYMBOL_CFI_H
#define LIB_SYMBOL_CFI_H

struct tly_cfi;

void tly_cfi_free(struct tly_cfi *cfi);

#endif
