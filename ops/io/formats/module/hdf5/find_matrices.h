// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

// What the names in a file lead to: datasets, groups that are a sparse matrix, and groups of Octave.
namespace heddle::ops::hdf5 {

/// What a name in a file leads to, as far as a matrix is looked for.
enum class Kind : uint8_t {
  kOther,   ///< A group of other things, or cells that are no numbers.
  kDense,   ///< A dataset.
  kSparse,  ///< A group that is a sparse matrix.
  kValue    ///< A group of Octave, whose dataset or group "value" is one of these.
};

/// The attribute by which Octave marks its groups, and the name of what they hold.
constexpr char kOctaveMark[] = "OCTAVE_NEW_FORMAT", kOctaveValue[] = "value";

Kind KindOf(hid_t object);

/// Whether a file has something under a path of names.
bool HasPath(hid_t file, const std::string& path);

/// What a walk through a file finds.
struct FoundMatrices {
  std::vector<std::string> names;  ///< Datasets of numbers, and groups that are a matrix.
  std::string inside;              ///< Names that begin so are parts of what was found, or nobody's to see.
  std::string unreadable, cause;   ///< A dataset that this library cannot open, and why.
};
FoundMatrices FindMatrices(hid_t file);

}  // namespace heddle::ops::hdf5
