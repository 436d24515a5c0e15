// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

Status CheckRows(Shape a, Shape b, StatusCode code) {
  if (a.rows == kUnknown || b.rows == kUnknown || b.rows == 1 || a.rows == b.rows) return OkStatus();
  return Status(code, fmt::format("rowClassMeet: the first matrix is {} but the second is {}", a, b))
      .WithNote("the second has as many rows as the first, or one");
}

Result<std::vector<ValueInfo>> InferMeet(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 1, "argument 2"));
  const Shape a = context.inputs[0].shape, b = context.inputs[1].shape;
  HEDDLE_RETURN_IF_ERROR(CheckRows(a, b, StatusCode::kInvalidArgument));
  const bool known = a.columns != kUnknown && b.columns != kUnknown;
  return std::vector<ValueInfo>(
      2, ValueInfo::OfMatrix({a.rows, known ? std::max(a.columns, b.columns) : kUnknown}));
}

InputUse MeetInputUse(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i == 0 || inputs[1].shape.rows != 1 ? InputUse::kRows : InputUse::kWhole;
}

// A class is a whole number; 0 is none. What no 32-bit integer is, is the nearest; NaN none.
int64_t ClassOf(double x) {
  constexpr double kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  return std::isnan(x) ? 0 : static_cast<int64_t>(std::clamp(x, kLeast, kMost));
}

// Pairs of classes are numbered in the order in which they first occur.
void MeetRow(const double* a, const double* b, int64_t columns, double* numbers, double* sizes) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> places;
  std::map<std::pair<int64_t, int64_t>, int64_t> number_of;
  for (int64_t j = 0; j < columns; ++j) {
    const std::pair<int64_t, int64_t> pair(ClassOf(a[j]), ClassOf(b[j]));
    if (pair.first == 0 || pair.second == 0) continue;
    number_of.emplace(pair, static_cast<int64_t>(number_of.size()) + 1);
    places[pair].push_back(j);
  }
  for (const auto& [pair, columns_of_pair] : places) {
    for (const int64_t j : columns_of_pair) {
      numbers[j] = static_cast<double>(number_of.at(pair));
      sizes[j] = static_cast<double>(columns_of_pair.size());
    }
  }
}

Status RunMeet(const KernelCall& call, std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix a, AsDense(call.inputs[0]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix b, AsDense(call.inputs[1]->matrix()));
  HEDDLE_RETURN_IF_ERROR(CheckRows(a.shape(), b.shape(), StatusCode::kFailedPrecondition));
  const int64_t width = std::max(a.columns(), b.columns());
  HEDDLE_ASSIGN_OR_RETURN(Matrix numbers, FilledMatrix(a.rows(), width, 0));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sizes, FilledMatrix(a.rows(), width, 0));
  double* const numbers_out = numbers.mutable_data();
  double* const sizes_out = sizes.mutable_data();
  const bool one_row = call.input_infos[1].shape.rows == 1;
  ParallelFor(a.rows(), RowGrain(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !IsCancelled(call.context.cancelled); ++i)
      MeetRow(a.data() + i * a.columns(), b.data() + (one_row ? 0 : i * b.columns()),
              std::min(a.columns(), b.columns()), numbers_out + i * width, sizes_out + i * width);
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  results[0] = Value(std::move(numbers));
  results[1] = Value(std::move(sizes));
  return OkStatus();
}

}  // namespace

/// [C, N] = rowClassMeet(A, B): each row of A and of B says of which class a column is, 0 of none. Columns of
/// the same class in both are a class of C, numbered from 1 by its first column (in SystemDS in any order); N
/// has the number of its columns. 0 where a column has no class in A or B.
///
/// Shapes:  A m x n, B m x k or 1 x k; the results m x max(n, k). Format: dense. Exact.
/// Cost:    one step of a search tree a cell.
extern constexpr Operator kRowClassMeet = {.name = "rowClassMeet",
                                           .form = CallForm::kPositional,
                                           .parameters = "A B",
                                           .aliases = "rcm",
                                           .min_inputs = 2,
                                           .max_inputs = 2,
                                           .results = 2,
                                           .infer_several = InferMeet,
                                           .row_rule = RowWise,
                                           .input_use = MeetInputUse,
                                           .run_several = RunMeet};

}  // namespace heddle::ops
