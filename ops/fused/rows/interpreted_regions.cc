// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "ops/fused/rows/dense_rows.h"
#include "ops/region/region.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

// Cells of one value that are computed at a time: 2 KiB, so that the values of a region stay in the
// first-level cache.
constexpr int64_t kTileCells = 256;
constexpr double kZero = 0.0;

/// Values of one thread: a tile each. Grows, never shrinks.
class Scratch {
 public:
  double* Slot(int slot) { return cells_ + static_cast<int64_t>(slot) * kTileCells; }
  void Reserve(int slots) {
    if (slots <= slots_) return;
    ::operator delete[](cells_, std::align_val_t{64});
    cells_ = static_cast<double*>(
        ::operator new[](static_cast<size_t>(slots * kTileCells) * sizeof(double), std::align_val_t{64}));
    slots_ = slots;
  }
  ~Scratch() { ::operator delete[](cells_, std::align_val_t{64}); }

 private:
  double* cells_ = nullptr;
  int slots_ = 0;
};

/// A value on the current tile: its cells without gaps, or one number for all of them.
struct Value {
  const double* cells = nullptr;
  bool uniform = false;
};

/// A rectangle of the region: rows first_row ..., columns first_column ...; one row, or whole rows.
struct Tile {
  int64_t first_row, rows, first_column, columns;
  int64_t cells() const { return rows * columns; }
};

bool IsUniform(const RegionNode& node, const std::vector<bool>& uniform) {
  if (node.op == RegionOp::kInput) return node.access == Access::kScalar;
  if (node.op == RegionOp::kLiteral) return true;
  const auto is_uniform = [&](int operand) { return uniform[static_cast<size_t>(operand)]; };
  return is_uniform(node.a) && (node.op == RegionOp::kUnary || is_uniform(node.b)) &&
         (node.op != RegionOp::kSelect || is_uniform(node.c));
}

// sums[j mod period] takes the cell j, of cells first ... first + count - 1; first and the period are
// multiples of 8.
void FoldPeriod(simd::Fold fold, const double* cells, int64_t first, int64_t count, int64_t period,
                double* sums) {
  if (period == 8) return simd::FoldFlat(fold, cells, count, sums);
  for (int64_t p = 0; p < count; p += 8)
    simd::FoldFlat(fold, cells + p, std::min<int64_t>(8, count - p), sums + (first + p) % period);
}

class InterpretedCode : public RegionCode {
 public:
  explicit InterpretedCode(const Region& region) : region_(region) {
    for (const RegionNode& node : region_.nodes) uniform_.push_back(IsUniform(node, uniform_));
    AssignSlots();
  }

  void Run(const RegionCall& call) const override;

 private:
  void AssignSlots();
  void RunTile(const RegionCall& call, const Tile& tile, Scratch& scratch, std::vector<Value>& values,
               double* row_lanes) const;
  Value ReadInput(const RegionNode& node, const RegionCall& call, const Tile& tile, double* slot) const;
  void Compute(const RegionNode& node, const std::vector<Value>& values, int64_t n, double* out) const;
  void Write(size_t output, const RegionCall& call, const Tile& tile, Value value, Scratch& scratch,
             double* row_lanes) const;

  Region region_;
  std::vector<bool> uniform_;
  std::vector<int> slots_;  ///< Of each node; nodes whose values are not alive at once share slots.
  int slot_count_ = 1;      ///< Slot 0 is for values on their way out.
};

void InterpretedCode::AssignSlots() {
  const size_t count = region_.nodes.size();
  std::vector<size_t> last_use(count);
  for (size_t i = 0; i < count; ++i) {
    const RegionNode& node = region_.nodes[i];
    last_use[i] = i;
    if (node.op == RegionOp::kInput || node.op == RegionOp::kLiteral) continue;
    for (const int operand : {node.a, node.b, node.c})
      if (operand >= 0) last_use[static_cast<size_t>(operand)] = i;
  }
  for (const RegionOutput& output : region_.outputs) last_use[static_cast<size_t>(output.node)] = count;
  slots_.assign(count, 0);
  std::vector<int> free;
  for (size_t i = 0; i < count; ++i) {
    if (free.empty()) free.push_back(slot_count_++);
    slots_[i] = free.back();
    free.pop_back();
    for (size_t k = 0; k <= i; ++k)
      if (last_use[k] == i) free.push_back(slots_[k]);
  }
}

