// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_SINGLE_FUNCTIONS_TABLE kSingleFunctionsAvx512
#include "ops/simd/cellwise/single_functions.inc"
