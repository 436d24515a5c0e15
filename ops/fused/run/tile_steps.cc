// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/tile_steps.h"

#include <algorithm>
#include <cstring>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/elementwise/single_precision.h"
#include "ops/fused/rows/dense_rows.h"
#include "ops/fused/run/run_tiles.h"
#include "ops/fused/run/tile_inputs.h"
#include "ops/product/sampled_product.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops {
namespace {

// Floats, too, go by the pointer of doubles that a region's call has.
double* CellsAt(double* cells, ElementType type, int64_t cell) {
  return type == ElementType::kFloat64 ? cells + cell
                                       : reinterpret_cast<double*>(reinterpret_cast<float*>(cells) + cell);
}

}  // namespace

void TileSteps::MakeRoom(TileScratch& scratch, int64_t entries) const {
  if (entries + kGatherOverrun <= scratch.entries) return;
  scratch.entries =
      (std::max(entries, std::min(sizes_.entries, driver().stored())) + kGatherOverrun + 7) / 8 * 8;
  scratch.patterns = AlignedArray(program_.patterns * scratch.entries);
}

int64_t TileSteps::TileEnd(int64_t row, int64_t last) const {
  int64_t end = std::min(last, row + sizes_.rows);
  if (!program_.by_pattern) return end;
  // As many rows as have so many entries, and one group (or row) at least.
  const int64_t* offsets = driver().row_offsets();
  if (offsets[end] - offsets[row] <= sizes_.entries) return end;
  const int64_t rows =
      std::upper_bound(offsets + row, offsets + end, offsets[row] + sizes_.entries) - (offsets + row) - 1;
  return std::min(last, row + std::max(rows / sizes_.rows_together, int64_t{1}) * sizes_.rows_together);
}

// Cells of a value for the rows from `row` on; inputs are only read through it.
TileSteps::Place TileSteps::Locate(TileScratch& scratch, const TileRef& ref, int64_t row) const {
  switch (ref.kind) {
    case TileRef::Kind::kInput: {
      if (IsDecoded(ref)) {
        DecodedRows& rows = scratch.decoded[static_cast<size_t>(ref.index)];
        const int64_t columns = inputs_.decoders[static_cast<size_t>(ref.index)]->columns();
        return {rows.cells.data() + (row - rows.begin) * columns + ref.column, columns};
      }
      const Matrix& input =
          (program_.single ? inputs_.singles : inputs_.doubles)[static_cast<size_t>(ref.index)];
      const int64_t column = ref.column + FirstColumn(scratch, input.columns());
      return {
          CellsAt(const_cast<double*>(input.data()), input.element_type(), row * input.columns() + column),
          input.columns()};
    }
    case TileRef::Kind::kBuffer:
      return {scratch.buffers.data() + buffer_offsets_[static_cast<size_t>(ref.index)] + ref.column,
              program_.buffers[static_cast<size_t>(ref.index)]};
    case TileRef::Kind::kDriver:
      return {const_cast<double*>(driver().values()) + driver().row_offsets()[row], 1};
    case TileRef::Kind::kPattern: return {scratch.patterns.data() + ref.index * scratch.entries, 1};
    case TileRef::Kind::kResult: {
      double* const result = results_[static_cast<size_t>(ref.index)];
      if (program_.IsPatterned(ref.index))
        return {result + (driver().row_offsets()[row] - driver().row_offsets()[0]), 1};
      const NodeId root = program_.fused.roots[static_cast<size_t>(ref.index)];
      const int64_t columns = program_.fused.body[root].info.shape.columns;
      // All tiles of a row compute its vectors; one of them writes them.
      if (columns == 1 && scratch.first_column > 0)
        return {&scratch.cells[static_cast<size_t>(ref.index)], 1};
      const int64_t column = ref.column + FirstColumn(scratch, columns);
      return {CellsAt(result, program_.single ? ElementType::kFloat32 : ElementType::kFloat64,
                      row * columns + column),
              columns};
    }
    case TileRef::Kind::kSaved:
      return {saved_[static_cast<size_t>(ref.index)] + (row - first_saved_row_) * program_.cut_columns +
                  scratch.first_column,
              program_.cut_columns};
    case TileRef::Kind::kBackground: return {background_[static_cast<size_t>(ref.index)] + row, 1};
    case TileRef::Kind::kNone: break;
  }
  return {};
}

