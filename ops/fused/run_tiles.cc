// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run_tiles.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "core/panels.h"
#include "ops/elementwise_sparse.h"
#include "ops/fused/dense_rows.h"
#include "ops/fused/entries.h"
#include "ops/fused/gather_cells.h"
#include "ops/fused/paired_product.h"
#include "ops/fused/thread_slots.h"
#include "ops/fused/tile_inputs.h"
#include "ops/fused/tile_sizes.h"
#include "ops/matmul.h"
#include "ops/matmul_gemm.h"
#include "ops/operator.h"
#include "ops/parallel.h"
#include "ops/sampled_product.h"
#include "ops/simd/matmul.h"
#include "ops/single_precision.h"

namespace heddle::ops {
namespace {

// Leaves of about so many cells are one task of a reduction.
constexpr int64_t kTaskCells = 1 << 18;

// What all tiles of one run share.
class TileRun {
 public:
  TileRun(const TileProgram& program, const KernelCall& call)
      : program_(program), call_(call), pair_(FindPairedProduct(program)), sparse_pair_(FindSparsePair(program)) {}

  Status Prepare() {
    HEDDLE_ASSIGN_OR_RETURN(scalars_, BodyScalars(program_, call_));
    HEDDLE_ASSIGN_OR_RETURN(TileInputs inputs, MakeTileInputs(program_, call_));
    inputs_ = std::move(inputs.doubles);
    singles_ = std::move(inputs.singles);
    rows_ = driver().rows();
    sizes_ = ChooseTileSizes(program_, pair_, inputs_);
    for (const TileProgram::Repeated& repeated : program_.repeated) {
      AlignedArray cells(sizes_.rows * repeated.columns + 8);
      const double* row = inputs_[static_cast<size_t>(repeated.input)].data();
      for (int64_t i = 0; i < sizes_.rows; ++i) std::copy_n(row, repeated.columns, cells.data() + i * repeated.columns);
      repeated_.push_back(std::move(cells));
    }
    padded_.resize(program_.steps.size());
    packed_.resize(program_.steps.size());
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      if (step.kind != Step::Kind::kMultiply) continue;
      const Matrix& right = inputs_[static_cast<size_t>(step.right)];
      if (step.columns <= kFewColumns) padded_[s] = PadColumns(right);
      if (PacksRight(step) && right.cells() > 0) packed_[s] = std::make_unique<PackedRight>(right.data(), right.rows(), right.columns());
    }
    int64_t offset = 0;
    for (int64_t columns : program_.buffers) {
      buffer_offsets_.push_back(offset);
      offset += (sizes_.rows * columns + 15) / 8 * 8;  // Whole lines, and room for RepeatEach's overrun.
    }
    scratch_doubles_ = offset;
    return OkStatus();
  }

  int64_t rows() const { return rows_; }

  Result<Matrix> RunRows() {
    const ValueInfo& info = program_.fused.body[program_.fused.roots[0]].info;
    const bool entries = HasPattern();
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, entries ? SamePattern(driver()) : Matrix::Dense(rows_, info.shape.columns, info.element_type));
    result_ = result.mutable_data();
    // Tasks are runs of whole groups of rows.
    const int64_t least = program_.by_pattern ? kRowsTogether : sizes_.rows;
    const int64_t grain = std::max(least, (int64_t{1} << 17) / sizes_.row_work / least * least);
    ParallelFor(CeilDivide(rows_, grain), 1, [&](int64_t begin, int64_t end) {
      std::unique_ptr<Scratch> scratch = Take();
      const int64_t last = std::min(rows_, end * grain);
      for (int64_t row = begin * grain, next; row < last && !IsCancelled(call_.context.cancelled); row = next) {
        next = TileEnd(row, last);
        RunTile(*scratch, row, next, 0, nullptr);
      }
      scratches_.GiveBack(std::move(scratch));
    });
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    if (entries) {
      HEDDLE_ASSIGN_OR_RETURN(result, DropZeros(result));
      return info.element_type == ElementType::kFloat32 ? Narrow(result) : result;
    }
    if (info.format == Format::kSparse) return ToSparse(result);
    return result;
  }

