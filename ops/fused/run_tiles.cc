// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/panels.h"
#include "ops/elementwise_sparse.h"
#include "ops/fused/entries.h"
#include "ops/matmul.h"
#include "ops/matmul_gemm.h"
#include "ops/operator.h"
#include "ops/parallel.h"
#include "ops/sampled_product.h"
#include "ops/simd/matmul.h"

namespace heddle::ops {
namespace {

// Entries of a tile along a CSR driver: its buffers stay in the first-level cache.
constexpr int64_t kTileEntries = 2048;
// Entries of a CSR input in one tile: they are read twice.
constexpr int64_t kSparseTileBytes = 32 << 10;
// Finding an entry of a CSR row and its partners costs as much as so many dense cells.
constexpr int64_t kWorkOfEntry = 4;
// Leaves of about so many cells are one task of a reduction.
constexpr int64_t kTaskCells = 1 << 18;
// Tiles begin at multiples of this in their panel: the lanes of narrow column sums go by row modulo 8.
constexpr int64_t kRowsTogether = 8;

// Adds t(X) Y of some rows.
void AddProduct(const TileRoot& root, const double* x, int64_t x_stride, const double* y, int64_t y_stride, int64_t rows,
                int64_t lane, double* payload) {
  switch (root.kind) {
    case TileRoot::Kind::kVectors:
      return simd::MultiplyColumns(x, rows, x_stride, root.n, y, y_stride, root.k, payload, root.padded);
    case TileRoot::Kind::kLanes:
      if (root.k == 1) return simd::MultiplyNarrow(x, rows, root.n, y, payload);
      if (root.n == 1) return simd::MultiplyNarrow(y, rows, root.k, x, payload);
      for (int64_t i = 0; i < rows; ++i) {
        double* cells = payload + ((lane + i) & 7) * root.n * root.k;
        for (int64_t j = 0; j < root.n; ++j)
          for (int64_t c = 0; c < root.k; ++c)
            cells[j * root.k + c] = std::fma(x[i * x_stride + j], y[i * y_stride + c], cells[j * root.k + c]);
      }
      return;
    default:
      return Run(Gemm{.m = root.n, .n = root.k, .k = rows, .a = x, .a_row = 1, .a_column = x_stride, .b = y, .b_row = y_stride,
                      .c = payload, .c_row = root.k, .accumulate = true});
  }
}

// Calls fold(lanes) with lanes[j] the accumulator of the cells whose flat place is j modulo 8, when the first cell's is `base`.
template <typename Fold>
void WithLanes(double* payload, int64_t base, Fold fold) {
  if (base == 0) return fold(payload);
  alignas(64) double lanes[8];
  for (int64_t j = 0; j < 8; ++j) lanes[j] = payload[(j + base) & 7];
  fold(lanes);
  for (int64_t j = 0; j < 8; ++j) payload[(j + base) & 7] = lanes[j];
}

// What all tiles of one run share.
class TileRun {
 public:
  TileRun(const TileProgram& program, const KernelCall& call) : program_(program), call_(call) {}

  Status Prepare() {
    HEDDLE_ASSIGN_OR_RETURN(scalars_, BodyScalars(program_, call_));
    inputs_.resize(program_.roles.inputs.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (program_.roles.inputs[i] != BodyRole::kRows && program_.roles.inputs[i] != BodyRole::kWhole) continue;
      const Format format = program_.fused.body[program_.roles.variables[i]].info.format;
      Result<Matrix> matrix = call_.inputs[i]->matrix();
      if (program_.roles.inputs[i] == BodyRole::kWhole || format == Format::kDense)
        matrix = ToDense(*matrix);
      else
        matrix = ToSparse(*matrix);
      if (!matrix.ok()) return matrix.status();
      inputs_[i] = *std::move(matrix);
    }
    rows_ = driver().rows();
    ChooseTileRows();
    for (const TileProgram::Repeated& repeated : program_.repeated) {
      AlignedArray cells(tile_rows_ * repeated.columns + 8);
      const double* row = inputs_[static_cast<size_t>(repeated.input)].data();
      for (int64_t i = 0; i < tile_rows_; ++i) std::copy_n(row, repeated.columns, cells.data() + i * repeated.columns);
      repeated_.push_back(std::move(cells));
    }
    padded_.resize(program_.steps.size());
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      if (step.kind == Step::Kind::kMultiply && step.columns <= kFewColumns)
        padded_[s] = PadColumns(inputs_[static_cast<size_t>(step.right)]);
    }
    int64_t offset = 0;
    for (int64_t columns : program_.buffers) {
      buffer_offsets_.push_back(offset);
      offset += (tile_rows_ * columns + 15) / 8 * 8;  // Whole lines, and room for RepeatEach's overrun.
    }
    scratch_doubles_ = offset;
    if (program_.by_pattern) {
      int64_t longest = 0;
      for (int64_t i = 0; i < rows_; ++i) longest = std::max(longest, driver().row_offsets()[i + 1] - driver().row_offsets()[i]);
      entries_ = (std::min(std::max(kTileEntries, kRowsTogether * longest), driver().stored()) + 7) / 8 * 8;
    }
    return OkStatus();
  }