Entries TileSteps::LeftEntries(TileScratch& scratch, const Step& step, int64_t row, int64_t rows) const {
  const Entries entries = scratch.EntriesAt(Locate(scratch, step.from, row).cells, row);
  if (step.background.kind == TileRef::Kind::kNone) return entries;
  const double* const background = Locate(scratch, step.background, row).cells;
  if (!HasNonzero(background, rows)) return entries;
  scratch.filled.Fill(entries, background, rows, driver().columns());
  return scratch.filled.entries();
}

void TileSteps::RunColumns(TileScratch& scratch, int64_t row, int64_t first_column, int64_t most_columns,
                           double* payload) const {
  const int64_t end = std::min(first_column + most_columns, program_.cut_columns);
  for (int64_t column = first_column; column < end; column += kTileColumns) {
    scratch.first_column = column;
    scratch.width = std::min(kTileColumns, end - column);
    RunTile(scratch, row, row + 1, 0, payload);
  }
}

void TileSteps::SetPhase(TileScratch& scratch, int phase, const double* folds) const {
  scratch.phase = static_cast<size_t>(phase);
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (const TileRoot& root = program_.roots[r]; root.of_rows && root.phase < phase)
      *Locate(scratch, root.value, 0).cells = folds[r];
}

void TileSteps::RunTile(TileScratch& scratch, int64_t row, int64_t row_end, int64_t row_in_panel,
                        double* payload) const {
  const int64_t rows = row_end - row;
  DecodeRows(scratch, row, row_end);
  if (program_.by_pattern) {
    MakeRoom(scratch, Count(row, row_end));
    scratch.pattern = PatternFrom(driver(), row);
    scratch.pattern_row = row;
  }
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (!program_.runs.empty() && !program_.runs[scratch.phase][s]) continue;
    switch (step.kind) {
      case Step::Kind::kRegion: CallRegion(scratch, s, row, rows, row_in_panel, payload); break;
      case Step::Kind::kDensify: Densify(scratch, step, row, row_end); break;
      case Step::Kind::kWiden: {
        const int64_t cells = rows * ColumnsOf(scratch, step.columns);
        double* to = Locate(scratch, step.to, row).cells;
        const Matrix& input = inputs_.singles[static_cast<size_t>(step.index)];
        SelectedElementwiseKernels().widen(
            input.data<float>() + row * step.columns + FirstColumn(scratch, step.columns), to, cells);
        break;
      }
      case Step::Kind::kRound: {
        // The product of a pair that nobody else reads is in no buffer.
        if (static_cast<int>(s) == pair_.multiply + 1 && pair_.same_rows && !pair_.stores_product &&
            payload != nullptr)
          break;
        const bool by_entries =
            step.to.kind == TileRef::Kind::kPattern ||
            (step.to.kind == TileRef::Kind::kResult && program_.IsPatterned(step.to.index));
        const int64_t cells =
            by_entries ? scratch.pattern.Count(rows) : rows * ColumnsOf(scratch, step.columns);
        double* to = Locate(scratch, step.to, row).cells;
        SelectedElementwiseKernels().Of(UnaryCode::kRoundToSingle)(to, to, cells, false);
        break;
      }
      case Step::Kind::kNarrow: {
        const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
        for (int64_t i = 0; i < rows; ++i)
          SelectedElementwiseKernels().narrow(from.cells + i * from.stride,
                                              reinterpret_cast<float*>(to.cells) + i * to.stride,
                                              ColumnsOf(scratch, step.columns));
        break;
      }
      case Step::Kind::kExpand: {
        const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
        SelectedElementwiseKernels().repeat(from.cells, rows, ColumnsOf(scratch, step.columns), to.cells);
        break;
      }
      case Step::Kind::kCopy: {
        const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
        if (IsByEntry(step.from))
          std::copy_n(from.cells, scratch.pattern.Count(rows), to.cells);
        else
          CopyRows(from.cells, from.stride, rows, ColumnsOf(scratch, step.columns), to.cells, to.stride);
        break;
      }
      case Step::Kind::kSample: {
        double* to = Locate(scratch, step.to, row).cells;
        SampleRows(driver(), inputs_.doubles[static_cast<size_t>(step.index)],
                   inputs_.doubles[static_cast<size_t>(step.right)], row, row_end,
                   to - (driver().row_offsets()[row] - driver().row_offsets()[0]));
        break;
      }
      case Step::Kind::kIntersect: Intersect(scratch, step, row, row_end); break;
      case Step::Kind::kGatherCells:
        GatherCells(scratch.pattern, inputs_.doubles[static_cast<size_t>(step.index)], row, row_end,
                    scratch.spread_rows[step.index], Locate(scratch, step.to, row).cells);
        break;
      case Step::Kind::kGatherColumn: {
        const double* from = Locate(scratch, step.from, row).cells;
        double* to = Locate(scratch, step.to, row).cells;
        for (int64_t i = 0; i < rows; ++i) to = std::fill_n(to, scratch.PatternAt(row + i).Count(1), from[i]);
        break;
      }
      case Step::Kind::kGatherRow: {
        const double* from = inputs_.doubles[static_cast<size_t>(step.index)].data();
        const int32_t* columns = scratch.pattern.columns + scratch.pattern.offsets[0];
        double* to = Locate(scratch, step.to, row).cells;
        for (int64_t e = 0, count = scratch.pattern.Count(rows); e < count; ++e) to[e] = from[columns[e]];
        break;
      }
      case Step::Kind::kSpread: {
        const Place to = Locate(scratch, step.to, row);
        SpreadRowsWithBackground(scratch.EntriesAt(Locate(scratch, step.from, row).cells, row),
                                 Locate(scratch, step.background, row).cells, rows, step.columns, to.cells,
                                 to.stride);
        break;
      }
      case Step::Kind::kFoldRows: FoldRows(scratch, step, row, rows); break;
      case Step::Kind::kMultiply:
        if (static_cast<int>(s) == pair_.multiply && payload != nullptr &&
            (pair_.same_rows || scratch.waiting_rows >= rows))
          MultiplyAndAdd(scratch, step, narrow_[s], row, rows, payload);
        else if (static_cast<int>(s) == sparse_pair_.multiply && payload != nullptr)
          MultiplyAndAddRows(inputs_.doubles[static_cast<size_t>(step.index)], narrow_[s].dense.data(), row,
                             row_end, Locate(scratch, step.to, row).cells,
                             payload + program_
                                           .roots[static_cast<size_t>(
                                               program_.steps[static_cast<size_t>(sparse_pair_.root)].index)]
                                           .offset);
        else
          Multiply(scratch, s, row, row_end);
        break;
      case Step::Kind::kRoot:
        if (payload == nullptr || static_cast<int>(s) == sparse_pair_.root) break;
        if (static_cast<int>(s) == pair_.root && pair_.same_rows) break;
        if (static_cast<int>(s) == pair_.root) {
          scratch.waiting = Locate(scratch, step.from, row).cells;
          scratch.waiting_rows = rows;
        } else {
          AddToRoot(scratch, step, row, rows, row_in_panel, payload);
        }
        break;
    }
  }
}