void InterpretedCode::Run(const RegionCall& call) const {
  thread_local Scratch scratch;
  scratch.Reserve(slot_count_);
  std::vector<Value> values(region_.nodes.size());
  std::vector<double> row_lanes(region_.outputs.size() * 8);
  // Several short rows at a time, or a part of one long row.
  const int64_t columns_at_once = std::min(call.columns, kTileCells);
  const int64_t rows_at_once =
      call.columns > kTileCells ? 1 : std::max<int64_t>(1, kTileCells / std::max<int64_t>(call.columns, 8));
  for (int64_t i = 0; i < call.rows; i += rows_at_once) {
    Tile tile{i, std::min(rows_at_once, call.rows - i), 0, columns_at_once};
    for (size_t o = 0; o < region_.outputs.size(); ++o)
      std::fill_n(row_lanes.begin() + static_cast<int64_t>(o) * 8, 8, simd::StartOf(region_.outputs[o].fold));
    do {
      tile.columns = std::min(columns_at_once, call.columns - tile.first_column);
      RunTile(call, tile, scratch, values, row_lanes.data());
      tile.first_column += tile.columns;
    } while (tile.first_column < call.columns);
    if (columns_at_once == call.columns) continue;
    for (size_t o = 0; o < region_.outputs.size(); ++o)
      if (region_.outputs[o].sink == Sink::kFoldRows)
        call.outputs[o][i] = simd::FoldLanes(region_.outputs[o].fold, &row_lanes[o * 8]);
  }
  for (size_t o = 0; o < region_.outputs.size(); ++o)
    if (region_.outputs[o].is_mean)
      for (int64_t i = 0; i < call.rows; ++i)
        call.outputs[o][i] = call.outputs[o][i] / static_cast<double>(call.columns);
}

Value InterpretedCode::ReadInput(const RegionNode& node, const RegionCall& call, const Tile& tile,
                                 double* slot) const {
  const double* const input = call.inputs[node.input];
  if (node.access == Access::kScalar) return {input, true};
  if (node.access == Access::kPerColumn) {
    if (tile.rows == 1) return {input + tile.first_column, false};
    CopyRows(input + tile.first_column, 0, tile.rows, tile.columns, slot, tile.columns);
    return {slot, false};
  }
  const int64_t stride = call.input_strides[node.input];
  if (node.single) {
    const float* const cells = reinterpret_cast<const float*>(input) + tile.first_row * stride;
    for (int64_t i = 0; i < tile.rows; ++i) {
      double* const row = slot + i * tile.columns;
      if (node.access == Access::kPerRow)
        std::fill_n(row, tile.columns, static_cast<double>(cells[i * stride]));
      else
        SelectedElementwiseKernels().widen(cells + i * stride + tile.first_column, row, tile.columns);
    }
    return {slot, false};
  }
  if (node.access == Access::kPerRow) {
    for (int64_t i = 0; i < tile.rows; ++i)
      std::fill_n(slot + i * tile.columns, tile.columns, input[(tile.first_row + i) * stride]);
    return {slot, false};
  }
  const double* const first = input + tile.first_row * stride + tile.first_column;
  if (tile.rows == 1 || stride == tile.columns) return {first, false};
  CopyRows(first, stride, tile.rows, tile.columns, slot, tile.columns);
  return {slot, false};
}

