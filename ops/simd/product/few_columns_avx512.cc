// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_FEW_COLUMNS kFewColumnsAvx512
#define HEDDLE_FEW_SINGLE_COLUMNS kFewSingleColumnsAvx512
#include "ops/simd/product/few_columns.inc"