void TileSteps::CallRegion(TileScratch& scratch, size_t s, int64_t row, int64_t rows, int64_t row_in_panel,
                           double* payload) const {
  const Step& step = program_.steps[s];
  RegionArguments& arguments = scratch.arguments[s];
  for (size_t i : arguments.moving_inputs) {
    if (const RegionOperand& operand = step.operands[i]; operand.from == RegionOperand::From::kWhole) {
      const Matrix& row_vector = inputs_.doubles[static_cast<size_t>(operand.index)];
      arguments.inputs[i] = row_vector.data() + FirstColumn(scratch, row_vector.columns());
      continue;
    }
    const Place place = Locate(scratch, step.operands[i].tile, row);
    arguments.inputs[i] = place.cells;
    arguments.input_strides[i] = place.stride;
  }
  int folded = -1;
  for (size_t i : arguments.moving_outputs) {
    const int root = step.output_roots[i];
    if (root < 0) {
      const Place place = Locate(scratch, step.outputs[i], row);
      arguments.outputs[i] = place.cells;
      arguments.output_strides[i] = place.stride;
      continue;
    }
    arguments.outputs[i] = PayloadOf(scratch, root, row, payload);
    if (IsFull(root)) folded = root;
  }
  // All folds of a region are over cells of one shape: they share the height of a leaf, and the base.
  const int64_t row_in_leaf =
      folded < 0 ? 0 : row_in_panel % program_.roots[static_cast<size_t>(folded)].height;
  const int64_t base = (row_in_leaf * step.columns) & 7, columns = ColumnsOf(scratch, step.columns);
  RegionCall call{.rows = step.flat ? 1 : rows,
                  .columns = step.by_entries ? scratch.pattern.Count(rows)
                             : step.flat     ? rows * columns
                                             : columns,
                  .inputs = arguments.inputs.data(),
                  .input_strides = arguments.input_strides.data(),
                  .outputs = arguments.outputs.data(),
                  .output_strides = arguments.output_strides.data(),
                  .stream = step.stream};
  const RegionCode& code = *program_.codes[static_cast<size_t>(step.index)];
  if (folded < 0 || base == 0) {
    code.Run(call);
    return CorrectFolds(step, arguments, row, rows);
  }
  alignas(64) double lanes[FusedOperator::kMaxRoots][8];
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (const int root = step.output_roots[i]; IsFull(root)) {
      for (int64_t j = 0; j < 8; ++j)
        lanes[root][j] = payload[program_.roots[static_cast<size_t>(root)].offset + ((j + base) & 7)];
      arguments.outputs[i] = lanes[root];
    }
  code.Run(call);
  for (const int root : step.output_roots)
    if (IsFull(root))
      for (int64_t j = 0; j < 8; ++j)
        payload[program_.roots[static_cast<size_t>(root)].offset + ((j + base) & 7)] = lanes[root][j];
  CorrectFolds(step, arguments, row, rows);
}

