// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/ops/compressed/random_groups.h"

namespace heddle::ops::testing {

/// Columns that are stored together, by that encoding.
struct EncodedGroup {
  std::vector<int32_t> columns;
  Encoding encoding = Encoding::kDenseCodes;
  int32_t more_bits = 1;      ///< Codes have so many times the bits that they need.
  bool cells_as_csr = false;  ///< Of kUncompressed.
};

template <typename T>
ColumnGroup Encoded(const Matrix& dense, const EncodedGroup& plan) {
  ColumnGroup group;
  group.columns = plan.columns;
  group.encoding = plan.encoding;
  if (plan.encoding == Encoding::kEmpty) return group;
  if (plan.encoding == Encoding::kUncompressed) {
    random_groups::StoreCells<T>(dense, plan.cells_as_csr, &group);
    return group;
  }
  std::map<std::string, uint32_t> codes_of;
  std::vector<std::string> tuples;
  std::vector<uint32_t> codes;
  for (int64_t i = 0; i < dense.rows(); ++i) {
    const auto [place, is_new] = codes_of.emplace(random_groups::TupleOf<T>(dense, i, group.columns),
                                                  static_cast<uint32_t>(tuples.size()));
    if (is_new) tuples.push_back(place->first);
    codes.push_back(place->second);
  }
  group.dictionary = *Matrix::Dense(static_cast<int64_t>(tuples.size()), group.width(), dense.element_type());
  for (size_t t = 0; t < tuples.size(); ++t)
    std::memcpy(group.dictionary.template mutable_data<char>() + t * tuples[t].size(), tuples[t].data(),
                tuples[t].size());
  const int32_t bits = std::min(16, plan.more_bits * CodeBits(group.tuples()));
  if (plan.encoding == Encoding::kDenseCodes) {
    group.codes = *Codes::Make(dense.rows(), bits);
    for (size_t i = 0; i < codes.size(); ++i) group.codes.Set(static_cast<int64_t>(i), codes[i]);
  } else if (plan.encoding == Encoding::kDefault) {
    random_groups::StoreExceptions(codes, bits, &group);
  } else if (plan.encoding == Encoding::kRuns) {
    random_groups::StoreRuns(codes, bits, &group);
  }
  return group;
}

/// The cells of dense `x` in these groups, which have all columns, as a view of rows in the midst of more
/// (which begin with an odd one).
inline Matrix EncodedMatrix(const Matrix& x, const std::vector<EncodedGroup>& plan, int64_t before = 3) {
  const auto row_bytes = static_cast<size_t>(x.columns() * BytesOf(x.element_type()));
  Matrix more = *Matrix::Dense(x.rows() == 0 ? 0 : before + x.rows() + 2, x.columns(), x.element_type());
  for (int64_t i = 0; i < more.rows() && row_bytes > 0; ++i)
    std::memcpy(
        more.mutable_data<char>() + static_cast<size_t>(i) * row_bytes,
        x.data<char>() + static_cast<size_t>(std::clamp<int64_t>(i - before, 0, x.rows() - 1)) * row_bytes,
        row_bytes);
  auto groups = std::make_shared<ColumnGroups>();
  groups->rows = more.rows();
  groups->columns = more.columns();
  groups->element_type = more.element_type();
  for (const EncodedGroup& group : plan)
    groups->groups.push_back(x.element_type() == ElementType::kFloat64 ? Encoded<double>(more, group)
                                                                       : Encoded<float>(more, group));
  const int64_t first = x.rows() == 0 ? 0 : before;
  return Matrix::OfGroups(std::move(groups)).Rows(first, first + x.rows());
}

/// Number `i` of a sequence that looks random, below `bound`.
inline int64_t Drawn(int64_t i, int64_t bound) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15U + 0x1234567;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9U;
  return static_cast<int64_t>((x >> 33) % static_cast<uint64_t>(bound));
}

/// Cells with few different ones a column, some of which are frequent, and some of which come in runs.
inline Matrix FewDifferent(int64_t rows, int64_t columns, const std::function<double(int64_t)>& value,
                           ElementType type = ElementType::kFloat64) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t number = 0;
      switch (j % 5) {
        case 0: number = Drawn(i * 31 + j, 3); break;
        case 1: number = Drawn(i * 17 + j, 11) == 0 ? 1 + i % 4 : 0; break;
        case 2: number = i / 700 % 7; break;
        case 3: number = Drawn(i + j, 40); break;
        default: number = Drawn(i * 7 + j, 300); break;
      }
      matrix.mutable_data()[i * columns + j] = value(number);
    }
  return *ToElementType(matrix, type);
}

/// Groups of one to three columns for `columns` columns in turn by every encoding that has codes; columns of
/// a group are adjacent, or not.
inline std::vector<EncodedGroup> MixedGroups(int64_t columns, bool adjacent) {
  constexpr std::array<Encoding, 5> kEncodings = {Encoding::kDenseCodes, Encoding::kDenseCodes,
                                                  Encoding::kDefault, Encoding::kRuns, Encoding::kDenseCodes};
  std::vector<EncodedGroup> groups;
  for (int32_t j = 0; j < columns;) {
    EncodedGroup group{.encoding = kEncodings[groups.size() % kEncodings.size()],
                       .more_bits = groups.size() % 7 == 4 ? 2 : 1};
    const auto width = std::min<int64_t>(columns - j, 1 + static_cast<int64_t>(groups.size() % 3) / 2 * 2);
    for (int64_t k = 0; k < width; ++k) group.columns.push_back(j++);
    groups.push_back(std::move(group));
  }
  if (adjacent || columns < 2) return groups;
  for (size_t g = 0; g + 1 < groups.size(); g += 2) std::swap(groups[g].columns[0], groups[g + 1].columns[0]);
  for (EncodedGroup& group : groups) std::sort(group.columns.begin(), group.columns.end());
  return groups;
}

/// Each column by itself, by one encoding.
inline std::vector<EncodedGroup> SingleGroups(int64_t columns, Encoding encoding) {
  std::vector<EncodedGroup> groups;
  for (int32_t j = 0; j < columns; ++j) groups.push_back({.columns = {j}, .encoding = encoding});
  return groups;
}

}  // namespace heddle::ops::testing
