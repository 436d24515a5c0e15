// SPDX-License-Identifier: Apache-2.0
// The steps of a body on the rows of a chunk.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/values/scalar.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/recursion/run/matrix_rows.h"
#include "ops/recursion/run/node_products.h"
#include "ops/recursion/run/run_body.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

using PlaceKind = ValuePlace::Kind;

// Multiply-adds, or cells that are moved, that are worth another thread.
constexpr int64_t kTaskWork = 1 << 20;
// Rows of a node's product that are worth packing its right operand once more.
constexpr int64_t kRowsOfPart = 32;

void CopyRows(const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t rows, int64_t bytes) {
  if (from_bytes == bytes && to_bytes == bytes) {
    std::memcpy(to, from, static_cast<size_t>(rows * bytes));
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(to + i * to_bytes, from + i * from_bytes, static_cast<size_t>(bytes));
}

}  // namespace

// Which node of the class, counted from 0, a row of the chunk is computed for.
int64_t BodyRun::NodeAt(const Chunk& chunk, int64_t row) const {
  if (chunk.results != nullptr) return chunk.begin + row - class_.begin;
  return distinct_.first.empty() ? chunk.begin + row
                                 : distinct_.first[static_cast<size_t>(chunk.begin + row)];
}

double BodyRun::NumberAt(int32_t index, int64_t node) const {
  return class_.numbers[static_cast<size_t>(index * (class_.end - class_.begin) + node)];
}

Status BodyRun::Numbers(int32_t id, const Chunk& chunk) const {
  auto* const cells = reinterpret_cast<double*>(RowsOf(id, chunk).cells);
  for (int64_t i = 0; i < chunk.rows(); ++i) cells[i] = NumberAt(ValueAt(id).index, NodeAt(chunk, i));
  return OkStatus();
}

Status BodyRun::Lookup(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  const Matrix& from = shared_[static_cast<size_t>(value.inputs[0].id)].matrix();
  const ValueRows& to = RowsOf(id, chunk);
  const int64_t bytes = RowBytes(from), stride = to.stride * CellBytes(value);
  for (int64_t i = 0; i < chunk.rows(); ++i) {
    const int64_t node = NodeAt(chunk, i);
    const double number = NumberAt(value.index, node);
    const int64_t row = TruncateToInteger(number);
    if (row >= 1 && row <= from.rows()) {
      std::memcpy(to.cells + i * stride, RowOf(from, row - 1), static_cast<size_t>(bytes));
      continue;
    }
    return FailedPrecondition("node {} reads row {} of a matrix of {} rows",
                              nodes_[static_cast<size_t>(class_.begin + node)], number, from.rows())
        .WithNote("rows and columns are counted from 1")
        .At(value.node.position);
  }
  return OkStatus();
}

// Of a call's results, or of their products.
Status BodyRun::Children(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  const BodyValue& child = value.with_child ? ValueAt(value.inputs[0].id) : value;
  const Matrix* all = &chunk.results->rows[static_cast<size_t>(child.result)];
  if (value.with_child)
    for (const NodeResults::Product& product : chunk.results->products)
      if (product.result == static_cast<size_t>(child.result) &&
          product.parameter == ValueAt(value.inputs[1].id).name)
        all = &product.rows;
  const int32_t* const places =
      class_.children.data() + child.index * (class_.end - class_.begin) - class_.begin + chunk.begin;
  const int64_t rows = chunk.rows(), bytes = RowBytes(*all);
  ValueRows& to = chunk.workspace.at[static_cast<size_t>(id)];
  int64_t run = 1;
  while (run < rows && places[run] == places[run - 1] + 1) ++run;
  if (run == rows) {
    // Rows that stand next to each other are read where they are; results may be those very rows.
    char* const there = MutableRowOf(*all, places[0]);
    if (program_->PlaceOf(id).kind == PlaceKind::kWorkspace) to = {there, all->columns()};
    if (to.cells == there) return OkStatus();
  }
  const int64_t stride = to.stride * CellBytes(value);
  ParallelFor(rows, RowGrain(all->columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      std::memcpy(to.cells + i * stride, RowOf(*all, places[i]), static_cast<size_t>(bytes));
  });
  return OkStatus();
}

void BodyRun::Copy(const BodyStep& step, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(step.from);
  const ValueRows &from = RowsOf(step.from, chunk), &to = RowsOf(step.value, chunk);
  const int64_t size = CellBytes(value);
  CopyRows(from.cells, from.stride * size, to.cells + step.column * size, to.stride * size, chunk.rows(),
           CellsOf(value) * size);
}

