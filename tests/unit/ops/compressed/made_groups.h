// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"

// Compressed matrices whose encodings the test chooses, with dictionaries that hold tuples twice and tuples
// that no row has.
namespace heddle::ops::testing {

/// What dictionaries hold.
enum class Cells : uint8_t {
  kWhole,          ///< Whole numbers and halves: every sum is exact.
  kDecimal,        ///< Numbers of all digits, and zeros.
  kSpecial,        ///< -0.0, infinities, NaN, the least and the largest numbers among whole ones.
  kSpecialSparse,  ///< The same without -0.0, which a value of the format kSparse does not hold.
};

struct MadeGroup {
  Encoding encoding;
  int64_t width = 1;
  int64_t tuples = 5;
};

/// One group of each encoding and each number of bits of codes; but for kUncompressed.
inline std::vector<MadeGroup> AllEncodings() {
  return {{Encoding::kDenseCodes, 1, 12}, {Encoding::kDefault, 1, 4},     {Encoding::kEmpty, 2, 1},
          {Encoding::kDenseCodes, 2, 9},  {Encoding::kRuns, 1, 6},        {Encoding::kConstant, 1, 1},
          {Encoding::kDefault, 2, 3},     {Encoding::kDenseCodes, 1, 60}, {Encoding::kRuns, 2, 20},
          {Encoding::kDenseCodes, 1, 400}};
}

inline double DrawCell(Cells cells, std::mt19937_64& random) {
  const double whole = static_cast<double>(random() % 41) / 2 - 10;
  if (cells == Cells::kWhole) return random() % 4 == 0 ? 0 : whole;
  if (cells == Cells::kDecimal) return random() % 4 == 0 ? 0 : std::sin(static_cast<double>(random() % 1000));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array<double, 8> special = {cells == Cells::kSpecialSparse ? 2.5 : -0.0,
                                         0.0,
                                         kInfinity,
                                         -kInfinity,
                                         std::numeric_limits<double>::quiet_NaN(),
                                         static_cast<double>(std::numeric_limits<float>::denorm_min()),
                                         static_cast<double>(std::numeric_limits<float>::max()),
                                         -1};
  return random() % 2 == 0 ? special[random() % special.size()] : whole;
}

namespace internal {

inline Codes MakeCodes(const std::vector<uint32_t>& codes, int32_t bits) {
  Codes made = *Codes::Make(static_cast<int64_t>(codes.size()), bits);
  for (size_t i = 0; i < codes.size(); ++i) made.Set(static_cast<int64_t>(i), codes[i]);
  return made;
}

inline void MakeRows(int64_t rows, std::mt19937_64& random, ColumnGroup* group) {
  const auto tuples = static_cast<uint64_t>(group->dictionary.rows());
  // The last tuple of many is one that no row has.
  const uint64_t used = tuples > 2 ? tuples - 1 : tuples;
  std::vector<uint32_t> codes;
  const auto draw = [&] { return static_cast<uint32_t>(random() % used); };
  const int32_t bits = CodeBits(static_cast<int64_t>(tuples));
  if (group->encoding == Encoding::kDenseCodes) {
    for (int64_t i = 0; i < rows; ++i) codes.push_back(draw());
  } else if (group->encoding == Encoding::kRuns) {
    for (int64_t row = 0; row < rows; row += 1 + static_cast<int64_t>(random() % 40)) {
      group->starts.push_back(row);
      codes.push_back(draw());
    }
  } else if (group->encoding == Encoding::kDefault) {
    std::vector<uint16_t> positions;
    for (int64_t row = 0; row < rows; ++row) {
      if (row % kSegmentRows == 0) group->segments.push_back(static_cast<int64_t>(codes.size()));
      if (random() % 7 != 0) continue;
      codes.push_back(draw());
      positions.push_back(static_cast<uint16_t>(row % kSegmentRows));
    }
    group->segments.push_back(static_cast<int64_t>(codes.size()));
    const size_t bytes = positions.size() * sizeof(uint16_t);
    group->positions = *Buffer::Allocate(static_cast<int64_t>(bytes) + 1);
    if (bytes > 0) std::memcpy(group->positions->data(), positions.data(), bytes);
  } else {
    return;
  }
  group->codes = MakeCodes(codes, bits);
}

}  // namespace internal

/// A matrix of the groups, their columns in turns where the next ones have some.
inline Matrix MakeCompressed(int64_t rows, std::vector<MadeGroup> made, Cells cells, ElementType type,
                             uint64_t seed) {
  std::mt19937_64 random(seed);
  auto groups = std::make_shared<ColumnGroups>();
  groups->rows = rows;
  groups->element_type = type;
  for (const MadeGroup& one : made) groups->columns += one.width;
  std::vector<int32_t> order(static_cast<size_t>(groups->columns));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  size_t next = 0;
  for (const MadeGroup& one : made) {
    ColumnGroup group;
    group.encoding = one.encoding;
    group.columns.assign(order.begin() + static_cast<ptrdiff_t>(next),
                         order.begin() + static_cast<ptrdiff_t>(next + static_cast<size_t>(one.width)));
    std::sort(group.columns.begin(), group.columns.end());
    next += static_cast<size_t>(one.width);
    if (one.encoding != Encoding::kEmpty) {
      const int64_t tuples = one.encoding == Encoding::kUncompressed ? rows : one.tuples;
      Matrix dictionary = *Matrix::Dense(tuples, one.width);
      for (int64_t at = 0; at < dictionary.cells(); ++at)
        dictionary.mutable_data()[at] = DrawCell(cells, random);
      group.dictionary = *ToElementType(dictionary, type);
    }
    internal::MakeRows(rows, random, &group);
    groups->groups.push_back(std::move(group));
  }
  EXPECT_TRUE(Verify(*groups).ok()) << Verify(*groups).message();
  return Matrix::OfGroups(std::move(groups));
}

}  // namespace heddle::ops::testing