  Result<Matrix> RunPanels() {
    const bool whole = call_.phase.empty();
    const int64_t span_begin = whole ? 0 : call_.row_begin, span_end = whole ? rows_ : call_.row_end;
    const int64_t height = program_.panel_rows;
    Reduction reduction = program_.reduction;
    const int64_t chunks = program_.chunks;
    reduction.leaf_cells = CeilDivide(height * sizes_.row_work, chunks);
    reduction.cancelled = call_.context.cancelled;
    const int64_t begin = span_begin == span_end ? 0 : CeilDivide(span_begin, height);
    const int64_t end = span_begin == span_end ? 0 : CeilDivide(span_end, height);
    const bool several = HoldsSeveralLeaves(program_);
    const bool sums_held = several && chunks == 1 && program_.roots.size() == 1 && SumsByColumn(program_.roots[0]);
    if (several && chunks == 1)
      reduction.leaf_cells = std::min(reduction.leaf_cells, kTaskCells / LeavesTogether(sizes_, driver(), end - begin));
    const int64_t most_leaves = std::max<int64_t>(1, kTaskCells / std::max<int64_t>(reduction.leaf_cells, 1));
    if (const Step* root = RootOfFewPlaces(program_, inputs_, end - begin); root != nullptr)
      return ReduceSparseLeaves(reduction, begin, end, [&](int64_t leaf, SparsePayload& payload) {
        const int64_t first = leaf * height - span_begin, last = std::min(span_end, (leaf + 1) * height) - span_begin;
        std::unique_ptr<Scratch> scratch = Take();
        for (int64_t row = first, next; row < last && !IsCancelled(reduction.cancelled); row = next) {
          next = TileEnd(row, last);
          RunTile(*scratch, row, next, row - first, nullptr);
          AddTileToPlaces(*scratch, *root, row, next - row, payload);
        }
        scratches_.GiveBack(std::move(scratch));
      });
    const auto add_leaf = [&](Scratch& scratch, int64_t leaf, double* payload) {
      const int64_t panel = leaf / chunks;
      const int64_t first = panel * height - span_begin, last = std::min(span_end, (panel + 1) * height) - span_begin;
      if (chunks > 1 || (several && Count(first, last) <= sizes_.entries)) {
        if (first < scratch.held_begin || last > scratch.held_end) {
          // As many leaves as the buffers have room for, up to the end of what is one task.
          const int64_t stop_panel = CeilDivide((leaf / most_leaves + 1) * most_leaves, chunks);
          const int64_t stop = std::min(span_end, stop_panel * height) - span_begin;
          int64_t hold = last;
          while (several && hold < stop && Count(first, std::min(stop, hold + height)) <= sizes_.entries) hold = std::min(stop, hold + height);
          RunTile(scratch, first, hold, 0, nullptr);
          scratch.held_begin = first;
          scratch.held_end = hold;
          if (sums_held) AddHeldLeaves(scratch, height, reduction.identity);
        }
        if (sums_held) {
          std::copy_n(scratch.held_sums.data() + (first - scratch.held_begin) / height * 8, 8, payload);
          return true;
        }
        std::fill_n(payload, reduction.width, reduction.identity);
        return AddHeldEntries(scratch, first, last, leaf % chunks, payload);
      }
      std::fill_n(payload, reduction.width, reduction.identity);
      scratch.held_begin = scratch.held_end = 0;
      for (int64_t row = first, next; row < last && !IsCancelled(reduction.cancelled); row = next) {
        next = TileEnd(row, last);
        RunTile(scratch, row, next, row - first, payload);
      }
      AddWaiting(scratch, payload);
      return true;
    };
    return ReduceTasks(reduction, begin * chunks, end * chunks, [&]() -> LeafFunction {
      return [&add_leaf, scratch = TakeShared()](int64_t leaf, double* payload) { return add_leaf(*scratch, leaf, payload); };
    });
  }

 private:
  // Memory of one thread's tile.
  struct Scratch {
    AlignedArray buffers, patterns;
    int64_t entries = 0;                    // Room of each of `patterns`.
    std::map<int, SpreadRow> spread_rows;  // By input.
    RowPattern pattern;                    // Of the tile's rows: the driver's, or what kIntersect left of it.
    int64_t pattern_row = 0;               // Its first row.
    std::vector<int64_t> offsets;          // Of kIntersect.
    std::vector<int32_t> columns;
    std::vector<const double*> inputs;
    std::vector<double*> outputs;
    const double* waiting = nullptr;  // Rows of X whose part of a paired root is still to be added.
    int64_t waiting_rows = 0;
    simd::Ahead ahead;  // Of the next tile, while products of this one fetch it.
    std::vector<int64_t> input_strides, output_strides;
    int64_t held_begin = 0, held_end = 0;  // Rows whose values at the driver's entries are in `patterns`.
    std::vector<double> held_sums;         // Payloads of their leaves, where SumsByColumn.
  };
  struct Place {
    double* cells = nullptr;
    int64_t stride = 0;
  };

