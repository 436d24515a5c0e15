// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_HAND_ROWS kHandRowsAvx2
#define HEDDLE_HAND_ROWS_SINGLE kHandRowsSingleAvx2
#include "bench/hand/rows.inc"
