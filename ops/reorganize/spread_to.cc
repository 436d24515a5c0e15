// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferSpreadTo(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, InferSize(context, 1, "rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, InferSize(context, 2, "cols", kUnknown));
  const Shape& g = context.inputs[0].shape;
  const auto fits = [](int64_t size, int64_t given) {
    return size == kUnknown || given == kUnknown || size == given || given == 1;
  };
  if (!fits(shape.rows, g.rows) || !fits(shape.columns, g.columns))
    return InvalidArgument("spreadTo: the cells of a {} matrix do not repeat to {}", g, shape);
  return ValueInfo::OfMatrix(shape);
}

template <typename T>
Result<Value> Spread(const Matrix& g, bool repeats_rows, Shape shape) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(shape.rows, shape.columns, g.element_type()));
  T* const out = result.mutable_data<T>();
  const int64_t n = shape.columns;
  ParallelFor(shape.rows, 32768 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = g.data<T>() + (repeats_rows ? 0 : i) * g.columns();
      if (g.columns() == 1)
        std::fill_n(out + i * n, n, row[0]);
      else
        std::copy_n(row, n, out + i * n);
    }
  });
  return Value(std::move(result));
}

Result<Value> RunSpreadTo(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix g, AsDense(call.inputs[0]->matrix()));
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, 1, "rows", 1));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, 2, "cols", 1));
  const Shape whole{call.input_infos[0].shape.IsKnown() ? call.input_infos[0].shape.rows : g.rows(),
                    g.columns()};
  if ((whole.rows != 1 && whole.rows != shape.rows) || (g.columns() != 1 && g.columns() != shape.columns))
    return FailedPrecondition("spreadTo: the cells of a {} matrix do not repeat to {}", whole, shape);
  const bool repeats_rows = whole.rows == 1 && shape.rows != 1;
  if (call.total_rows > 0) shape.rows = call.row_end - call.row_begin;
  if (shape == g.shape()) return Value(g);
  return g.element_type() == ElementType::kFloat32 ? Spread<float>(g, repeats_rows, shape)
                                                   : Spread<double>(g, repeats_rows, shape);
}

// Rows of G, or one that all rows of the result repeat.
RowRule SpreadRowRule(const Node&, std::span<const ValueInfo> inputs) {
  return inputs[0].shape.rows == 1 ? RowRule::kGenerate : RowRule::kRowWise;
}
InputUse SpreadInputUse(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i == 0 && inputs[0].shape.rows != 1 ? InputUse::kRows : InputUse::kWhole;
}

}  // namespace

/// spreadTo(G, rows, cols): a row, a column or a cell repeated, as broadcasting would: the adjoint of what an
/// aggregate has summed. Beside a matrix of rows x cols cells, rules leave the repeating to the operator.
///
/// Shapes:  G is m x n; m is rows or 1, n is cols or 1; the result is rows x cols, dense. Exact.
/// Rows:    row by row.
/// Cost:    writes every cell once.
extern constexpr Operator kSpreadTo = {.name = "spreadTo",
                                       .parameters = "G rows cols",
                                       .min_inputs = 3,
                                       .max_inputs = 3,
                                       .infer = InferSpreadTo,
                                       .row_rule = SpreadRowRule,
                                       .input_use = SpreadInputUse,
                                       .run = RunSpreadTo,
                                       .takes_singles = TakesAnySingles,
                                       .role = Role::kSpreadTo,
                                       .adjoints = "sumTo(dy, G); 0; 0"};

}  // namespace heddle::ops