  std::unique_ptr<Scratch> Take() {
    std::unique_ptr<Scratch> scratch = scratches_.Take();
    if (scratch != nullptr) return scratch;
    scratch = std::make_unique<Scratch>();
    scratch->buffers = AlignedArray(scratch_doubles_);
    return scratch;
  }
  // Given back when its last owner goes.
  std::shared_ptr<Scratch> TakeShared() {
    return {Take().release(), [this](Scratch* scratch) { scratches_.GiveBack(std::unique_ptr<Scratch>(scratch)); }};
  }
  void MakeRoom(Scratch& scratch, int64_t entries) const {
    if (entries + kGatherOverrun <= scratch.entries) return;
    scratch.entries = (std::max(entries, std::min(sizes_.entries, driver().stored())) + kGatherOverrun + 7) / 8 * 8;
    scratch.patterns = AlignedArray(program_.patterns * scratch.entries);
  }

  const Matrix& driver() const { return inputs_[static_cast<size_t>(program_.fused.driver)]; }
  bool HasPattern() const {
    return program_.by_pattern && program_.fused.body[program_.fused.roots[0]].info.shape.columns == driver().columns();
  }
  // Rows from `row` on, as far as the tile goes.
  static RowPattern PatternAt(const Scratch& scratch, int64_t row) {
    RowPattern pattern = scratch.pattern;
    pattern.offsets += row - scratch.pattern_row;
    return pattern;
  }
  static Entries EntriesAt(const Scratch& scratch, const double* values, int64_t row) {
    // Values of a tile begin with its first entry.
    const RowPattern pattern = PatternAt(scratch, row);
    return {pattern.offsets, pattern.columns, values - pattern.offsets[0]};
  }

  int64_t TileEnd(int64_t row, int64_t last) const {
    int64_t end = std::min(last, row + sizes_.rows);
    if (!program_.by_pattern) return end;
    // As many rows as have so many entries, and one group (or row) at least.
    const int64_t* offsets = driver().row_offsets();
    if (offsets[end] - offsets[row] <= sizes_.entries) return end;
    const int64_t rows = std::upper_bound(offsets + row, offsets + end, offsets[row] + sizes_.entries) - (offsets + row) - 1;
    return std::min(last, row + std::max(rows / sizes_.rows_together, int64_t{1}) * sizes_.rows_together);
  }

  void AddTileToPlaces(Scratch& scratch, const Step& step, int64_t row, int64_t rows, SparsePayload& payload) const {
    const TileRoot& root = program_.roots[0];
    const Place y = root.kind == TileRoot::Kind::kColumns ? Place{} : Locate(scratch, step.from_right, row);
    if (step.right >= 0) {
      const Matrix& x = inputs_[static_cast<size_t>(step.right)];
      return AddToPlaces(root, {x.row_offsets() + row, x.column_indexes(), x.values()}, rows, y.cells, y.stride, payload);
    }
    AddToPlaces(root, EntriesAt(scratch, Locate(scratch, step.from, row).cells, row), rows, y.cells, y.stride, payload);
  }

  void AddHeldLeaves(Scratch& scratch, int64_t height, double identity) const {
    const auto root = std::find_if(program_.steps.begin(), program_.steps.end(), [](const Step& step) { return step.kind == Step::Kind::kRoot; });
    const int64_t rows = scratch.held_end - scratch.held_begin;
    scratch.held_sums.assign(static_cast<size_t>(8 * CeilDivide(rows, height)), identity);
    AddEntriesOfLeaves(EntriesAt(scratch, Locate(scratch, root->from, scratch.held_begin).cells, scratch.held_begin), rows, height,
                       scratch.held_sums.data());
  }

