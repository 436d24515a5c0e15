// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/arrange_groups.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/values/group_rows.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/write_codes.h"

namespace heddle::ops {
namespace {

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