  int64_t rows() const { return rows_; }

  Result<Matrix> RunRows() {
    const ValueInfo& info = program_.fused.body[program_.fused.roots[0]].info;
    const bool entries = HasPattern();
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, entries ? SamePattern(driver()) : Matrix::Dense(rows_, info.shape.columns));
    result_ = result.mutable_data();
    // Tasks are runs of whole groups of rows.
    const int64_t grain = std::max(tile_rows_, (int64_t{1} << 17) / WidestRow() / kRowsTogether * kRowsTogether);
    ParallelFor(CeilDivide(rows_, grain), 1, [&](int64_t begin, int64_t end) {
      Scratch scratch = Take();
      const int64_t last = std::min(rows_, end * grain);
      for (int64_t row = begin * grain, next; row < last && !IsCancelled(call_.context.cancelled); row = next) {
        next = TileEnd(row, last);
        RunTile(scratch, row, next, 0, nullptr);
      }
      GiveBack(std::move(scratch));
    });
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    if (entries) return DropZeros(result);
    if (info.format == Format::kSparse) return ToSparse(result);
    return result;
  }

  Result<Matrix> RunPanels() {
    const bool whole = call_.phase.empty();
    const int64_t span_begin = whole ? 0 : call_.row_begin, span_end = whole ? rows_ : call_.row_end;
    const int64_t height = program_.panel_rows;
    Reduction reduction = program_.reduction;
    reduction.leaf_cells = height * WidestRow();
    reduction.cancelled = call_.context.cancelled;
    const int64_t begin = span_begin == span_end ? 0 : CeilDivide(span_begin, height);
    const int64_t end = span_begin == span_end ? 0 : CeilDivide(span_end, height);
    const bool several = HoldsSeveralLeaves();
    const int64_t most_leaves = std::max<int64_t>(1, kTaskCells / std::max<int64_t>(reduction.leaf_cells, 1));
    return ReduceLeaves(reduction, begin, end, [&](int64_t leaf, double* payload) {
      std::fill_n(payload, reduction.width, reduction.identity);
      const int64_t first = leaf * height - span_begin, last = std::min(span_end, (leaf + 1) * height) - span_begin;
      Scratch scratch = Take(first);
      if (several && Count(first, last) <= entries_) {
        if (first < scratch.held_begin || last > scratch.held_end) {
          // As many leaves as the buffers have room for, up to the end of what is one task.
          const int64_t stop = std::min(span_end, (leaf / most_leaves + 1) * most_leaves * height) - span_begin;
          int64_t hold = last;
          while (hold < stop && Count(first, std::min(stop, hold + height)) <= entries_) hold = std::min(stop, hold + height);
          RunTile(scratch, first, hold, 0, nullptr);
          scratch.held_begin = first;
          scratch.held_end = hold;
        }
        AddHeldEntries(scratch, first, last, payload);
        GiveBack(std::move(scratch));
        return true;
      }
      scratch.held_begin = scratch.held_end = 0;
      for (int64_t row = first, next; row < last && !IsCancelled(reduction.cancelled); row = next) {
        next = TileEnd(row, last);
        RunTile(scratch, row, next, row - first, payload);
      }
      GiveBack(std::move(scratch));
      return true;
    });
  }

