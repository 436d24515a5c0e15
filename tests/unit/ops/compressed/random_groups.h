// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"

// Compressed matrices of given cells, whatever pays: every encoding, columns of a group far from each other,
// dictionaries in any order with tuples that no row has, views of more rows.
namespace heddle::ops::testing {

namespace random_groups {

// Bytes of the cells of a row in these columns.
template <typename T>
std::string TupleOf(const Matrix& dense, int64_t row, const std::vector<int32_t>& columns) {
  std::string tuple;
  for (const int32_t column : columns)
    tuple.append(reinterpret_cast<const char*>(dense.data<T>() + row * dense.columns() + column), sizeof(T));
  return tuple;
}

template <typename T>
void StoreCells(const Matrix& dense, bool as_csr, ColumnGroup* group) {
  group->encoding = Encoding::kUncompressed;
  Matrix cells = *Matrix::Dense(dense.rows(), group->width(), dense.element_type());
  for (int64_t i = 0; i < dense.rows(); ++i) {
    const std::string tuple = TupleOf<T>(dense, i, group->columns);
    std::memcpy(cells.mutable_data<T>() + i * group->width(), tuple.data(), tuple.size());
  }
  group->dictionary = as_csr ? *ToSparse(cells) : cells;
}

inline void StoreExceptions(const std::vector<uint32_t>& codes, int32_t bits, ColumnGroup* group) {
  std::vector<std::pair<int64_t, uint32_t>> exceptions;
  for (size_t i = 0; i < codes.size(); ++i)
    if (codes[i] != 0) exceptions.emplace_back(static_cast<int64_t>(i), codes[i]);
  const auto count = static_cast<int64_t>(exceptions.size());
  group->codes = *Codes::Make(count, bits);
  group->positions = *Buffer::Allocate(std::max<int64_t>(2 * count, 1));
  auto* const positions = static_cast<uint16_t*>(group->positions->data());
  const auto rows = static_cast<int64_t>(codes.size());
  group->segments.assign(static_cast<size_t>((rows + kSegmentRows - 1) / kSegmentRows + 1), 0);
  for (int64_t k = 0; k < count; ++k) {
    const auto [row, code] = exceptions[static_cast<size_t>(k)];
    group->codes.Set(k, code);
    positions[k] = static_cast<uint16_t>(row % kSegmentRows);
    ++group->segments[static_cast<size_t>(row / kSegmentRows) + 1];
  }
  for (size_t i = 1; i < group->segments.size(); ++i) group->segments[i] += group->segments[i - 1];
}

inline void StoreRuns(const std::vector<uint32_t>& codes, int32_t bits, ColumnGroup* group) {
  std::vector<uint32_t> of_runs;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i > 0 && codes[i] == codes[i - 1]) continue;
    group->starts.push_back(static_cast<int64_t>(i));
    of_runs.push_back(codes[i]);
  }
  group->codes = *Codes::Make(static_cast<int64_t>(of_runs.size()), bits);
  for (size_t i = 0; i < of_runs.size(); ++i) group->codes.Set(static_cast<int64_t>(i), of_runs[i]);
}

