// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/module/hdf5/library.h"

// The driver through which the library sees files: reads go to the file that Heddle has opened, writes stay
// in memory.
namespace heddle::ops::hdf5 {

/// What a driver reads from or writes to; outlives the file of the library.
struct Storage {
  const ModuleInput* input = nullptr;  // nullptr: it is written
  Status failure;                      // of a read
  haddr_t end = 0;                     // of a file that is written, as allocated
  std::vector<std::pair<haddr_t, std::string>> written;
};

/// The only name under which the driver opens a file: a link into another file leads nowhere.
constexpr char kNameOfFile[] = "heddle";

/// The access properties by which the library opens `storage`.
Result<Handle> AccessOf(Storage* storage);

/// What has been written to [begin, begin + size), zeros elsewhere.
void CopyWritten(const Storage& storage, haddr_t begin, size_t size, char* out);

}  // namespace heddle::ops::hdf5
