// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_ELEMENTWISE_TABLE kElementwiseKernelsAvx512
#include "ops/simd/cellwise/elementwise.inc"
