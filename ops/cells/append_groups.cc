// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/append_groups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/values/group_rows.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/tuple_tables.h"
#include "ops/cells/write_codes.h"

namespace heddle::ops {
namespace {

// Parts that are not compressed have at most one of so many rows.
constexpr int64_t kRowsOfPlainRow = 8;

// Some columns of a part.
struct PartOfGroup {
  const Matrix* matrix;
  ColumnGroup group;  // Of a compressed part: its columns are 0, 1, ... those of the result's group.
  std::vector<uint16_t> places;  // The tuples of the group, or the rows, in the joined dictionary; empty: as
                                 // they are.
};

bool IsSame(const Matrix& a, const Matrix& b) {
  return a.data<void>() == b.data<void>() && a.shape() == b.shape();
}

// The columns of a group at these places.
Result<ColumnGroup> Restricted(const ColumnGroup& group, const std::vector<int64_t>& places) {
  ColumnGroup part = group;
  part.columns.resize(places.size());
  std::iota(part.columns.begin(), part.columns.end(), 0);
  if (part.width() < group.width() && group.encoding != Encoding::kEmpty) {
    HEDDLE_ASSIGN_OR_RETURN(part.dictionary, GatherColumns(group.dictionary, places));
  }
  return part;
}

template <typename T>
class Appender {
 public:
  explicit Appender(std::span<const Matrix> parts) : parts_(parts) {
    for (const Matrix& part : parts) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part.rows());
  }

  Result<Matrix> Run() {
    auto result = std::make_shared<ColumnGroups>();
    result->rows = ends_.back();
    result->columns = parts_[0].columns();
    result->element_type = parts_[0].element_type();
    for (const std::vector<int32_t>& columns : CommonGroups()) {
      HEDDLE_ASSIGN_OR_RETURN(ColumnGroup group, Append(columns));
      group.columns = columns;
      result->groups.push_back(std::move(group));
    }
    return Matrix::OfGroups(std::move(result));
  }

 private:
  // Columns that are in one group in each of the parts, by their first ones.
  std::vector<std::vector<int32_t>> CommonGroups() {
    group_of_.resize(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      group_of_[p].assign(static_cast<size_t>(parts_[0].columns()), {0, 0});
      if (!parts_[p].IsCompressed()) continue;
      const std::vector<ColumnGroup>& groups = parts_[p].groups().groups;
      for (size_t g = 0; g < groups.size(); ++g)
        for (size_t k = 0; k < groups[g].columns.size(); ++k)
          group_of_[p][static_cast<size_t>(groups[g].columns[k])] = {g, static_cast<int64_t>(k)};
    }
    std::map<std::vector<size_t>, std::vector<int32_t>> columns_of;
    for (int32_t column = 0; column < parts_[0].columns(); ++column) {
      std::vector<size_t> groups;
      for (const auto& of_part : group_of_) groups.push_back(of_part[static_cast<size_t>(column)].first);
      columns_of[std::move(groups)].push_back(column);
    }
    std::vector<std::vector<int32_t>> result;
    for (auto& [groups, columns] : columns_of) result.push_back(std::move(columns));
    std::sort(result.begin(), result.end());
    return result;
  }

  Result<ColumnGroup> Append(const std::vector<int32_t>& columns) {
    std::vector<PartOfGroup> parts;
    for (size_t p = 0; p < parts_.size(); ++p) {
      parts.push_back({&parts_[p], {}, {}});
      if (!parts_[p].IsCompressed()) continue;
      std::vector<int64_t> places;
      for (const int32_t column : columns) places.push_back(group_of_[p][static_cast<size_t>(column)].second);
      const size_t g = group_of_[p][static_cast<size_t>(columns[0])].first;
      HEDDLE_ASSIGN_OR_RETURN(parts.back().group, Restricted(parts_[p].groups().groups[g], places));
    }
    ColumnGroup group;
    group.columns = columns;
    HEDDLE_ASSIGN_OR_RETURN(const bool is_joined, JoinDictionaries(columns, &parts, &group));
    if (!is_joined) return AppendCells(columns, parts);
    if (IsUniform(group)) return group;
    return WithCodes(group, ends_.back(), [&](int64_t begin, int64_t end, uint16_t* codes) {
      auto p = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
      for (int64_t row = begin; row < end; ++p) {
        const int64_t first = p == 0 ? 0 : ends_[p - 1], last = std::min(end, ends_[p]);
        ReadCodes(parts[p], row - first, last - first, codes + (row - begin));
        row = last;
      }
    });
  }

