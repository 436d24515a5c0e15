// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the library tells about a dataset before any of its cells is read: its sizes, the type of its cells,
// and which number R puts in place of a missing value.
namespace heddle::ops::hdf5 {

/// Whether cells of this type can be read: numbers, and bit fields of a byte, which are booleans.
bool IsReadable(hid_t type);

/// What cells of a type that cannot be read are, for messages: "texts".
std::string ContentOf(hid_t type);

/// The sizes of a dataset, in the order of the file; nothing where they are not known.
std::optional<std::vector<int64_t>> SizesOf(hid_t dataset);

/// What a cell of a dense array means.
struct Cells {
  bool are_bits = false;          ///< Booleans, one in a byte.
  std::optional<double> missing;  ///< The number that stands for a missing value.
};

/// R's missing integers and logical values: rhdf5 marks what may hold them, where the least number of the
/// type is one; others have them as a member NA of an enumeration.
Cells MeaningOf(hid_t dataset);

}  // namespace heddle::ops::hdf5