// out[k] for k < n; the operands of a uniform node are uniform and n is 1.
void InterpretedCode::Compute(const RegionNode& node, const std::vector<Value>& values, int64_t n,
                              double* out) const {
  const ElementwiseKernels& kernels = SelectedElementwiseKernels();
  const Value a = values[static_cast<size_t>(node.a)];
  const Value b = node.b >= 0 ? values[static_cast<size_t>(node.b)] : Value{};
  if (node.op == RegionOp::kUnary) {
    kernels.Of(node.unary)(a.cells, out, n, false);
  } else if (node.op == RegionOp::kSelect) {
    const Value c = values[static_cast<size_t>(node.c)];
    kernels.select(a.cells, a.uniform ? 0 : 1, b.cells, b.uniform ? 0 : 1, c.cells, c.uniform ? 0 : 1, out,
                   n);
  } else {
    const Operands operands = a.uniform == b.uniform ? Operands::kCellsCells
                              : a.uniform            ? Operands::kScalarCells
                                                     : Operands::kCellsScalar;
    kernels.Of(node.binary, operands)(a.cells, b.cells, out, n, false);
    if (node.skips_a) kernels.select(a.cells, a.uniform ? 0 : 1, out, 1, &kZero, 0, out, n);
    if (node.skips_b) kernels.select(b.cells, b.uniform ? 0 : 1, out, 1, &kZero, 0, out, n);
  }
}

void InterpretedCode::RunTile(const RegionCall& call, const Tile& tile, Scratch& scratch,
                              std::vector<Value>& values, double* row_lanes) const {
  for (size_t i = 0; i < region_.nodes.size(); ++i) {
    const RegionNode& node = region_.nodes[i];
    double* const slot = scratch.Slot(slots_[i]);
    const int64_t n = uniform_[i] ? 1 : tile.cells();
    if (node.op == RegionOp::kInput) {
      values[i] = ReadInput(node, call, tile, slot);
    } else if (node.op == RegionOp::kLiteral) {
      values[i] = {&node.literal, true};
    } else {
      Compute(node, values, n, slot);
      values[i] = {slot, uniform_[i]};
    }
    if (!node.drops_negative_zero) continue;
    SelectedElementwiseKernels().Of(BinaryCode::kAdd, Operands::kCellsScalar)(values[i].cells, &kZero, slot,
                                                                              n, false);
    values[i].cells = slot;
  }
  for (size_t o = 0; o < region_.outputs.size(); ++o)
    Write(o, call, tile, values[static_cast<size_t>(region_.outputs[o].node)], scratch, row_lanes);
}

void InterpretedCode::Write(size_t o, const RegionCall& call, const Tile& tile, Value value, Scratch& scratch,
                            double* row_lanes) const {
  const RegionOutput& output = region_.outputs[o];
  double* const out = call.outputs[o];
  const double* cells = value.cells;
  if (value.uniform) {
    double* const expanded = scratch.Slot(0);
    std::fill_n(expanded, tile.cells(), *value.cells);
    cells = expanded;
  }
  switch (output.sink) {
    case Sink::kStore: {
      const int64_t stride = call.output_strides[o];
      if (output.single) {
        float* const first = reinterpret_cast<float*>(out) + tile.first_row * stride + tile.first_column;
        for (int64_t i = 0; i < tile.rows; ++i)
          SelectedElementwiseKernels().narrow(cells + i * tile.columns, first + i * stride, tile.columns);
        break;
      }
      CopyRows(cells, tile.columns, tile.rows, tile.columns,
               out + tile.first_row * stride + tile.first_column, stride);
      break;
    }
    case Sink::kFoldFlat:
      FoldPeriod(output.fold, cells, tile.first_column, tile.columns, 8 * output.eights, out);
      break;
    case Sink::kFoldColumns:
      simd::FoldColumns(output.fold, cells, tile.rows, tile.columns, tile.columns, out + tile.first_column);
      break;
    case Sink::kFoldRows:
      if (tile.columns == call.columns)
        simd::FoldRows(output.fold, cells, tile.rows, tile.columns, tile.columns, out + tile.first_row);
      else
        simd::FoldFlat(output.fold, cells, tile.columns, row_lanes + 8 * o);
      break;
  }
}

class InterpretedSource : public RegionSource {
 public:
  Result<std::shared_ptr<const RegionCode>> Compile(const Region& region) override {
    HEDDLE_RETURN_IF_ERROR(Verify(region));
    return std::shared_ptr<const RegionCode>(std::make_shared<InterpretedCode>(region));
  }
};

}  // namespace

RegionSource& InterpretedRegions() {
  static auto* const source = new InterpretedSource();
  return *source;
}

}  // namespace heddle::ops
