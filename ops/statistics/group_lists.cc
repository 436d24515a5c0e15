// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/group_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

// Rows of a partial value that hold numbers of a node which are no doubles, or should not be infinite or NaN
// (docs/numerics.md, section 3), have the panel -1 - 2 * panel for doubles, and one less for larger numbers.
bool IsWideRow(const double* row) { return row[0] < 0; }
int64_t PanelOfWideRow(const double* row) { return (-1 - static_cast<int64_t>(row[0])) / 2; }
int64_t GroupOf(const double* row) { return static_cast<int64_t>(row[1]); }
bool HoldsLarger(const double* row) { return static_cast<int64_t>(row[0]) % 2 == 0; }
// Several ranks may each have a row whose group is none: partial values tell the first one of their rows,
// and who finishes fails with the first of all. Such a row has -1 - the number of the row as its group, and
// the wrong group behind it.
bool IsWrongGroup(const double* row) { return row[1] < 0; }
WrongGroup WrongGroupOf(const double* row) { return {.row = -1 - GroupOf(row), .group = row[2]}; }
Status FirstWrongGroup(const Matrix& list) {
  std::optional<WrongGroup> first;
  for (int64_t i = 0; i < list.rows(); ++i) {
    const double* const row = list.data() + i * list.columns();
    if (IsWrongGroup(row) && (!first || WrongGroupOf(row).row < first->row)) first = WrongGroupOf(row);
  }
  return first ? first->ToStatus() : OkStatus();
}

// The rows of a group in a partial value, plain ones and wide ones.
struct GroupNodes {
  std::vector<const double*> plain, wide;
};

void CorrectGroup(const GroupPayload& payload, const GroupNodes& nodes, int64_t columns, double* results) {
  if (!payload.AddsUp() || AllFinite(results, columns)) return;
  std::vector<bool> finite(static_cast<size_t>(columns), true);
  GroupTree<WideNumber> tree(payload, 0, std::numeric_limits<int64_t>::max());
  for (const double* const row : nodes.plain) {
    const auto panel = static_cast<int64_t>(row[0]);
    WideNumber* const numbers = tree.Next(panel);
    for (int64_t place = 0; place < payload.width(); ++place) {
      numbers[place] = row[2 + place];
      if (std::isfinite(row[2 + place])) continue;
      bool found = false;
      for (const double* const wide : nodes.wide) {
        if (PanelOfWideRow(wide) != panel || std::isnan(wide[2 + place])) continue;
        numbers[place] = HoldsLarger(wide) ? WideNumber::FromScaled(wide[2 + place]) : wide[2 + place];
        found = true;
      }
      const int64_t column = payload.ColumnOf(place);
      if (!found && column >= 0) finite[static_cast<size_t>(column)] = false;
    }
    tree.Push();
  }
  TakeWideResults(payload, tree.Root(), finite, results);
}

}  // namespace

Result<Value> ListOfGroups(const std::vector<double>& cells, const GroupPayload& payload) {
  const int64_t width = payload.width() + 2;
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, Matrix::Dense(static_cast<int64_t>(cells.size()) / width, width));
  std::copy(cells.begin(), cells.end(), list.mutable_data());
  return Value(std::move(list));
}

Result<Value> ListOfWrongGroup(const WrongGroup& wrong, const GroupPayload& payload) {
  std::vector<double> cells(static_cast<size_t>(payload.width()) + 2, 0.0);
  cells[1] = static_cast<double>(-1 - wrong.row);
  cells[2] = wrong.group;
  return ListOfGroups(cells, payload);
}

void AddWideRows(const GroupPayload& payload, int64_t group, const std::vector<bool>& finite,
                 const GroupTree<WideNumber>& tree, std::vector<double>* cells) {
  for (int64_t node = 0; node < tree.Nodes(); ++node)
    for (const bool larger : {false, true}) {
      cells->push_back(static_cast<double>(-1 - 2 * tree.PanelOf(node) - (larger ? 1 : 0)));
      cells->push_back(static_cast<double>(group));
      for (int64_t place = 0; place < payload.width(); ++place) {
        const WideNumber& number = tree.PayloadOf(node)[place];
        const int64_t column = payload.ColumnOf(place);
        const bool is_told =
            number.IsBeyond() == larger && (column < 0 || finite[static_cast<size_t>(column)]);
        cells->push_back(is_told ? number.stored() : std::numeric_limits<double>::quiet_NaN());
      }
    }
}

Result<Matrix> FinishGroups(const Matrix& list, const GroupPayload& payload, int64_t columns, int64_t first,
                            int64_t count) {
  HEDDLE_RETURN_IF_ERROR(FirstWrongGroup(list));
  std::vector<int64_t> order;
  std::map<int64_t, std::vector<const double*>> wide;  // By group.
  for (int64_t i = 0; i < list.rows(); ++i) {
    const double* const row = list.data() + i * list.columns();
    if (IsWideRow(row))
      wide[GroupOf(row)].push_back(row);
    else
      order.push_back(i);
  }
  const auto group = [&](int64_t row) { return GroupOf(list.data() + row * list.columns()); };
  const auto panel = [&](int64_t row) { return static_cast<int64_t>(list.data()[row * list.columns()]); };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return group(a) != group(b) ? group(a) < group(b) : panel(a) < panel(b);
  });
  if (count == kUnknown) count = order.empty() ? 0 : 1 + group(order.back());
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(count, columns, payload.Absent()));
  GroupTree<double> tree(payload, 0, std::numeric_limits<int64_t>::max());
  GroupNodes nodes;
  for (size_t at = 0; at < order.size(); ++at) {
    nodes.plain.push_back(list.data() + order[at] * list.columns());
    std::copy_n(list.data() + order[at] * list.columns() + 2, payload.width(), tree.Next(panel(order[at])));
    tree.Push();
    if (at + 1 < order.size() && group(order[at + 1]) == group(order[at])) continue;
    double* const results = result.mutable_data() + (group(order[at]) - first) * columns;
    payload.Finish(tree.Root(), results);
    if (const auto found = wide.find(group(order[at])); found != wide.end()) nodes.wide = found->second;
    CorrectGroup(payload, nodes, columns, results);
    nodes = {};
    tree.Clear();
  }
  return result;
}

Result<Matrix> RowsOfGroups(std::span<const Value* const> lists, int64_t begin, int64_t end) {
  std::vector<const double*> rows;
  const int64_t columns = lists[0]->matrix().columns();
  for (const Value* list : lists)
    for (int64_t i = 0; i < list->matrix().rows(); ++i)
      if (const double* row = list->matrix().data() + i * columns;
          IsWrongGroup(row) || (GroupOf(row) >= begin && GroupOf(row) < end))
        rows.push_back(row);
  HEDDLE_ASSIGN_OR_RETURN(Matrix part, Matrix::Dense(static_cast<int64_t>(rows.size()), columns));
  double* out = part.mutable_data();
  for (const double* row : rows) out = std::copy_n(row, columns, out);
  return part;
}

}  // namespace heddle::ops
