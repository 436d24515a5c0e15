// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "tests/unit/ops/compressed/encoded.h"

namespace heddle::ops::testing {

/// The encodings that store any column; columns of one cell alone are stored by kEmpty and kConstant.
constexpr std::array<Encoding, 4> kEncodingsOfAll = {Encoding::kDenseCodes, Encoding::kDefault,
                                                     Encoding::kRuns, Encoding::kUncompressed};

/// The cells of `x` in groups of one column, by that encoding; those of zeros, and of one other cell, are
/// kEmpty and kConstant.
inline Matrix InEncoding(const Matrix& x, Encoding encoding) {
  const Matrix dense = *ToDense(x);
  const auto bytes = static_cast<size_t>(BytesOf(x.element_type()));
  std::vector<EncodedGroup> groups = SingleGroups(x.columns(), encoding);
  for (EncodedGroup& group : groups) {
    const auto cell = [&](int64_t row) {
      return dense.data<char>() + static_cast<size_t>(row * x.columns() + group.columns[0]) * bytes;
    };
    bool is_constant = true;
    for (int64_t row = 1; row < x.rows() && is_constant; ++row)
      is_constant = std::memcmp(cell(row), cell(0), bytes) == 0;
    if (!is_constant) continue;
    const bool is_zero =
        x.rows() == 0 || std::all_of(cell(0), cell(0) + bytes, [](char c) { return c == 0; });
    group.encoding = is_zero ? Encoding::kEmpty : Encoding::kConstant;
  }
  return EncodedMatrix(dense, groups);
}

/// `x`, but that the first column has zeros alone, and the last of several the cell of its first row.
inline Matrix WithConstantColumns(const Matrix& x) {
  if (x.cells() == 0) return x;
  const Matrix given = *ToDense(x);
  Matrix changed = *Matrix::Dense(x.rows(), x.columns(), x.element_type());
  const auto bytes = static_cast<size_t>(BytesOf(x.element_type()));
  const auto columns = static_cast<size_t>(x.columns());
  std::memcpy(changed.mutable_data<char>(), given.data<char>(), static_cast<size_t>(x.cells()) * bytes);
  for (size_t row = 0; row < static_cast<size_t>(x.rows()); ++row) {
    std::memset(changed.mutable_data<char>() + row * columns * bytes, 0, bytes);
    if (columns > 1)
      std::memcpy(changed.mutable_data<char>() + (row * columns + columns - 1) * bytes,
                  given.data<char>() + (columns - 1) * bytes, bytes);
  }
  return x.IsSparse() ? *ToSparse(changed) : changed;
}

/// Which operators have run on groups of which encodings. Where HEDDLE_ENCODINGS names a file, each pair is
/// written to it once a process (tests/README.md).
class EncodingsTried {
 public:
  static void Add(const std::string& op, const Matrix& compressed) {
    static std::map<std::string, uint32_t> tried;
    uint32_t& encodings = tried[op];
    for (const ColumnGroup& group : compressed.groups().groups) {
      const uint32_t bit = uint32_t{1} << static_cast<int>(group.encoding);
      if ((encodings & bit) != 0) continue;
      encodings |= bit;
      if (const char* file = std::getenv("HEDDLE_ENCODINGS"))
        std::ofstream(file, std::ios::app) << op << " " << Name(group.encoding) << "\n";
    }
  }
};

}  // namespace heddle::ops::testing
