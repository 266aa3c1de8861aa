// SPDX-License-Identifier: MIT
#include "pfm/event.h"

int tly_pfm_encode(struct request *request)
{
	switch (request->event.pmu->encoder) {
	case TABLE_ENCODE_INTEL:
	case TABLE_ENCODE_X86_ARCH:
		return tly_pfm_encode_intel(request);
	case TABLE_ENCODE_AMD64:
	case TABLE_ENCODE_AMD64_L3:
	case TABLE_ENCODE_AMD64_NB:
		return tly_pfm_encode_amd64(request);
	case TABLE_ENCODE_ARM:
	case TABLE_ENCODE_ARM_ARCH:
		return tly_pfm_encode_arm(request);
	case TABLE_ENCODE_PERF:
		return tly_pfm_encode_perf(request);
	case TABLE_ENCODE_PERF_RAW:
		request->codes[0] = request->raw;
		request->n_codes = 1;
		return PFM_SUCCESS;
	case TABLE_ENCODE_RAPL:
	case TABLE_ENCODE_TALLY:
		request->codes[0] = request->event.entry->code;
		request->n_codes = 1;
		return PFM_SUCCESS;
	case TABLE_ENCODE_SYSFS:
		request->n_codes = 1;
		for (unsigned int i = 0; i < SYSFS_CONFIGS; i++) {
			request->codes[i] = request->config[i];
			if (request->config[i])
				request->n_codes = i + 1;
		}
		return PFM_SUCCESS;
	default:
		return PFM_ERR_NOTSUPP;
	}
}