  // Codes in the joined dictionary.
  static void ReadCodes(const PartOfGroup& part, int64_t begin, int64_t end, uint16_t* codes) {
    if (!part.matrix->IsCompressed()) {
      std::copy(part.places.begin() + begin, part.places.begin() + end, codes);
      return;
    }
    if (part.group.encoding == Encoding::kEmpty)
      std::fill_n(codes, end - begin, uint16_t{0});
    else
      DecodeCodes(part.group, part.matrix->first_row() + begin, part.matrix->first_row() + end, codes);
    if (part.places.empty()) return;
    for (int64_t i = 0; i < end - begin; ++i) codes[i] = part.places[codes[i]];
  }

  // Fills in the places of the parts, and dictionary and encoding of the group; false where it has none.
  Result<bool> JoinDictionaries(const std::vector<int32_t>& columns, std::vector<PartOfGroup>* parts,
                                ColumnGroup* group) {
    const auto is_plain = [](const PartOfGroup& part) {
      return part.matrix->IsCompressed() && part.group.encoding == Encoding::kUncompressed;
    };
    if (std::any_of(parts->begin(), parts->end(), is_plain)) return false;
    const ColumnGroup& first = (*parts)[0].group;
    const bool is_shared = std::all_of(parts->begin(), parts->end(), [&](const PartOfGroup& part) {
      return part.matrix->IsCompressed() && part.group.encoding == first.encoding &&
             part.group.encoding != Encoding::kEmpty && IsSame(part.group.dictionary, first.dictionary);
    });
    if (is_shared) {
      group->dictionary = first.dictionary;
    } else {
      TupleTable<T> table(static_cast<int64_t>(columns.size()));
      for (size_t p = 0; p < parts->size(); ++p)
        if (!FindPlaces(columns, *parts, p, &table)) return false;
      HEDDLE_ASSIGN_OR_RETURN(group->dictionary,
                              Matrix::Dense(table.size(), group->width(), parts_[0].element_type()));
      std::copy(table.cells().begin(), table.cells().end(), group->dictionary.template mutable_data<T>());
    }
    HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(0, CodeBits(group->dictionary.rows())));
    group->encoding = EncodingOf(*parts, group->dictionary.rows());
    const T* const tuple = group->dictionary.template data<T>();
    if (group->encoding == Encoding::kConstant) {
      group->codes = Codes();
      if (std::all_of(tuple, tuple + group->width(), [](T cell) { return IsSameCell(cell, T{0}); })) {
        group->encoding = Encoding::kEmpty;
        group->dictionary = Matrix();
      }
    }
    return true;
  }

  // Of the tuples of part p, or of its rows; false when there are too many.
  static bool FindPlaces(const std::vector<int32_t>& columns, std::vector<PartOfGroup>& parts, size_t p,
                         TupleTable<T>* table) {
    PartOfGroup& part = parts[p];
    const auto width = static_cast<int64_t>(columns.size());
    std::vector<T> tuple(columns.size(), T{0});
    const auto add = [&] {
      const int64_t place = table->Add(tuple.data());
      part.places.push_back(static_cast<uint16_t>(place));
      return place >= 0;
    };
    if (!part.matrix->IsCompressed()) {
      for (int64_t i = 0; i < part.matrix->rows(); ++i) {
        const T* const row = part.matrix->data<T>() + i * part.matrix->columns();
        for (size_t k = 0; k < tuple.size(); ++k) tuple[k] = Canonical(row[columns[k]]);
        if (!add()) return false;
      }
      return true;
    }
    if (part.group.encoding == Encoding::kEmpty) return add();
    for (size_t before = 0; before < p; ++before)
      if (parts[before].matrix->IsCompressed() && parts[before].group.encoding != Encoding::kEmpty &&
          IsSame(parts[before].group.dictionary, part.group.dictionary)) {
        part.places = parts[before].places;
        return true;
      }
    const T* const cells = part.group.dictionary.template data<T>();
    for (int64_t t = 0; t < part.group.tuples(); ++t) {
      for (int64_t k = 0; k < width; ++k) tuple[static_cast<size_t>(k)] = Canonical(cells[t * width + k]);
      if (!add()) return false;
    }
    return true;
  }

