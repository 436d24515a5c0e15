// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_HAND_ROWS kHandRowsAvx512
#define HEDDLE_HAND_ROWS_SINGLE kHandRowsSingleAvx512
#include "bench/hand/rows.inc"
