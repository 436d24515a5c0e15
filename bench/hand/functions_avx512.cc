// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_HAND_FUNCTIONS kHandFunctionsAvx512
#include "bench/hand/functions.inc"
