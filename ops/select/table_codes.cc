// SPDX-License-Identifier: Apache-2.0
#include "ops/select/table_codes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/values/sizes.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/fold_columns.h"
#include "ops/compressed/joint_counts.h"

namespace heddle::ops {
namespace {

enum Input { kA, kB, kW };

// A column of codes, or a number for all rows.
struct Keys {
  GroupRows rows;
  std::vector<double> cells;  // Of each tuple.
};

// The number of a scalar is the tuple of a group that all rows have; the group of a column has codes.
class Column {
 public:
  // False where it is neither.
  bool Prepare(const Value* value, double fallback, int64_t rows) {
    if (value == nullptr || value->IsScalar()) {
      constant_.encoding = Encoding::kEmpty;
      keys_ = {{&constant_}, {value == nullptr ? fallback : value->scalar().AsDouble()}};
      return true;
    }
    if (!value->IsMatrix() || !value->matrix().IsCompressed() || value->matrix().shape() != Shape{rows, 1})
      return false;
    is_column_ = true;
    keys_.rows = RowsOfGroup(value->matrix());
    if (keys_.rows.group->encoding == Encoding::kUncompressed) return false;
    keys_.cells = TuplesAsDoubles(*keys_.rows.group);
    return true;
  }
  bool IsColumn() const { return is_column_; }
  const GroupRows& rows() const { return keys_.rows; }
  const std::vector<double>& cells() const { return keys_.cells; }

 private:
  ColumnGroup constant_;
  Keys keys_;
  bool is_column_ = false;
};

}  // namespace

Result<std::optional<Value>> TableOfJointCounts(const KernelCall& call, Shape shape) {
  const std::optional<Value> nothing;
  const int64_t rows = call.inputs[kA]->matrix().rows();
  Column a, b, w;
  if (!a.Prepare(call.inputs[kA], 0, rows) || !b.Prepare(call.inputs[kB], 0, rows) ||
      !w.Prepare(call.inputs.size() > kW ? call.inputs[kW] : nullptr, 1, rows))
    return nothing;
  if (!AddExactly(UnitsOf(w.cells()), static_cast<double>(rows)) ||
      a.rows().tuples() * b.rows().tuples() > rows)
    return nothing;
  const std::optional<JointCounts> counts =
      CountJointTuples(a.rows(), b.rows(), rows, w.IsColumn() ? &w.rows() : nullptr);
  if (!counts) return nothing;
  const bool is_fixed = shape.IsKnown();
  Shape largest{0, 0};
  std::vector<TableEntry> entries;
  for (size_t place = 0; place < counts->rows.size(); ++place) {
    if (counts->rows[place] == 0) continue;
    const double x = a.cells()[place / b.cells().size()], y = b.cells()[place % b.cells().size()];
    if (std::isnan(x) || std::isnan(y)) continue;
    const int64_t row = TableKey(x), column = TableKey(y);
    if (row < 0 || column < 0) return nothing;
    if (is_fixed && (row >= shape.rows || column >= shape.columns)) continue;
    if (column >= kMostColumns || row >= kMostLength) return nothing;
    largest.rows = std::max(largest.rows, row + 1);
    largest.columns = std::max(largest.columns, column + 1);
    const double weight =
        w.IsColumn() ? counts->weights[place] : static_cast<double>(counts->rows[place]) * w.cells()[0];
    entries.push_back({row, static_cast<int32_t>(column), 0, weight});
  }
  HEDDLE_ASSIGN_OR_RETURN(Value table, TableOf(std::move(entries), is_fixed ? shape : largest,
                                               call.node.info.format, true, call.context.cancelled));
  return std::optional<Value>(std::move(table));
}

}  // namespace heddle::ops