 private:
  // Memory of one thread's tile.
  struct Scratch {
    AlignedArray buffers, patterns;
    std::vector<double> row;  // A whole row of the driver's columns, all zero between uses.
    std::vector<const double*> inputs;
    std::vector<double*> outputs;
    std::vector<int64_t> input_strides, output_strides;
    int64_t held_begin = 0, held_end = 0;  // Rows whose values at the driver's entries are in `patterns`.
  };
  struct Place {
    double* cells = nullptr;
    int64_t stride = 0;
  };

  // The one that holds `row` already, if there is one.
  Scratch Take(int64_t row = -1) {
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = free_.size(); i-- > 0;)
        if (free_[i].held_begin <= row && row < free_[i].held_end) {
          std::swap(free_[i], free_.back());
          break;
        }
      if (!free_.empty()) {
        Scratch scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    Scratch scratch;
    scratch.buffers = AlignedArray(scratch_doubles_);
    if (program_.by_pattern) scratch.patterns = AlignedArray(program_.patterns * entries_);
    return scratch;
  }
  void GiveBack(Scratch scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  const Matrix& driver() const { return inputs_[static_cast<size_t>(program_.fused.driver)]; }
  bool HasPattern() const {
    return program_.by_pattern && program_.fused.body[program_.fused.roots[0]].info.shape.columns == driver().columns();
  }
  Entries EntriesAt(const double* values, int64_t row) const {
    // Values of a tile begin with its first entry; offsets count from the driver's first.
    return {driver().row_offsets() + row, driver().column_indexes(), values - driver().row_offsets()[row]};
  }

  int64_t TileEnd(int64_t row, int64_t last) const {
    int64_t end = std::min(last, row + tile_rows_);
    if (!program_.by_pattern) return end;
    const int64_t* offsets = driver().row_offsets();
    if (offsets[end] - offsets[row] <= entries_) return end;
    // By halves of the groups: as many rows as the buffers have room for.
    int64_t groups = (end - row) / kRowsTogether;
    while (groups > 1 && offsets[row + groups * kRowsTogether] - offsets[row] > entries_) groups /= 2;
    return std::min(last, row + std::max<int64_t>(groups, 1) * kRowsTogether);
  }

  // What a row costs, in cells of a dense pass: how much is one task.
  int64_t WidestRow() const {
    if (program_.by_pattern) {
      int64_t work_of_entry = kWorkOfEntry;
      for (const Step& step : program_.steps)
        if (step.kind == Step::Kind::kSample) work_of_entry += inputs_[static_cast<size_t>(step.index)].columns();
      return (driver().stored() / std::max<int64_t>(rows_, 1) + 1) * work_of_entry;
    }
    int64_t widest = 1;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (program_.roles.inputs[i] == BodyRole::kRows) widest = std::max(widest, inputs_[i].columns());
    return widest;
  }

  // True if all that happens before the sums is one value for each entry, so that a tile may span leaves.
  bool HoldsSeveralLeaves() const {
    if (!program_.by_pattern || !program_.buffers.empty()) return false;
    for (const Step& step : program_.steps) {
      for (int root : step.output_roots)
        if (root >= 0) return false;
      if (step.kind != Step::Kind::kRoot) continue;
      const TileRoot::Kind kind = program_.roots[static_cast<size_t>(step.index)].kind;
      if (!IsByEntry(step.from) || (kind != TileRoot::Kind::kFull && kind != TileRoot::Kind::kColumns)) return false;
    }
    return true;
  }
  void AddHeldEntries(Scratch& scratch, int64_t first, int64_t last, double* payload) const {
    for (const Step& step : program_.steps) {
      if (step.kind != Step::Kind::kRoot) continue;
      const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
      Entries entries = EntriesAt(Locate(scratch, step.from, scratch.held_begin).cells, scratch.held_begin);
      entries.offsets += first - scratch.held_begin;
      AddEntries(root, entries, last - first, 0, payload + root.offset);
    }
  }

  // As many rows as the program says, fewer where CSR inputs that products read have many entries.
  void ChooseTileRows() {
    tile_rows_ = program_.tile_rows;
    for (const Step& step : program_.steps) {
      const int input = step.kind == Step::Kind::kMultiply ? step.index : step.kind == Step::Kind::kRoot ? step.right : -1;
      if (input < 0) continue;
      const Matrix& x = inputs_[static_cast<size_t>(input)];
      const int64_t row_bytes = 12 * (x.stored() / std::max<int64_t>(x.rows(), 1)) + 8;
      tile_rows_ = std::clamp(FloorPowerOfTwo(std::max<int64_t>(1, kSparseTileBytes / row_bytes)), kRowsTogether, std::max(kRowsTogether, tile_rows_));
    }
  }

  // Cells of a value for the rows from `row` on; inputs are only read through it.
  Place Locate(Scratch& scratch, const TileRef& ref, int64_t row) const {
    switch (ref.kind) {
      case TileRef::Kind::kInput: {
        const Matrix& input = inputs_[static_cast<size_t>(ref.index)];
        return {const_cast<double*>(input.data()) + row * input.columns() + ref.column, input.columns()};
      }
      case TileRef::Kind::kBuffer:
        return {scratch.buffers.data() + buffer_offsets_[static_cast<size_t>(ref.index)] + ref.column,
                program_.buffers[static_cast<size_t>(ref.index)]};
      case TileRef::Kind::kDriver: return {const_cast<double*>(driver().values()) + driver().row_offsets()[row], 1};
      case TileRef::Kind::kPattern: return {scratch.patterns.data() + ref.index * entries_, 1};
      case TileRef::Kind::kResult: {
        if (HasPattern()) return {result_ + (driver().row_offsets()[row] - driver().row_offsets()[0]), 1};
        const int64_t columns = program_.fused.body[program_.fused.roots[0]].info.shape.columns;
        return {result_ + row * columns + ref.column, columns};
      }
      case TileRef::Kind::kNone: break;
    }
    return {};
  }

  void RunTile(Scratch& scratch, int64_t row, int64_t row_end, int64_t row_in_panel, double* payload) const {
    const int64_t rows = row_end - row;
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      switch (step.kind) {
        case Step::Kind::kRegion: CallRegion(scratch, step, row, rows, row_in_panel, payload); break;
        case Step::Kind::kDensify: Densify(scratch, step, row, row_end); break;
        case Step::Kind::kExpand: {
          const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
          SelectedElementwiseKernels().repeat(from.cells, rows, step.columns, to.cells);
          break;
        }
        case Step::Kind::kCopy: {
          const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
          for (int64_t i = 0; i < rows; ++i)
            std::memcpy(to.cells + i * to.stride, from.cells + i * from.stride, static_cast<size_t>(step.columns) * sizeof(double));
          break;
        }
        case Step::Kind::kSample: {
          double* to = Locate(scratch, step.to, row).cells;
          SampleRows(driver(), inputs_[static_cast<size_t>(step.index)], inputs_[static_cast<size_t>(step.right)], row, row_end,
                           to - (driver().row_offsets()[row] - driver().row_offsets()[0]));
          break;
        }
        case Step::Kind::kGatherCells: GatherCells(scratch, step, row, row_end); break;
        case Step::Kind::kGatherColumn: {
          const double* from = Locate(scratch, step.from, row).cells;
          double* to = Locate(scratch, step.to, row).cells;
          for (int64_t i = 0; i < rows; ++i) to = std::fill_n(to, Count(row + i, row + i + 1), from[i]);
          break;
        }
        case Step::Kind::kGatherRow: {
          const double* from = inputs_[static_cast<size_t>(step.index)].data();
          const int32_t* columns = driver().column_indexes() + driver().row_offsets()[row];
          double* to = Locate(scratch, step.to, row).cells;
          for (int64_t e = 0, count = Count(row, row_end); e < count; ++e) to[e] = from[columns[e]];
          break;
        }
        case Step::Kind::kFoldRows: FoldRows(scratch, step, row, rows); break;
        case Step::Kind::kMultiply: Multiply(scratch, step, padded_[s], row, row_end); break;
        case Step::Kind::kRoot:
          if (payload != nullptr) AddToRoot(scratch, step, row, rows, row_in_panel, payload);
          break;
      }
    }
  }