  // False if a chunk of a row holds nothing.
  bool AddHeldEntries(Scratch& scratch, int64_t first, int64_t last, int64_t chunk, double* payload) const {
    bool any = program_.chunks == 1;
    for (const Step& step : program_.steps) {
      if (step.kind != Step::Kind::kRoot) continue;
      const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
      Entries entries = EntriesAt(scratch, Locate(scratch, step.from, scratch.held_begin).cells, scratch.held_begin);
      entries.offsets += first - scratch.held_begin;
      int64_t of_chunk[2];
      if (program_.chunks > 1) {
        const int32_t *const begin = entries.columns + entries.offsets[0], *const end = entries.columns + entries.offsets[1];
        const int32_t* const from = std::lower_bound(begin, end, chunk * kColumnChunk);
        of_chunk[0] = from - entries.columns;
        of_chunk[1] = std::lower_bound(from, end, (chunk + 1) * kColumnChunk) - entries.columns;
        any |= of_chunk[0] < of_chunk[1];
        entries.offsets = of_chunk;
      }
      AddEntries(root, entries, last - first, 0, payload + root.offset);
    }
    return any;
  }

  // Floats, too, go by the pointer of doubles that a region's call has.
  static double* CellsAt(double* cells, ElementType type, int64_t cell) {
    return type == ElementType::kFloat64 ? cells + cell : reinterpret_cast<double*>(reinterpret_cast<float*>(cells) + cell);
  }

  // Cells of a value for the rows from `row` on; inputs are only read through it.
  Place Locate(Scratch& scratch, const TileRef& ref, int64_t row) const {
    switch (ref.kind) {
      case TileRef::Kind::kInput: {
        const Matrix& input = (program_.single ? singles_ : inputs_)[static_cast<size_t>(ref.index)];
        return {CellsAt(const_cast<double*>(input.data()), input.element_type(), row * input.columns() + ref.column), input.columns()};
      }
      case TileRef::Kind::kBuffer:
        return {scratch.buffers.data() + buffer_offsets_[static_cast<size_t>(ref.index)] + ref.column,
                program_.buffers[static_cast<size_t>(ref.index)]};
      case TileRef::Kind::kDriver: return {const_cast<double*>(driver().values()) + driver().row_offsets()[row], 1};
      case TileRef::Kind::kPattern: return {scratch.patterns.data() + ref.index * scratch.entries, 1};
      case TileRef::Kind::kResult: {
        if (HasPattern()) return {result_ + (driver().row_offsets()[row] - driver().row_offsets()[0]), 1};
        const int64_t columns = program_.fused.body[program_.fused.roots[0]].info.shape.columns;
        return {CellsAt(result_, program_.single ? ElementType::kFloat32 : ElementType::kFloat64, row * columns + ref.column), columns};
      }
      case TileRef::Kind::kNone: break;
    }
    return {};
  }

