// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>

#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/frame/arrange.h"
#include "ops/frame/text_column.h"

// Frames compared cell by cell.
namespace heddle::ops {
namespace {

enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
constexpr std::array<std::string_view, 6> kNames = {"==", "!=", "<", "<=", ">", ">="};

template <typename T>
bool Holds(Comparison comparison, const T& a, const T& b) {
  switch (comparison) {
    case Comparison::kEqual: return a == b;
    case Comparison::kNotEqual: return a != b;
    case Comparison::kLess: return a < b;
    case Comparison::kLessEqual: return a <= b;
    case Comparison::kGreater: return a > b;
    case Comparison::kGreaterEqual: return a >= b;
  }
  HEDDLE_CHECK(false, "every comparison has an answer");
}

Result<ValueInfo> InferCompare(const InferContext& context) {
  const Shape& a = context.inputs[0].shape;
  const Shape& b = context.inputs[1].shape;
  const std::string& name = context.node.Text("comparison");
  for (size_t i = 0; i < 2; ++i)
    if (!context.inputs[i].IsFrame())
      return InvalidArgument("{}: a frame can be compared with a frame only, not with a {}", name,
                             Name(context.inputs[i].data_type))
          .WithNote("frame(\"text\", rows=nrow(F), cols=ncol(F)) makes a frame of one value");
  const auto differ = [](int64_t x, int64_t y) { return x != kUnknown && y != kUnknown && x != y; };
  if (differ(a.rows, b.rows) || differ(a.columns, b.columns))
    return InvalidArgument("{}: the frames have {} and {} cells", name, a, b);
  const int64_t rows = a.rows == kUnknown ? b.rows : a.rows;
  const int64_t columns = a.columns == kUnknown ? b.columns : a.columns;
  if (columns == kUnknown) return ValueInfo::OfFrame(rows, nullptr);
  return ValueInfo::OfFrame(
      rows, std::make_shared<const Schema>(
                Schema{std::vector<ColumnType>(static_cast<size_t>(columns), ColumnType::kBoolean),
                       CountedNames(columns)}));
}

double NumberAt(const Column& column, int64_t row) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return column.doubles()[row];
    case ColumnStorage::kIntegers: return static_cast<double>(column.integers()[row]);
    case ColumnStorage::kBooleans: return column.booleans()[row];
    case ColumnStorage::kTexts: break;
  }
  HEDDLE_CHECK(false, "texts are compared as texts");
}

// A missing cell equals a missing one and is below every other.
bool Compared(Comparison comparison, const Frame& a, const Frame& b, int64_t i, int64_t j) {
  const Column x = a.column(j);
  const Column y = b.column(j);
  if (x.IsMissing(i) || y.IsMissing(i)) return Holds(comparison, !x.IsMissing(i), !y.IsMissing(i));
  const bool texts = x.storage() == ColumnStorage::kTexts || y.storage() == ColumnStorage::kTexts;
  if (texts) return Holds(comparison, *TextOfCell(a, i, j), *TextOfCell(b, i, j));
  if (x.storage() == ColumnStorage::kIntegers && y.storage() == ColumnStorage::kIntegers)
    return Holds(comparison, x.integers()[i], y.integers()[i]);
  return Holds(comparison, NumberAt(x, i), NumberAt(y, i));
}

Result<Value> RunCompare(const KernelCall& call) {
  const Frame& a = call.inputs[0]->frame();
  const Frame& b = call.inputs[1]->frame();
  const std::string& name = call.node.Text("comparison");
  if (a.shape() != b.shape())
    return FailedPrecondition("{}: the frames have {} and {} cells", name, a.shape(), b.shape());
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  const auto comparison = static_cast<Comparison>(found - kNames.begin());
  std::vector<Column> columns;
  for (int64_t j = 0; j < a.columns(); ++j) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(ColumnType::kBoolean, a.rows(), 0, false));
    for (int64_t i = 0; i < a.rows(); ++i) column.mutable_booleans()[i] = Compared(comparison, a, b, i, j);
    columns.push_back(std::move(column));
  }
  const auto n = static_cast<size_t>(a.columns());
  return Value(Frame(std::make_shared<const Schema>(
                         Schema{std::vector<ColumnType>(n, ColumnType::kBoolean), CountedNames(a.columns())}),
                     std::move(columns)));
}

}  // namespace

/// F == G and the other comparisons of frames; the attribute "comparison" says which. Comparisons become this
/// operator where one of their operands turns out to be a frame (compiler/optimize/infer.cc).
///
/// Shapes:  both m x n, the result m x n, booleans.
/// Cells:   as texts where one of the two columns has texts, else as numbers; missing equals missing.
/// Cost:    reads both once.
extern constexpr Operator kCompareFrames = {.name = "compareFrames",
                                            .parameters = "F G @comparison",
                                            .min_inputs = 2,
                                            .max_inputs = 2,
                                            .infer = InferCompare,
                                            .row_rule = RowWise,
                                            .input_use = AllByRows,
                                            .run = RunCompare,
                                            .takes_frames = true,
                                            .role = Role::kCompareFrames};

}  // namespace heddle::ops