void TileSteps::CorrectFolds(const Step& step, const RegionArguments& arguments, int64_t row,
                             int64_t rows) const {
  for (size_t i = 0; i < step.output_folds.size(); ++i)
    if (const NodeId fold = step.output_folds[i]; fold != kNoNode)
      CorrectFold(fold, row, row + rows, arguments.outputs[i]);
}

void TileSteps::CorrectFold(NodeId fold, int64_t row, int64_t row_end, double* out) const {
  if (program_.single || simd::AllFinite(out, row_end - row)) return;
  if (!AddsUp(FindAggregate(program_.fused.body[fold].op)->kind)) return;
  if (Status status = body_->Correct(fold, row, row_end, out); !status.ok()) {
    const std::lock_guard lock(failing_);
    if (failure_.ok()) failure_ = std::move(status);
  }
}

Status TileSteps::failure() const {
  const std::lock_guard lock(failing_);
  return failure_;
}

void TileSteps::Intersect(TileScratch& scratch, const Step& step, int64_t row, int64_t row_end) const {
  scratch.offsets.resize(static_cast<size_t>(row_end - row) + 1);
  scratch.columns.resize(static_cast<size_t>(Count(row, row_end) + kGatherOverrun));
  std::vector<const Matrix*> others;
  std::vector<SpreadRow*> spreads;
  std::vector<double*> values;
  for (int input : step.inputs) {
    others.push_back(&inputs_.doubles[static_cast<size_t>(input)]);
    spreads.push_back(&scratch.spread_rows[input]);
  }
  for (const TileRef& place : step.outputs) values.push_back(Locate(scratch, place, row).cells);
  IntersectRows(driver(), others, row, row_end, spreads,
                {scratch.offsets.data(), scratch.columns.data(), values.data()});
  scratch.pattern = {scratch.offsets.data(), scratch.columns.data(), scratch.offsets.back()};
}