  static bool IsByEntry(const TileRef& ref) {
    return ref.kind == TileRef::Kind::kDriver || ref.kind == TileRef::Kind::kPattern;
  }

  void CallRegion(Scratch& scratch, const Step& step, int64_t row, int64_t rows, int64_t row_in_panel, double* payload) const {
    scratch.inputs.clear();
    scratch.input_strides.clear();
    scratch.outputs.clear();
    scratch.output_strides.clear();
    for (const RegionOperand& operand : step.operands) {
      Place place;
      switch (operand.from) {
        case RegionOperand::From::kTile: place = Locate(scratch, operand.tile, row); break;
        case RegionOperand::From::kWhole:
          place.cells = const_cast<double*>(inputs_[static_cast<size_t>(operand.index)].data());
          break;
        case RegionOperand::From::kRepeated:
          place = {const_cast<double*>(repeated_[static_cast<size_t>(operand.index)].data()), step.columns};
          break;
        case RegionOperand::From::kScalar:
          place.cells = const_cast<double*>(&scalars_[static_cast<size_t>(operand.index)]);
          break;
      }
      scratch.inputs.push_back(place.cells);
      scratch.input_strides.push_back(place.stride);
    }
    const int64_t base = (row_in_panel * step.columns) & 7;
    int folded = -1;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int root = step.output_roots[i];
      if (root < 0) {
        const Place place = Locate(scratch, step.outputs[i], row);
        scratch.outputs.push_back(place.cells);
        scratch.output_strides.push_back(place.stride);
        continue;
      }
      scratch.outputs.push_back(payload + program_.roots[static_cast<size_t>(root)].offset);
      scratch.output_strides.push_back(0);
      if (program_.roots[static_cast<size_t>(root)].kind == TileRoot::Kind::kFull) folded = root;
    }
    RegionCall call{.rows = step.flat ? 1 : rows,
                    .columns = step.by_entries ? Count(row, row + rows) : step.flat ? rows * step.columns : step.columns,
                    .inputs = scratch.inputs.data(),
                    .input_strides = scratch.input_strides.data(),
                    .outputs = scratch.outputs.data(),
                    .output_strides = scratch.output_strides.data(),
                    .stream = step.stream};
    const RegionCode& code = *program_.codes[static_cast<size_t>(step.index)];
    if (folded < 0 || base == 0) return code.Run(call);
    // All folds of a region are over cells of one shape: they share the base.
    alignas(64) double lanes[FusedOperator::kMaxRoots][8];
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (const int root = step.output_roots[i]; root >= 0) {
        for (int64_t j = 0; j < 8; ++j) lanes[root][j] = payload[program_.roots[static_cast<size_t>(root)].offset + ((j + base) & 7)];
        scratch.outputs[i] = lanes[root];
      }
    code.Run(call);
    for (const int root : step.output_roots)
      if (root >= 0)
        for (int64_t j = 0; j < 8; ++j) payload[program_.roots[static_cast<size_t>(root)].offset + ((j + base) & 7)] = lanes[root][j];
  }

  int64_t Count(int64_t row, int64_t row_end) const { return driver().row_offsets()[row_end] - driver().row_offsets()[row]; }

  // A matrix of the driver's shape at the driver's entries. A CSR row is spread out first: faster than merging.
  void GatherCells(Scratch& scratch, const Step& step, int64_t row, int64_t row_end) const {
    const Matrix& x = inputs_[static_cast<size_t>(step.index)];
    const int64_t* offsets = driver().row_offsets();
    const int32_t* columns = driver().column_indexes();
    double* out = Locate(scratch, step.to, row).cells;
    if (!x.IsSparse()) {
      for (int64_t i = row; i < row_end; ++i) {
        const double* cells = x.data() + i * x.columns();
        for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) *out++ = cells[columns[e]];
      }
      return;
    }
    if (scratch.row.empty()) scratch.row.assign(static_cast<size_t>(x.columns()), 0.0);
    double* spread = scratch.row.data();
    for (int64_t i = row; i < row_end; ++i) {
      if (offsets[i] == offsets[i + 1]) continue;
      const int64_t first = x.row_offsets()[i], last = x.row_offsets()[i + 1];
      for (int64_t e = first; e < last; ++e) spread[x.column_indexes()[e]] = x.values()[e];
      for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) *out++ = spread[columns[e]];
      for (int64_t e = first; e < last; ++e) spread[x.column_indexes()[e]] = 0.0;
    }
  }

  void Densify(Scratch& scratch, const Step& step, int64_t row, int64_t row_end) const {
    const Matrix& x = inputs_[static_cast<size_t>(step.index)];
    double* out = Locate(scratch, step.to, row).cells;
    std::memset(out, 0, static_cast<size_t>((row_end - row) * step.columns) * sizeof(double));
    for (int64_t i = row; i < row_end; ++i, out += step.columns)
      for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e) out[x.column_indexes()[e]] = x.values()[e];
  }

  void FoldRows(Scratch& scratch, const Step& step, int64_t row, int64_t rows) const {
    const Place from = Locate(scratch, step.from, row);
    double* out = Locate(scratch, step.to, row).cells;
    if (step.aggregate == AggregateKind::kIndexMax || step.aggregate == AggregateKind::kIndexMin)
      return simd::IndexOfExtreme(step.aggregate == AggregateKind::kIndexMax, from.cells, rows, step.columns, out);
    if (IsByEntry(step.from))
      SumRows(EntriesAt(from.cells, row), rows, out);
    else
      simd::FoldRows(FoldOf(step.aggregate), from.cells, rows, from.stride, step.columns, out);
    if (step.aggregate == AggregateKind::kMean)
      for (int64_t i = 0; i < rows; ++i) out[i] = out[i] / static_cast<double>(step.columns);
  }

  void Multiply(Scratch& scratch, const Step& step, const PaddedColumns& padded, int64_t row, int64_t row_end) const {
    const int64_t k = step.columns, rows = row_end - row;
    double* out = Locate(scratch, step.to, row).cells;
    const Matrix& right = inputs_[static_cast<size_t>(step.right)];
    if (step.index >= 0) {
      const Matrix& left = inputs_[static_cast<size_t>(step.index)];
      if (k <= kFewColumns) return MultiplyNarrowRows(left, padded, row, row_end, out - row * k);
      std::fill_n(out, rows * k, 0.0);
      MultiplySparseInto(left, right, row, row_end, 0, left.columns(), out);
      for (int64_t i = 0; i < rows * k; ++i) out[i] = out[i] + 0.0;
      return;
    }
    const Place from = Locate(scratch, step.from, row);
    if (IsByEntry(step.from)) return MultiplyEntries(EntriesAt(from.cells, row), rows, right, padded, out);
    if (k <= kFewColumns)
      return simd::MultiplyRows(from.cells, rows, from.stride, right.rows(), padded.cells.data(), padded.stride, k, out, k);
    Run(Gemm{.m = rows, .n = k, .k = right.rows(), .a = from.cells, .a_row = from.stride, .b = right.data(), .b_row = k, .c = out,
             .c_row = k, .canonical = true});
  }

  void AddToRoot(Scratch& scratch, const Step& step, int64_t row, int64_t rows, int64_t row_in_panel, double* payload) const {
    const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
    double* out = payload + root.offset;
    if (step.right >= 0) {
      const Place y = Locate(scratch, step.from_right, row);
      const Matrix& left = inputs_[static_cast<size_t>(step.right)];
      return AddSparseProduct(root, {left.row_offsets() + row, left.column_indexes(), left.values()}, rows, y.cells, y.stride,
                              row_in_panel & 7, out);
    }
    const Place x = Locate(scratch, step.from, row);
    if (IsByEntry(step.from)) {
      const Entries entries = EntriesAt(x.cells, row);
      if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
        return AddEntries(root, entries, rows, row_in_panel, out);
      const Place y = Locate(scratch, step.from_right, row);
      return AddSparseProduct(root, entries, rows, y.cells, y.stride, row_in_panel & 7, out);
    }
    switch (root.kind) {
      case TileRoot::Kind::kFull:
        return WithLanes(out, (row_in_panel * root.n) & 7,
                         [&](double* lanes) { simd::FoldFlat(FoldOf(root.aggregate), x.cells, rows * root.n, lanes); });
      case TileRoot::Kind::kColumns:
        if (root.n <= 8) return simd::FoldNarrow(FoldOf(root.aggregate), x.cells, rows, root.n, out);
        return simd::FoldColumns(FoldOf(root.aggregate), x.cells, rows, x.stride, root.n, out);
      default: {
        const Place y = Locate(scratch, step.from_right, row);
        return AddProduct(root, x.cells, x.stride, y.cells, y.stride, rows, row_in_panel & 7, out);
      }
    }
  }

  const TileProgram& program_;
  const KernelCall& call_;
  std::vector<Matrix> inputs_;
  std::vector<double> scalars_;
  std::vector<AlignedArray> repeated_;
  std::vector<PaddedColumns> padded_;  // By step.
  std::vector<int64_t> buffer_offsets_;
  int64_t scratch_doubles_ = 0;
  int64_t rows_ = 0;
  int64_t tile_rows_ = 0;
  int64_t entries_ = 0;         ///< Room of a kPattern buffer.
  double* result_ = nullptr;
  std::mutex mutex_;
  std::vector<Scratch> free_;
};

}  // namespace