  // The one that takes the fewest bytes, as far as the encodings of the parts tell.
  Encoding EncodingOf(const std::vector<PartOfGroup>& parts, int64_t tuples) const {
    if (tuples == 1) return Encoding::kConstant;
    double exceptions = 0, runs = 0;
    for (const PartOfGroup& part : parts) {
      const auto rows = static_cast<double>(part.matrix->rows());
      const Encoding encoding = part.matrix->IsCompressed() ? part.group.encoding : Encoding::kUncompressed;
      const bool has_first =
          encoding != Encoding::kUncompressed && (part.places.empty() || part.places[0] == 0);
      const auto count = static_cast<double>(part.group.codes.count());  // Of a view, too.
      const bool is_uniform = encoding == Encoding::kEmpty || encoding == Encoding::kConstant;
      exceptions += has_first && is_uniform                       ? 0
                    : has_first && encoding == Encoding::kDefault ? std::min(rows, count)
                                                                  : rows;
      runs += is_uniform ? 1 : encoding == Encoding::kRuns ? std::min(rows, count) : rows;
    }
    const double code = CodeBits(tuples) / 8.0, of_default = exceptions * (code + sizeof(uint16_t)),
                 of_runs = runs * (code + sizeof(int64_t)),
                 of_rows = static_cast<double>(ends_.back()) * code;
    if (of_default < std::min(of_rows, of_runs)) return Encoding::kDefault;
    return of_runs < of_rows ? Encoding::kRuns : Encoding::kDenseCodes;
  }

  // The cells themselves, where a part has no codes, or all together too many tuples.
  Result<ColumnGroup> AppendCells(const std::vector<int32_t>& columns,
                                  const std::vector<PartOfGroup>& parts) {
    ColumnGroup group;
    group.encoding = Encoding::kUncompressed;
    const auto width = static_cast<int64_t>(columns.size());
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Matrix::Dense(ends_.back(), width, parts_[0].element_type()));
    T* out = group.dictionary.template mutable_data<T>();
    for (const PartOfGroup& part : parts) {
      const Matrix& matrix = *part.matrix;
      if (matrix.IsCompressed()) {
        DecodeRows(part.group, matrix.first_row(), matrix.first_row() + matrix.rows(), out, width);
      } else {
        for (int64_t i = 0; i < matrix.rows(); ++i)
          for (int64_t k = 0; k < width; ++k)
            out[i * width + k] = matrix.data<T>()[i * matrix.columns() + columns[static_cast<size_t>(k)]];
      }
      out += matrix.rows() * width;
    }
    return group;
  }

  const std::span<const Matrix> parts_;
  std::vector<int64_t> ends_;  // Of each part, of all rows.
  std::vector<std::vector<std::pair<size_t, int64_t>>>
      group_of_;  // Of each part and column: group and place.
};

bool AreNeighbours(std::span<const Matrix> parts) {
  int64_t end = parts[0].first_row();
  for (const Matrix& part : parts) {
    if (&part.groups() != &parts[0].groups() || part.first_row() != end) return false;
    end += part.rows();
  }
  return true;
}

}  // namespace

Result<std::optional<Matrix>> AppendGroups(std::span<const Matrix> parts) {
  const std::optional<Matrix> nothing;
  int64_t rows = 0, plain_rows = 0;
  bool has_plain = false;
  const Matrix* like = nullptr;
  for (const Matrix& part : parts) {
    rows += part.rows();
    if (part.columns() != parts[0].columns() || part.element_type() != parts[0].element_type() ||
        part.IsSparse())
      return nothing;
    if (part.IsDense()) {
      plain_rows += part.rows();
      has_plain = true;
      continue;
    }
    like = &part;
    for (const ColumnGroup& group : part.groups().groups)
      if (group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse()) return nothing;
  }
  if (like == nullptr || parts[0].columns() == 0 || plain_rows * kRowsOfPlainRow > rows) return nothing;
  if (!has_plain && AreNeighbours(parts))
    return std::optional<Matrix>(Matrix::OfGroups(std::make_shared<const ColumnGroups>(like->groups()))
                                     .Rows(parts[0].first_row(), parts[0].first_row() + rows));
  Result<Matrix> result = like->element_type() == ElementType::kFloat64 ? Appender<double>(parts).Run()
                                                                        : Appender<float>(parts).Run();
  if (!result.ok()) return result.status();
  return std::optional<Matrix>(*std::move(result));
}

}  // namespace heddle::ops
