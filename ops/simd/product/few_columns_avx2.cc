// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/rows.h"
#define HEDDLE_FEW_COLUMNS kFewColumnsAvx2
#define HEDDLE_FEW_SINGLE_COLUMNS kFewSingleColumnsAvx2
#include "ops/simd/product/few_columns.inc"
