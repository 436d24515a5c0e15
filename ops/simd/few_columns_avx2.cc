// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_FEW_COLUMNS kFewColumnsAvx2
#include "ops/simd/few_columns.inc"