void TileSteps::Densify(TileScratch& scratch, const Step& step, int64_t row, int64_t row_end) const {
  const Matrix& x = inputs_.doubles[static_cast<size_t>(step.index)];
  const int64_t columns = ColumnsOf(scratch, step.columns), first = FirstColumn(scratch, step.columns);
  double* out = Locate(scratch, step.to, row).cells;
  std::memset(out, 0, static_cast<size_t>((row_end - row) * columns) * sizeof(double));
  for (int64_t i = row; i < row_end; ++i, out += columns) {
    const EntryRange range = EntriesOf(x, i, first, first + columns);
    for (int64_t e = range.begin; e < range.end; ++e) out[x.column_indexes()[e] - first] = x.values()[e];
  }
}

void TileSteps::FoldRows(TileScratch& scratch, const Step& step, int64_t row, int64_t rows) const {
  double* out = Locate(scratch, step.to, row).cells;
  if (step.index >= 0)
    return AggregateRows(step.aggregate, inputs_.doubles[static_cast<size_t>(step.index)], row, row + rows,
                         out - row);
  if (IsByEntry(step.from)) {
    const Entries entries = scratch.EntriesAt(Locate(scratch, step.from, row).cells, row);
    const double* const background = Locate(scratch, step.background, row).cells;
    const simd::Fold fold = FoldOf(step.aggregate);
    if (fold == simd::Fold::kAdd && (background == nullptr || !HasNonzero(background, rows)))
      SumRows(entries, rows, step.columns, out);
    else
      FoldRowsWithBackground(fold, entries, background, rows, step.columns, out);
  } else {
    const simd::Prefetch prefetch = step.reads_memory && !program_.single && !IsDecoded(step.from)
                                        ? simd::Prefetch::OfStream(program_.processor.memory_streams)
                                        : simd::Prefetch();
    const bool largest = step.aggregate == AggregateKind::kIndexMax;
    EachTileRows(scratch, step.from, row, rows, step.columns,
                 [&](const double* cells, int64_t stride, int64_t first, int64_t count) {
                   if (largest || step.aggregate == AggregateKind::kIndexMin)
                     simd::IndexOfExtreme(largest, cells, count, step.columns, out + first);
                   else if (IsSpread(step.aggregate))
                     SpreadRows(step.aggregate, cells, count, stride, step.columns, out + first, prefetch);
                   else
                     simd::FoldRows(FoldOf(step.aggregate), cells, count, stride, step.columns, out + first,
                                    prefetch);
                 });
  }
  if (step.aggregate == AggregateKind::kMean)
    for (int64_t i = 0; i < rows; ++i) out[i] = out[i] / static_cast<double>(step.columns);
  const bool corrects = AddsUp(step.aggregate) && !IsSpread(step.aggregate) && !program_.single;
  if (!corrects || simd::AllFinite(out, rows)) return;
  if (IsByEntry(step.from)) return CorrectFold(step.node, row, row + rows, out);
  const Place place = Locate(scratch, step.from, row);
  CorrectDenseRows(step.aggregate, place.cells, rows, place.stride, step.columns, out);
}