// A cell of each row, in the column that a number of the node says: to the value, or into its row.
Status BodyRun::MoveNumbered(const BodyStep& step, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(step.value);
  const bool picks = step.kind == BodyStep::Kind::kPick;
  const ValueRows& given = RowsOf(value.inputs[picks ? 0 : 1].id, chunk);
  const ValueRows &numbers = RowsOf(step.from, chunk), &to = RowsOf(step.value, chunk);
  const int64_t size = CellBytes(value);
  const int64_t columns = (picks ? ValueAt(value.inputs[0].id) : value).node.info.shape.columns;
  for (int64_t i = 0; i < chunk.rows(); ++i) {
    const double number = reinterpret_cast<const double*>(numbers.cells)[i * numbers.stride];
    const int64_t column = TruncateToInteger(number) - 1;
    if (column < 0 || column >= columns) {
      const int64_t node = class_.begin + NodeAt(chunk, i);
      return FailedPrecondition("node {} reads column {} of a row of {} columns",
                                nodes_[static_cast<size_t>(node)], number, columns)
          .WithNote("rows and columns are counted from 1")
          .At(value.node.position);
    }
    const char* const from = given.cells + (i * given.stride + (picks ? column : 0)) * size;
    std::memcpy(to.cells + (i * to.stride + (picks ? 0 : column)) * size, from, static_cast<size_t>(size));
  }
  return OkStatus();
}

// Floats as doubles, or the other way round.
void BodyRun::Convert(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  const ValueRows &from = RowsOf(value.inputs[0].id, chunk), &to = RowsOf(id, chunk);
  const int64_t cells = CellsOf(value);
  for (int64_t i = 0; i < chunk.rows(); ++i)
    if (CellBytes(value) == 8)
      std::copy_n(reinterpret_cast<const float*>(from.cells) + i * from.stride, cells,
                  reinterpret_cast<double*>(to.cells) + i * to.stride);
    else
      std::transform(reinterpret_cast<const double*>(from.cells) + i * from.stride,
                     reinterpret_cast<const double*>(from.cells) + i * from.stride + cells,
                     reinterpret_cast<float*>(to.cells) + i * to.stride,
                     [](double cell) { return static_cast<float>(cell); });
}

void BodyRun::Multiply(const BodyStep& step, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(step.value);
  const BodyValue& left = ValueAt(value.inputs[0].id);
  const PackedWeights& weights = *packed_[static_cast<size_t>(step.value)];
  const ValueRows& to = RowsOf(step.value, chunk);
  const int64_t rows = chunk.rows(), size = CellBytes(value), terms = left.node.info.shape.columns;
  const int64_t of_node = left.node.info.shape.rows, columns = value.node.info.shape.columns;
  if (step.stacked.size() > 1) {
    // Rows below each other, in the order of the values.
    const auto members = static_cast<int64_t>(step.stacked.size());
    char* stacked = RowsOf(value.inputs[0].id, chunk).cells;
    if (step.stack_offset >= 0) {
      stacked = reinterpret_cast<char*>(chunk.workspace.memory.data()) + rows * step.stack_offset;
      for (int64_t member = 0; member < members; ++member) {
        const int32_t of = ValueAt(step.stacked[static_cast<size_t>(member)]).inputs[0].id;
        const ValueRows& from = RowsOf(of, chunk);
        CopyRows(from.cells, from.stride * size, stacked + member * rows * terms * size, terms * size, rows,
                 terms * size);
      }
    }
    weights.Multiply(stacked, terms, members * rows, to.cells, columns, context_.cancelled);
    return;
  }
  const ValueRows& from = RowsOf(value.inputs[0].id, chunk);
  if (of_node == 1) {
    weights.Multiply(from.cells, from.stride, rows, to.cells, to.stride, context_.cancelled);
  } else if (from.stride == of_node * terms && to.stride == of_node * columns) {
    weights.Multiply(from.cells, terms, rows * of_node, to.cells, columns, context_.cancelled);
  } else {
    for (int64_t i = 0; i < rows; ++i)
      weights.Multiply(from.cells + i * from.stride * size, terms, of_node, to.cells + i * to.stride * size,
                       columns, context_.cancelled);
  }
}

Status BodyRun::CallRegion(int32_t fused_operator, const Chunk& chunk) const {
  const BodyRegion& region = program_->region(fused_operator);
  BodyWorkspace& workspace = chunk.workspace;
  workspace.inputs.clear();
  workspace.input_strides.clear();
  for (const BodyRegion::Input& input : region.inputs) {
    const ValueRows& rows = RowsOf(input.value, chunk);
    workspace.inputs.push_back(input.is_number ? &shared_numbers_[static_cast<size_t>(input.value)]
                                               : reinterpret_cast<const double*>(rows.cells));
    workspace.input_strides.push_back(rows.stride);
  }
  workspace.outputs.clear();
  workspace.output_strides.clear();
  for (const int32_t output : region.outputs) {
    workspace.outputs.push_back(reinterpret_cast<double*>(RowsOf(output, chunk).cells));
    workspace.output_strides.push_back(RowsOf(output, chunk).stride);
  }
  FusedRuntime& runtime = context_.fused == nullptr ? InterpretedRuntime() : *context_.fused;
  HEDDLE_ASSIGN_OR_RETURN(const RegionCode* const code,
                          program_->CodeOf(fused_operator, chunk.rows(), runtime));
  code->Run({.rows = chunk.rows(),
             .columns = region.columns,
             .inputs = workspace.inputs.data(),
             .input_strides = workspace.input_strides.data(),
             .outputs = workspace.outputs.data(),
             .output_strides = workspace.output_strides.data()});
  return OkStatus();
}