  void RunTile(Scratch& scratch, int64_t row, int64_t row_end, int64_t row_in_panel, double* payload) const {
    const int64_t rows = row_end - row;
    if (program_.by_pattern) {
      MakeRoom(scratch, Count(row, row_end));
      scratch.pattern = PatternFrom(driver(), row);
      scratch.pattern_row = row;
    }
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      switch (step.kind) {
        case Step::Kind::kRegion: CallRegion(scratch, step, row, rows, row_in_panel, payload); break;
        case Step::Kind::kDensify: Densify(scratch, step, row, row_end); break;
        case Step::Kind::kWiden: {
          const int64_t cells = rows * step.columns;
          double* to = Locate(scratch, step.to, row).cells;
          const Matrix& input = singles_[static_cast<size_t>(step.index)];
          SelectedElementwiseKernels().widen(input.data<float>() + row * step.columns, to, cells);
          break;
        }
        case Step::Kind::kRound: {
          const bool by_entries = step.to.kind == TileRef::Kind::kPattern || (step.to.kind == TileRef::Kind::kResult && HasPattern());
          const int64_t cells = by_entries ? scratch.pattern.Count(rows) : rows * step.columns;
          double* to = Locate(scratch, step.to, row).cells;
          SelectedElementwiseKernels().Of(UnaryCode::kRoundToSingle)(to, to, cells, false);
          break;
        }
        case Step::Kind::kNarrow: {
          const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
          for (int64_t i = 0; i < rows; ++i)
            SelectedElementwiseKernels().narrow(from.cells + i * from.stride, reinterpret_cast<float*>(to.cells) + i * to.stride, step.columns);
          break;
        }
        case Step::Kind::kExpand: {
          const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
          SelectedElementwiseKernels().repeat(from.cells, rows, step.columns, to.cells);
          break;
        }
        case Step::Kind::kCopy: {
          const Place from = Locate(scratch, step.from, row), to = Locate(scratch, step.to, row);
          CopyRows(from.cells, from.stride, rows, step.columns, to.cells, to.stride);
          break;
        }
        case Step::Kind::kSample: {
          double* to = Locate(scratch, step.to, row).cells;
          SampleRows(driver(), inputs_[static_cast<size_t>(step.index)], inputs_[static_cast<size_t>(step.right)], row, row_end,
                           to - (driver().row_offsets()[row] - driver().row_offsets()[0]));
          break;
        }
        case Step::Kind::kIntersect: Intersect(scratch, step, row, row_end); break;
        case Step::Kind::kGatherCells:
          GatherCells(scratch.pattern, inputs_[static_cast<size_t>(step.index)], row, row_end, scratch.spread_rows[step.index],
                      Locate(scratch, step.to, row).cells);
          break;
        case Step::Kind::kGatherColumn: {
          const double* from = Locate(scratch, step.from, row).cells;
          double* to = Locate(scratch, step.to, row).cells;
          for (int64_t i = 0; i < rows; ++i) to = std::fill_n(to, PatternAt(scratch, row + i).Count(1), from[i]);
          break;
        }
        case Step::Kind::kGatherRow: {
          const double* from = inputs_[static_cast<size_t>(step.index)].data();
          const int32_t* columns = scratch.pattern.columns + scratch.pattern.offsets[0];
          double* to = Locate(scratch, step.to, row).cells;
          for (int64_t e = 0, count = scratch.pattern.Count(rows); e < count; ++e) to[e] = from[columns[e]];
          break;
        }
        case Step::Kind::kFoldRows: FoldRows(scratch, step, row, rows); break;
        case Step::Kind::kMultiply:
          if (static_cast<int>(s) == pair_.multiply && scratch.waiting_rows >= rows)
            MultiplyAndAddWaiting(scratch, step, padded_[s], row, rows, payload);
          else if (static_cast<int>(s) == sparse_pair_.multiply && payload != nullptr)
            MultiplyAndAddRows(inputs_[static_cast<size_t>(step.index)], padded_[s].Column(0), row, row_end, Locate(scratch, step.to, row).cells,
                               payload + program_.roots[static_cast<size_t>(program_.steps[static_cast<size_t>(sparse_pair_.root)].index)].offset);
          else
            Multiply(scratch, s, row, row_end);
          break;
        case Step::Kind::kRoot:
          if (payload == nullptr || static_cast<int>(s) == sparse_pair_.root) break;
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
                    .columns = step.by_entries ? scratch.pattern.Count(rows) : step.flat ? rows * step.columns : step.columns,
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

  void Intersect(Scratch& scratch, const Step& step, int64_t row, int64_t row_end) const {
    scratch.offsets.resize(static_cast<size_t>(row_end - row) + 1);
    scratch.columns.resize(static_cast<size_t>(Count(row, row_end) + kGatherOverrun));
    std::vector<const Matrix*> others;
    std::vector<SpreadRow*> spreads;
    std::vector<double*> values;
    for (int input : step.inputs) {
      others.push_back(&inputs_[static_cast<size_t>(input)]);
      spreads.push_back(&scratch.spread_rows[input]);
    }
    for (const TileRef& place : step.outputs) values.push_back(Locate(scratch, place, row).cells);
    IntersectRows(driver(), others, row, row_end, spreads, {scratch.offsets.data(), scratch.columns.data(), values.data()});
    scratch.pattern = {scratch.offsets.data(), scratch.columns.data(), scratch.offsets.back()};
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
      SumRows(EntriesAt(scratch, from.cells, row), rows, out);
    else
      simd::FoldRows(FoldOf(step.aggregate), from.cells, rows, from.stride, step.columns, out);
    if (step.aggregate == AggregateKind::kMean)
      for (int64_t i = 0; i < rows; ++i) out[i] = out[i] / static_cast<double>(step.columns);
  }

  // What a product of rows at x fetches of the next tile; null: nothing.
  static simd::Ahead* ToFetch(Scratch& scratch, const Step& step, const Place& x, int64_t rows) {
    if (step.fetch == Step::Fetch::kNothing) return nullptr;
    if (step.fetch != Step::Fetch::kOtherHalf)
      scratch.ahead = simd::Ahead(x.cells + rows * x.stride, step.fetch == Step::Fetch::kAll ? 0 : 1);
    return &scratch.ahead;
  }

  void Multiply(Scratch& scratch, size_t s, int64_t row, int64_t row_end) const {
    const Step& step = program_.steps[s];
    const PaddedColumns& padded = padded_[s];
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
    if (IsByEntry(step.from)) return MultiplyEntries(EntriesAt(scratch, from.cells, row), rows, right, padded, out);
    if (k <= kFewColumns)
      return simd::MultiplyRows(from.cells, rows, from.stride, right.rows(), padded.cells.data(), padded.stride, k, out, k,
                                ToFetch(scratch, step, from, rows));
    if (simd::IsSkinny(rows, right.rows(), k))
      return simd::MultiplySkinny(from.cells, rows, from.stride, right.rows(), right.data(), k, out, k, ToFetch(scratch, step, from, rows));
    Gemm gemm{.m = rows, .n = k, .k = right.rows(), .a = from.cells, .a_row = from.stride, .b = right.data(), .b_row = k,
              .packed = packed_[s].get(), .c = out, .c_row = k, .canonical = true};
    if (step.fetch != Step::Fetch::kNothing) {
      const Place next = Locate(scratch, step.fetched, row_end);
      const int64_t cells = rows * next.stride / (program_.single ? 2 : 1);
      gemm.ahead = next.cells;
      gemm.ahead_cells = step.fetch == Step::Fetch::kAll ? cells : cells / 2;
      if (step.fetch != Step::Fetch::kAll) scratch.ahead = simd::Ahead(gemm.ahead + gemm.ahead_cells, 1);  // The other half.
    }
    Run(gemm);
  }

  // The product of a tile and the root of the tile before it.
  void MultiplyAndAddWaiting(Scratch& scratch, const Step& step, const PaddedColumns& padded, int64_t row, int64_t rows,
                             double* payload) const {
    const Step& root = program_.steps[static_cast<size_t>(pair_.root)];
    const Place x = Locate(scratch, step.from, row);
    simd::MultiplyRowsAndColumns({.n = root.columns, .stride = x.stride, .x = x.cells, .rows = rows, .v = padded.cells.data(),
                                  .out = Locate(scratch, step.to, row).cells, .previous = scratch.waiting,
                                  .previous_rows = scratch.waiting_rows, .w = Locate(scratch, root.from_right, row).cells,
                                  .columns = payload + program_.roots[static_cast<size_t>(root.index)].offset});
    scratch.waiting_rows = 0;
  }
  // The last root of a leaf, which no further product took along.
  void AddWaiting(Scratch& scratch, double* payload) const {
    if (scratch.waiting_rows == 0) return;
    const Step& step = program_.steps[static_cast<size_t>(pair_.root)];
    const Place x = Locate(scratch, step.from, 0), y = Locate(scratch, step.from_right, 0);
    const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
    AddProduct(root, scratch.waiting, x.stride, y.cells, y.stride, scratch.waiting_rows, nullptr, 0, payload + root.offset);
    scratch.waiting_rows = 0;
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
      const Entries entries = EntriesAt(scratch, x.cells, row);
      if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
        return AddEntries(root, entries, rows, row_in_panel, out);
      const Place y = Locate(scratch, step.from_right, row);
      return AddSparseProduct(root, entries, rows, y.cells, y.stride, row_in_panel & 7, out);
    }
    if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
      return AddRows(root, x.cells, x.stride, rows, row_in_panel, out);
    const Place y = Locate(scratch, step.from_right, row);
    AddProduct(root, x.cells, x.stride, y.cells, y.stride, rows, ToFetch(scratch, step, x, rows), row_in_panel & 7, out);
  }

  const TileProgram& program_;
  const KernelCall& call_;
  const PairedProduct pair_, sparse_pair_;
  std::vector<Matrix> inputs_;   // As doubles, but for rows that are only read as `singles_`.
  std::vector<Matrix> singles_;  // Floats of the inputs that tiles read.
  std::vector<double> scalars_;
  std::vector<AlignedArray> repeated_;
  std::vector<PaddedColumns> padded_;                 // By step.
  std::vector<std::unique_ptr<PackedRight>> packed_;  // Likewise.
  std::vector<int64_t> buffer_offsets_;
  int64_t scratch_doubles_ = 0;
  int64_t rows_ = 0;
  TileSizes sizes_;
  double* result_ = nullptr;
  ThreadSlots<Scratch> scratches_;
};

}  // namespace

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