// What a product of rows at x fetches of the next tile.
simd::Prefetch TileSteps::ToFetch(const Step& step, const Place& x, int64_t rows) const {
  if (IsDecoded(step.from)) return {};
  const int64_t cells = rows * x.stride;
  const simd::Prefetch all(ReadsSingles(step.from) ? cells / 2 : cells, program_.processor.memory_streams);
  switch (step.fetch) {
    case Step::Fetch::kNothing: break;
    case Step::Fetch::kEven: return all.Even();
    case Step::Fetch::kOdd: return all.Odd();
    case Step::Fetch::kAll: return all;
  }
  return {};
}

// How far on the entries are whose rows of `right` a product at the entries of a tile fetches: those of the
// next tile, which reads them from beyond the second-level cache. 0: none.
int64_t TileSteps::EntriesAhead(const TileScratch& scratch, const Matrix& right, int64_t row,
                                int64_t row_end) const {
  const bool beyond =
      right.cells() * static_cast<int64_t>(sizeof(double)) > program_.processor.second_level_bytes;
  if (!beyond || scratch.pattern.columns != driver().column_indexes()) return 0;
  const int64_t* const offsets = driver().row_offsets();
  const int64_t count = offsets[row_end] - offsets[row];
  return offsets[row_end] + count <= offsets[driver().rows()] ? count : 0;
}

void TileSteps::Multiply(TileScratch& scratch, size_t s, int64_t row, int64_t row_end) const {
  const Step& step = program_.steps[s];
  if (MustSpread(scratch, s, row, row_end - row)) return MultiplySpread(scratch, s, row, row_end - row);
  if (MultipliesSingles(program_, step)) return MultiplySingles(scratch, s, row, row_end);
  const NarrowRight& narrow = narrow_[s];
  const int64_t k = step.columns, rows = row_end - row;
  double* out = Locate(scratch, step.to, row).cells;
  const Matrix& right = inputs_.doubles[static_cast<size_t>(step.right)];
  if (step.index >= 0) {
    const Matrix& left = inputs_.doubles[static_cast<size_t>(step.index)];
    if (k <= kFewColumns) return MultiplyNarrowRows(left, narrow, row, row_end, out - row * k);
    return MultiplySparseRows(left, right, row, row_end, 0, left.columns(), out);
  }
  const Place from = Locate(scratch, step.from, row);
  if (IsByEntry(step.from)) {
    const Entries entries = LeftEntries(scratch, step, row, rows);
    const bool filled = entries.values == scratch.filled.values.data();
    return MultiplyEntries(entries, rows, right, narrow, out,
                           filled ? 0 : EntriesAhead(scratch, right, row, row_end));
  }
  if (k <= kFewColumns)
    return WithCells(step.from, from, [&](const auto* cells) {
      simd::MultiplyRows(cells, rows, from.stride, right.rows(), narrow.cells.data(), narrow.stride, k, out,
                         k, ToFetch(step, from, rows));
    });
  if (simd::IsSkinny(rows, right.rows(), k))
    return simd::MultiplySkinny(from.cells, rows, from.stride, right.rows(), right.data(), k, out, k,
                                ToFetch(step, from, rows));
  Gemm gemm{.m = rows,
            .n = k,
            .k = right.rows(),
            .a = from.cells,
            .a_row = from.stride,
            .b = right.data(),
            .b_row = k,
            .packed = packed_[s].get(),
            .c = out,
            .c_row = k,
            .canonical = true};
  if (step.fetch != Step::Fetch::kNothing && !IsDecoded(step.fetched)) {
    const Place next = Locate(scratch, step.fetched, row_end);
    gemm.prefetched = next.cells;
    gemm.prefetched_cells = rows * next.stride;
  }
  Run(gemm);
}

}  // namespace heddle::ops