void BodyRun::Transpose(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  const Shape of = ValueAt(value.inputs[0].id).node.info.shape;
  const ValueRows &from = RowsOf(value.inputs[0].id, chunk), &to = RowsOf(id, chunk);
  const auto transpose = [&](auto* given, auto* result) {
    ParallelFor(chunk.rows(), std::max<int64_t>(1, kTaskWork / 4 / of.Cells()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i)
                    simd::Transpose(given + i * from.stride, of.columns, of.rows, of.columns,
                                    result + i * to.stride, of.rows);
                });
  };
  if (CellBytes(value) == 4)
    transpose(reinterpret_cast<const float*>(from.cells), reinterpret_cast<float*>(to.cells));
  else
    transpose(reinterpret_cast<const double*>(from.cells), reinterpret_cast<double*>(to.cells));
}

void BodyRun::MultiplyNodes(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  const int32_t left = value.inputs[0].id, right = value.inputs[1].id;
  const Shape a = ValueAt(left).node.info.shape, b = ValueAt(right).node.info.shape;
  const ValueRows &rows_a = RowsOf(left, chunk), &rows_b = RowsOf(right, chunk), &rows_c = RowsOf(id, chunk);
  const int64_t work = std::max<int64_t>(1, a.Cells() * b.columns), nodes = chunk.rows();
  // Rows of C are shared out where there are fewer nodes than threads, or some threads would have one more.
  const int64_t threads = ParallelThreads(), most = std::min(a.rows / kRowsOfPart, work / kTaskWork);
  const bool is_even = nodes % threads == 0 || nodes >= 4 * threads;
  const int64_t parts = is_even ? 1 : std::clamp<int64_t>(most, 1, threads);
  const auto multiply = [&](auto* cells_a, auto* cells_b, auto* cells_c) {
    using Cell = std::remove_pointer_t<decltype(cells_c)>;
    ParallelFor(nodes * parts, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t i = unit / parts, part = unit % parts;
        const int64_t first = a.rows * part / parts, last = a.rows * (part + 1) / parts;
        Run(NodeProduct<Cell>{.m = last - first,
                              .n = b.columns,
                              .k = a.columns,
                              .a = cells_a + i * rows_a.stride + first * a.columns,
                              .b = cells_b + i * rows_b.stride,
                              .c = cells_c + i * rows_c.stride + first * b.columns,
                              .cancelled = context_.cancelled});
      }
    });
  };
  if (CellBytes(value) == 4)
    multiply(reinterpret_cast<const float*>(rows_a.cells), reinterpret_cast<const float*>(rows_b.cells),
             reinterpret_cast<float*>(rows_c.cells));
  else
    multiply(reinterpret_cast<const double*>(rows_a.cells), reinterpret_cast<const double*>(rows_b.cells),
             reinterpret_cast<double*>(rows_c.cells));
}

// Whether the value has a row for each distinct node only: no step reads it, and results take their rows.
bool BodyRun::HasDistinctRowsAlone(int32_t id) const {
  return !distinct_.first.empty() && program_->PlaceOf(id).kind == PlaceKind::kClassRows &&
         !program_->IsReadByBatches(id);
}

void BodyRun::Store(size_t result, const Chunk& chunk) const {
  const int32_t id = body_->results[result];
  const Matrix& all = chunk.results->rows[result];
  char* const to = MutableRowOf(all, chunk.begin);
  if (ValueAt(id).layout == Layout::kShared && ValueAt(id).node.info.IsScalar()) {
    std::fill_n(reinterpret_cast<double*>(to), chunk.rows(), shared_numbers_[static_cast<size_t>(id)]);
    return;
  }
  const BodyProgram::ResultBase& base = program_->BaseOfResult(result);
  const int64_t bytes = RowBytes(all), first = base.column * CellBytes(ValueAt(id));
  if (HasDistinctRowsAlone(base.value)) {
    const Matrix& distinct = shared_[static_cast<size_t>(base.value)].matrix();
    for (int64_t i = 0; i < chunk.rows(); ++i)
      std::memcpy(to + i * bytes,
                  RowOf(distinct, distinct_.row_of[static_cast<size_t>(NodeAt(chunk, i))]) + first,
                  static_cast<size_t>(bytes));
    return;
  }
  const ValueRows& from = RowsOf(base.value, chunk);
  if (from.cells + first == to) return;  // It was written there.
  CopyRows(from.cells + first, from.stride * CellBytes(ValueAt(id)), to, bytes, chunk.rows(), bytes);
}

}  // namespace heddle::ops
