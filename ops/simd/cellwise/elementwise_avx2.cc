// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_ELEMENTWISE_TABLE kElementwiseKernelsAvx2
#include "ops/simd/cellwise/elementwise.inc"
