// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/arrange_groups.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "core/values/group_rows.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"

namespace heddle::ops {
namespace {

// Rows whose codes are read and written together; even, so that two threads share no byte of codes.
constexpr int64_t kRowsAtOnce = 1024;

// Writes the codes of rows [begin, end), at most kRowsAtOnce, of a group that is being made.
using CodeReader = std::function<void(int64_t begin, int64_t end, uint16_t* codes)>;

Status WriteDenseCodes(int64_t rows, const CodeReader& read, ColumnGroup* group) {
  HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(rows, group->codes.bits()));
  ParallelFor(rows, 64 * kRowsAtOnce, [&](int64_t begin, int64_t end) {
    std::array<uint16_t, kRowsAtOnce> codes;
    for (int64_t row = begin; row < end; row += kRowsAtOnce) {
      const int64_t last = std::min(end, row + kRowsAtOnce);
      read(row, last, codes.data());
      for (int64_t i = row; i < last; ++i) group->codes.Set(i, codes[static_cast<size_t>(i - row)]);
    }
  });
  return OkStatus();
}

// visit(row, code) for all rows, in their order.
template <typename Visit>
void ForRows(int64_t rows, const CodeReader& read, const Visit& visit) {
  std::array<uint16_t, kRowsAtOnce> codes;
  for (int64_t row = 0; row < rows; row += kRowsAtOnce) {
    const int64_t last = std::min(rows, row + kRowsAtOnce);
    read(row, last, codes.data());
    for (int64_t i = row; i < last; ++i) visit(i, codes[static_cast<size_t>(i - row)]);
  }
}

Status WriteCodes(std::span<const uint16_t> from, ColumnGroup* group) {
  const auto count = static_cast<int64_t>(from.size());
  HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(count, group->codes.bits()));
  for (int64_t i = 0; i < count; ++i) group->codes.Set(i, from[static_cast<size_t>(i)]);
  return OkStatus();
}

// A group with the dictionary, the columns and the encoding of another one, and other codes. Not of
// kUncompressed.
Result<ColumnGroup> WithCodes(const ColumnGroup& other, int64_t rows, const CodeReader& read) {
  ColumnGroup group = other;
  if (group.encoding == Encoding::kDenseCodes) {
    HEDDLE_RETURN_IF_ERROR(WriteDenseCodes(rows, read, &group));
    return group;
  }
  std::vector<uint16_t> codes, exceptions;
  if (group.encoding == Encoding::kRuns) {
    group.starts.clear();
    ForRows(rows, read, [&](int64_t row, uint16_t code) {
      if (row > 0 && codes.back() == code) return;
      codes.push_back(code);
      group.starts.push_back(row);
    });
    HEDDLE_RETURN_IF_ERROR(WriteCodes(codes, &group));
  } else if (group.encoding == Encoding::kDefault) {
    group.segments.clear();
    ForRows(rows, read, [&](int64_t row, uint16_t code) {
      if (row % kSegmentRows == 0) group.segments.push_back(static_cast<int64_t>(codes.size()));
      if (code == 0) return;
      codes.push_back(code);
      exceptions.push_back(static_cast<uint16_t>(row % kSegmentRows));
    });
    group.segments.push_back(static_cast<int64_t>(codes.size()));
    HEDDLE_RETURN_IF_ERROR(WriteCodes(codes, &group));
    const size_t bytes = exceptions.size() * sizeof(uint16_t);
    HEDDLE_ASSIGN_OR_RETURN(group.positions,
                            Buffer::Allocate(std::max<int64_t>(static_cast<int64_t>(bytes), 1)));
    if (bytes > 0) std::memcpy(group.positions->data(), exceptions.data(), bytes);
  }
  return group;
}

Matrix ViewOf(ColumnGroups groups, const Matrix& like) {
  return Matrix::OfGroups(std::make_shared<const ColumnGroups>(std::move(groups)))
      .Rows(like.first_row(), like.first_row() + like.rows());
}

ColumnGroups NoGroups(int64_t rows, int64_t columns, ElementType type) {
  ColumnGroups groups;
  groups.rows = rows;
  groups.columns = columns;
  groups.element_type = type;
  return groups;
}