Result<std::vector<double>> BodyScalars(const TileProgram& program, const KernelCall& call) {
  const Graph& body = program.fused.body;
  std::vector<Scalar> scalars(body.nodes.size());
  std::vector<double> numbers(body.nodes.size(), 0.0);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body[id];
    const auto i = static_cast<size_t>(id);
    if (!node.info.IsScalar() || program.roles.nodes[i] != BodyRole::kScalar) continue;
    if (node.Is("literal")) {
      scalars[i] = *node.FindAttribute("value");
    } else if (node.Is("variable")) {
      scalars[i] = call.inputs[static_cast<size_t>(std::stoi(node.Text("name")))]->scalar();
    } else {
      std::vector<const Scalar*> operands;
      for (NodeId input : node.inputs) operands.push_back(input == kNoNode ? nullptr : &scalars[static_cast<size_t>(input)]);
      HEDDLE_ASSIGN_OR_RETURN(scalars[i], EvaluateScalar(node, operands));
    }
    if (!scalars[i].IsString()) numbers[i] = scalars[i].AsDouble();
  }
  return numbers;
}

Result<Value> FinishRoots(const TileProgram& program, const Matrix& nodes, const KernelCall& call) {
  const Graph& body = program.fused.body;
  if (program.roots.size() == 1) {
    // The root's own last phase: the payloads are its own.
    const Node& root = body[program.roots[0].node];
    std::vector<ValueInfo> infos;
    for (NodeId input : root.inputs) infos.push_back(body[input].info);
    const Value value(nodes);
    const Value* const inputs[] = {&value};
    KernelCall finish{.node = root, .phase = "finish", .inputs = inputs, .input_infos = infos, .total_rows = program.roles.rows,
                      .context = call.context};
    return FindOperator(root.op)->run(finish);
  }
  HEDDLE_ASSIGN_OR_RETURN(const AlignedArray root, JoinNodes(program.reduction, nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(1, static_cast<int64_t>(program.roots.size())));
  for (size_t r = 0; r < program.roots.size(); ++r) {
    const TileRoot& part = program.roots[r];
    double value = simd::FoldLanes(FoldOf(part.aggregate), root.data() + part.offset);
    if (part.aggregate == AggregateKind::kMean)
      value = value / (static_cast<double>(program.roles.rows) * static_cast<double>(part.n));
    result.mutable_data()[r] = value;
  }
  return Value(std::move(result));
}

Result<Value> RunTiles(const TileProgram& program, const KernelCall& call) {
  if (call.phase == "finish") return FinishRoots(program, call.inputs[0]->matrix(), call);
  TileRun run(program, call);
  HEDDLE_RETURN_IF_ERROR(run.Prepare());
  if (program.roots.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, run.RunRows());
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, run.RunPanels());
  if (call.phase == "partial") return Value(std::move(nodes));
  return FinishRoots(program, nodes, call);
}

}  // namespace heddle::ops
