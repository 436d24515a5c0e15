// SPDX-License-Identifier: Apache-2.0
// heddle-array-process: Heddle starts it to read a file of HDF5 or MATLAB
// (ops/io/formats/libraries/array_process.h).
#include <unistd.h>

#include <cstdio>

#include "core/environment/child_process.h"
#include "core/memory/counted_heap.h"
#include "ops/io/formats/libraries/main/array_server.h"

int main() {
  heddle::PrepareHeap();
  if (!heddle::ops::ServeArray(heddle::kChildControl, heddle::kChildFile)) {
    std::fputs("heddle-array-process: Heddle starts this program to read files of HDF5 and MATLAB\n", stderr);
    return 2;
  }
  // The library has nothing to save, and may have been left in any state.
  _exit(0);
}