template <typename T>
bool AreRowsAlike(const Matrix& dense) {
  const T* const cells = dense.data<T>();
  const auto bytes = static_cast<size_t>(dense.columns()) * sizeof(T);
  for (int64_t i = 1; i < dense.rows(); ++i)
    if (std::memcmp(cells, cells + i * dense.columns(), bytes) != 0) return false;
  return true;
}

// All columns of a dense or CSR matrix as a group of columns `first` and those behind it.
ColumnGroup GroupOf(const Matrix& matrix, int64_t first) {
  ColumnGroup group;
  group.columns.resize(static_cast<size_t>(matrix.columns()));
  for (size_t k = 0; k < group.columns.size(); ++k)
    group.columns[k] = static_cast<int32_t>(first + static_cast<int64_t>(k));
  const bool is_constant = matrix.IsDense() && matrix.rows() > 0 &&
                           (matrix.element_type() == ElementType::kFloat64 ? AreRowsAlike<double>(matrix)
                                                                           : AreRowsAlike<float>(matrix));
  group.encoding = is_constant ? Encoding::kConstant : Encoding::kUncompressed;
  group.dictionary = is_constant ? matrix.Rows(0, 1) : matrix;
  return group;
}

bool SameDictionary(const ColumnGroup& a, const ColumnGroup& b) {
  if (a.columns != b.columns || a.encoding != b.encoding || a.encoding == Encoding::kUncompressed)
    return false;
  if (a.encoding == Encoding::kEmpty) return true;
  if (a.encoding == Encoding::kConstant) return Matrix::SameCells(a.dictionary, b.dictionary);
  return a.dictionary.data<void>() == b.dictionary.data<void>() &&
         a.dictionary.shape() == b.dictionary.shape() && a.codes.bits() == b.codes.bits();
}

}  // namespace

bool DictionariesPay(const Matrix& compressed) {
  int64_t cells = 0;
  for (const ColumnGroup& group : compressed.groups().groups) cells += group.tuples() * group.width();
  return 2 * cells <= compressed.cells();
}

Result<std::optional<Matrix>> GatherGroupColumns(const Matrix& x, std::span<const int64_t> columns) {
  const ColumnGroups& groups = x.groups();
  const auto count = static_cast<int64_t>(columns.size());
  if (count == groups.columns) return std::optional<Matrix>(x);
  ColumnGroups result = NoGroups(groups.rows, count, groups.element_type);
  for (const ColumnGroup& group : groups.groups) {
    ColumnGroup gathered = group;
    gathered.columns.clear();
    std::vector<int64_t> places;
    for (size_t k = 0; k < group.columns.size(); ++k) {
      const auto found = std::lower_bound(columns.begin(), columns.end(), int64_t{group.columns[k]});
      if (found == columns.end() || *found != group.columns[k]) continue;
      gathered.columns.push_back(static_cast<int32_t>(found - columns.begin()));
      places.push_back(static_cast<int64_t>(k));
    }
    if (places.empty()) continue;
    if (gathered.width() < group.width() && group.encoding != Encoding::kEmpty) {
      if (group.encoding == Encoding::kUncompressed && 2 * x.rows() < groups.rows)
        return std::optional<Matrix>();
      HEDDLE_ASSIGN_OR_RETURN(gathered.dictionary, GatherColumns(group.dictionary, places));
    }
    result.groups.push_back(std::move(gathered));
  }
  return std::optional<Matrix>(ViewOf(std::move(result), x));
}

Result<std::optional<Matrix>> JoinGroups(std::span<const Matrix> parts) {
  const auto is_compressed = [](const Matrix& part) { return part.IsCompressed(); };
  const Matrix& like = *std::find_if(parts.begin(), parts.end(), is_compressed);
  ColumnGroups result = NoGroups(like.groups().rows, 0, like.element_type());
  for (const Matrix& part : parts) {
    const int64_t first = result.columns;
    result.columns += part.columns();
    if (part.element_type() != like.element_type()) return std::optional<Matrix>();
    if (!part.IsCompressed()) {
      if (like.rows() != like.groups().rows) return std::optional<Matrix>();
      if (part.columns() > 0) result.groups.push_back(GroupOf(part, first));
      continue;
    }
    if (part.first_row() != like.first_row() || part.groups().rows != like.groups().rows)
      return std::optional<Matrix>();
    for (ColumnGroup group : part.groups().groups) {
      for (int32_t& column : group.columns) column += static_cast<int32_t>(first);
      result.groups.push_back(std::move(group));
    }
  }
  return std::optional<Matrix>(ViewOf(std::move(result), like));
}