template <typename T>
ColumnGroup GroupOf(const Matrix& dense, std::vector<int32_t> columns, std::mt19937& random) {
  ColumnGroup group;
  group.columns = std::move(columns);
  std::map<std::string, uint32_t> tuples;
  for (int64_t i = 0; i < dense.rows(); ++i) tuples.emplace(TupleOf<T>(dense, i, group.columns), 0);
  const std::string zeros(static_cast<size_t>(group.width()) * sizeof(T), '\0');
  const bool is_zero = tuples.empty() || (tuples.size() == 1 && tuples.begin()->first == zeros);
  if (is_zero && random() % 2 == 0) return group;
  const bool is_constant = tuples.size() == 1 && random() % 2 == 0;
  if (random() % 2 == 0) tuples.emplace(std::string(zeros.size(), '\x40'), 0);  // Of no row.
  if (static_cast<int64_t>(tuples.size()) > kMostTuples || random() % 6 == 0 || tuples.empty()) {
    bool has_negative_zero = false;
    for (int64_t i = 0; i < dense.rows(); ++i)
      for (const int32_t column : group.columns)
        has_negative_zero =
            has_negative_zero || (dense.At(i, column) == 0 && std::signbit(dense.At(i, column)));
    StoreCells<T>(dense, !has_negative_zero && random() % 2 == 0, &group);
    return group;
  }
  if (is_constant) {
    group.encoding = Encoding::kConstant;
    const std::string tuple = TupleOf<T>(dense, 0, group.columns);
    group.dictionary = *Matrix::Dense(1, group.width(), dense.element_type());
    std::memcpy(group.dictionary.template mutable_data<T>(), tuple.data(), tuple.size());
    return group;
  }
  std::vector<std::string> order;
  for (const auto& [tuple, code] : tuples) order.push_back(tuple);
  std::shuffle(order.begin(), order.end(), random);
  group.dictionary = *Matrix::Dense(static_cast<int64_t>(order.size()), group.width(), dense.element_type());
  for (size_t k = 0; k < order.size(); ++k) {
    tuples[order[k]] = static_cast<uint32_t>(k);
    std::memcpy(group.dictionary.template mutable_data<char>() + k * zeros.size(), order[k].data(),
                zeros.size());
  }
  std::vector<uint32_t> codes;
  for (int64_t i = 0; i < dense.rows(); ++i) codes.push_back(tuples[TupleOf<T>(dense, i, group.columns)]);
  int32_t bits = CodeBits(group.tuples());
  if (random() % 4 == 0) bits = std::min(16, 2 * bits);  // More than the tuples need.
  switch (random() % 3) {
    case 0:
      group.encoding = Encoding::kDenseCodes;
      group.codes = *Codes::Make(dense.rows(), bits);
      for (size_t i = 0; i < codes.size(); ++i) group.codes.Set(static_cast<int64_t>(i), codes[i]);
      break;
    case 1:
      group.encoding = Encoding::kDefault;
      StoreExceptions(codes, bits, &group);
      break;
    default:
      group.encoding = Encoding::kRuns;
      StoreRuns(codes, bits, &group);
      break;
  }
  return group;
}

}  // namespace random_groups

/// The cells of `x`, compressed in a way that the seed says; with an odd seed as a view of a matrix with more
/// rows.
inline Matrix RandomGroups(const Matrix& x, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix dense = *ToDense(x);
  const int64_t before = seed % 2 == 0 || x.rows() == 0 ? 0 : 3, behind = before == 0 ? 0 : 2;
  if (before > 0) {
    Matrix more = *Matrix::Dense(before + x.rows() + behind, x.columns(), x.element_type());
    const auto row_bytes = static_cast<size_t>(x.columns() * BytesOf(x.element_type()));
    for (int64_t i = 0; i < more.rows() && row_bytes > 0; ++i)
      std::memcpy(more.mutable_data<char>() + static_cast<size_t>(i) * row_bytes,
                  dense.data<char>() + static_cast<size_t>(i % x.rows()) * row_bytes, row_bytes);
    for (int64_t i = 0; i < x.rows() && row_bytes > 0; ++i)
      std::memcpy(more.mutable_data<char>() + static_cast<size_t>(before + i) * row_bytes,
                  dense.data<char>() + static_cast<size_t>(i) * row_bytes, row_bytes);
    dense = more;
  }
  std::vector<int32_t> columns(static_cast<size_t>(x.columns()));
  for (size_t j = 0; j < columns.size(); ++j) columns[j] = static_cast<int32_t>(j);
  std::shuffle(columns.begin(), columns.end(), random);
  auto groups = std::make_shared<ColumnGroups>();
  groups->rows = dense.rows();
  groups->columns = dense.columns();
  groups->element_type = dense.element_type();
  for (size_t at = 0; at < columns.size();) {
    const size_t width = std::min<size_t>(columns.size() - at, 1 + random() % 3);
    std::vector<int32_t> of_group(columns.begin() + static_cast<int64_t>(at),
                                  columns.begin() + static_cast<int64_t>(at + width));
    std::sort(of_group.begin(), of_group.end());
    groups->groups.push_back(x.element_type() == ElementType::kFloat64
                                 ? random_groups::GroupOf<double>(dense, std::move(of_group), random)
                                 : random_groups::GroupOf<float>(dense, std::move(of_group), random));
    at += width;
  }
  return Matrix::OfGroups(std::move(groups)).Rows(before, before + x.rows());
}

}  // namespace heddle::ops::testing