Result<std::optional<Matrix>> AppendGroups(std::span<const Matrix> parts) {
  const std::optional<Matrix> nothing;
  const Matrix& like = parts[0];
  const ColumnGroups& groups = like.groups();
  bool are_neighbours = true;
  std::vector<int64_t> ends;  // Of each part, of all rows.
  for (const Matrix& part : parts) {
    const int64_t begin = ends.empty() ? 0 : ends.back();
    ends.push_back(begin + part.rows());
    are_neighbours = are_neighbours && part.IsCompressed() && &part.groups() == &groups &&
                     part.first_row() == like.first_row() + begin;
  }
  if (are_neighbours)
    return std::optional<Matrix>(Matrix::OfGroups(std::make_shared<const ColumnGroups>(groups))
                                     .Rows(like.first_row(), like.first_row() + ends.back()));
  for (const Matrix& part : parts)
    if (!part.IsCompressed() || part.element_type() != like.element_type() ||
        !std::equal(groups.groups.begin(), groups.groups.end(), part.groups().groups.begin(),
                    part.groups().groups.end(), SameDictionary))
      return nothing;
  ColumnGroups result = NoGroups(ends.back(), groups.columns, groups.element_type);
  for (size_t g = 0; g < groups.groups.size(); ++g) {
    const CodeReader read = [&](int64_t begin, int64_t end, uint16_t* codes) {
      auto part = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
      for (int64_t row = begin; row < end; ++part) {
        const Matrix& matrix = parts[part];
        const int64_t first = part == 0 ? 0 : ends[part - 1], last = std::min(end, ends[part]);
        const int64_t shift = matrix.first_row() - first;
        DecodeCodes(matrix.groups().groups[g], row + shift, last + shift, codes + (row - begin));
        row = last;
      }
    };
    if (IsUniform(groups.groups[g])) {
      result.groups.push_back(groups.groups[g]);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(ColumnGroup group, WithCodes(groups.groups[g], ends.back(), read));
    result.groups.push_back(std::move(group));
  }
  return std::optional<Matrix>(Matrix::OfGroups(std::make_shared<const ColumnGroups>(std::move(result))));
}

Result<Matrix> GatherGroupRows(const Matrix& x, std::span<const int64_t> rows, const KernelContext& context) {
  const ColumnGroups& groups = x.groups();
  const auto count = static_cast<int64_t>(rows.size());
  ColumnGroups result = NoGroups(count, groups.columns, groups.element_type);
  std::vector<uint16_t> decoded;  // Codes of a group whose rows are not numbered.
  for (const ColumnGroup& group : groups.groups) {
    if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
    if (IsUniform(group)) {
      result.groups.push_back(group);
      continue;
    }
    if (group.encoding == Encoding::kUncompressed) {
      ColumnGroup gathered = group;
      HEDDLE_ASSIGN_OR_RETURN(
          gathered.dictionary,
          GatherRows(group.dictionary.Rows(x.first_row(), x.first_row() + x.rows()), rows));
      result.groups.push_back(std::move(gathered));
      continue;
    }
    const bool is_numbered = group.encoding == Encoding::kDenseCodes;
    if (!is_numbered) {
      decoded.resize(static_cast<size_t>(x.rows()));
      DecodeCodes(group, x.first_row(), x.first_row() + x.rows(), decoded.data());
    }
    const CodeReader read = [&](int64_t begin, int64_t end, uint16_t* codes) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = rows[static_cast<size_t>(i)];
        codes[i - begin] = is_numbered ? static_cast<uint16_t>(group.codes.At(x.first_row() + row))
                                       : decoded[static_cast<size_t>(row)];
      }
    };
    ColumnGroup like = group;
    // What ran on may not any more.
    if (like.encoding == Encoding::kRuns) like.encoding = Encoding::kDenseCodes;
    like.starts.clear();
    HEDDLE_ASSIGN_OR_RETURN(ColumnGroup gathered, WithCodes(like, count, read));
    result.groups.push_back(std::move(gathered));
  }
  return Matrix::OfGroups(std::make_shared<const ColumnGroups>(std::move(result)));
}

}  // namespace heddle::ops
