// SPDX-License-Identifier: Apache-2.0
// Operators on dense rows longer than a column chunk that no tile program has: X %*% Y with few columns,
// rowVars, rowSds, rowIndexMax, rowIndexMin. A work-item has a lane of a chunk of a row, or on devices whose
// compute units are the processor's all eight; others join the chunks of a row by the tree.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/device_forms.h"
#include "ops/device/operators/device_commands.h"
#include "ops/device/operators/long_rows.h"
#include "ops/device/print/prelude.h"

namespace heddle::ops {
namespace {

// The loop over what a work-item adds up of a chunk: cell j goes to its lane j - begin - lane.
constexpr std::string_view kLanes = R"(
#define CHUNK 65536L
#define OF_CHUNKS                                                                                       \
  for (long t = (long)get_global_id(0); t < rows * chunks * (8 / LANES); t += (long)get_global_size(0))
#define OF_CHUNK                                                                                        \
  const int lane = LANES == 8 ? 0 : (int)(t % 8);                                                       \
  const long leaf = t / (8 / LANES), row = leaf / chunks, begin = leaf % chunks * CHUNK;                \
  const long end = min(n, begin + CHUNK);                                                               \
  __global const CELL* const cells = x + first + row * n;
#define OF_CELLS(STATEMENT)                                                                             \
  {                                                                                                     \
    long j = begin + lane;                                                                              \
    for (; j + LANES <= end; j += 8)                                                                    \
      for (int l = 0; l < LANES; ++l) { STATEMENT }                                                     \
    for (int l = 0; LANES == 8 && j + l < end; ++l) { STATEMENT }                                       \
  }

static inline double heddle_join(const double8 r) {
  return ((r.s0 + r.s4) + (r.s2 + r.s6)) + ((r.s1 + r.s5) + (r.s3 + r.s7));
}
)";

// COLUMNS: of the right operand.
constexpr std::string_view kProduct = R"(
__kernel void heddle_chunks(const long rows, const long n, const long chunks, __global const CELL* x,
                            const long first, __global const CELL* y, const long first_y,
                            __global double* lanes) {
  OF_CHUNKS {
    OF_CHUNK
    __global const CELL* const right = y + first_y;
    double acc[COLUMNS][LANES];
    for (int c = 0; c < COLUMNS; ++c)
      for (int l = 0; l < LANES; ++l) acc[c][l] = 0.0;
    OF_CELLS(const double cell = (double)cells[j + l];
             for (int c = 0; c < COLUMNS; ++c)
               acc[c][l] = fma(cell, (double)right[(j + l) * COLUMNS + c], acc[c][l]);)
    for (int c = 0; c < COLUMNS; ++c)
      for (int l = 0; l < LANES; ++l) lanes[(leaf * COLUMNS + c) * 8 + lane + l] = acc[c][l];
  }
}

__kernel void heddle_rows(const long rows, const long chunks, __global const double* lanes,
                          __global CELL* out) {
  for (long cell = (long)get_global_id(0); cell < rows * COLUMNS; cell += (long)get_global_size(0)) {
    const long row = cell / COLUMNS, c = cell % COLUMNS;
    double8 stack[LEVELS], node;
    int depth = 0;
    for (long chunk = 0; chunk < chunks; ++chunk) {
      node = vload8((row * chunks + chunk) * COLUMNS + c, lanes);
      for (long done = chunk; done & 1; done >>= 1) node = stack[--depth] + node;
      stack[depth++] = node;
    }
    node = stack[--depth];
    while (depth > 0) node = stack[--depth] + node;
    out[cell] = ROUNDED(heddle_join(node) + 0.0);
  }
}
)";

// Sums of chunks, then sums of squared deviations from the means of their chunks; Chan's formula joins them.
constexpr std::string_view kSpread = R"(
// flag: the host looks at it at the end; heddle_spread may set it.
__kernel void heddle_sums(const long rows, const long n, const long chunks, __global const CELL* x,
                          const long first, __global double* sums, __global int* flag) {
  if (get_global_id(0) == 0) flag[0] = 0;
  OF_CHUNKS {
    OF_CHUNK
    double acc[LANES];
    for (int l = 0; l < LANES; ++l) acc[l] = 0.0;
    OF_CELLS(acc[l] = acc[l] + (double)cells[j + l];)
    for (int l = 0; l < LANES; ++l) sums[leaf * 8 + lane + l] = acc[l];
  }
}

__kernel void heddle_squares(const long rows, const long n, const long chunks, __global const CELL* x,
                             const long first, __global const double* sums, __global double* squares) {
  OF_CHUNKS {
    OF_CHUNK
    const double mean = heddle_join(vload8(leaf, sums)) / (double)(end - begin);
    double acc[LANES];
    for (int l = 0; l < LANES; ++l) acc[l] = 0.0;
    OF_CELLS(const double d = (double)cells[j + l] - mean; acc[l] = acc[l] + d * d;)
    for (int l = 0; l < LANES; ++l) squares[leaf * 8 + lane + l] = acc[l];
  }
}

// flag: 1 where a result is infinite or NaN.
__kernel void heddle_spread(const long rows, const long n, const long chunks, const long is_deviation,
                            __global const double* sums, __global const double* squares,
                            __global int* flag, __global CELL* out) {
  for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
    double4 stack[LEVELS], node;
    int depth = 0;
    for (long chunk = 0; chunk < chunks; ++chunk) {
      const long leaf = row * chunks + chunk;
      const double count = (double)(min(n, (chunk + 1) * CHUNK) - chunk * CHUNK);
      node = (double4)(count, heddle_join(vload8(leaf, sums)) / count, heddle_join(vload8(leaf, squares)),
                       0.0);
      for (long done = chunk; done & 1; done >>= 1) node = heddle_moments(stack[--depth], node);
      stack[depth++] = node;
    }
    node = stack[--depth];
    while (depth > 0) node = heddle_moments(stack[--depth], node);
    double spread = node.s2 / (node.s0 - 1.0);
    if (is_deviation) spread = sqrt(spread);
    out[row] = ROUNDED(spread);
    if (!isfinite(spread)) flag[0] = 1;
  }
}
)";

// The last of the largest cells; NaN is none. Without an order: a chunk is only what a work-item looks at.
constexpr std::string_view kPlaces = R"(
__kernel void heddle_chunks(const long rows, const long n, const long chunks, const long is_minimum,
                            __global const CELL* x, const long first, __global double* best,
                            __global long* places) {
  OF_CHUNKS {
    OF_CHUNK
    double acc[LANES];
    long place[LANES];
    for (int l = 0; l < LANES; ++l) { acc[l] = -INFINITY; place[l] = -1; }
    OF_CELLS(const double cell = is_minimum ? -(double)cells[j + l] : (double)cells[j + l];
             const int better = cell >= acc[l];
             acc[l] = better ? cell : acc[l];
             place[l] = better ? j + l : place[l];)
    for (int l = 0; l < LANES; ++l) {
      best[leaf * 8 + lane + l] = acc[l];
      places[leaf * 8 + lane + l] = place[l];
    }
  }
}

__kernel void heddle_rows(const long rows, const long chunks, __global const double* best,
                          __global const long* places, __global CELL* out) {
  for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
    double largest = -INFINITY;
    long place = -1;
    for (long k = row * chunks * 8; k < (row + 1) * chunks * 8; ++k) {
      const int better = best[k] > largest || (best[k] == largest && places[k] > place);
      largest = better ? best[k] : largest;
      place = better ? places[k] : place;
    }
    out[row] = ROUNDED(place < 0 ? 1.0 : (double)(place + 1));
  }
}
)";

struct LongRows {
  LongRows(const KernelCall& call, DeviceQueue& queue, int64_t columns_of_result)
      : commands(call, queue),
        x(call.inputs[0]->matrix()),
        cells(PlaceOf(x)),
        rows(x.rows()),
        n(x.columns()),
        chunks(CeilDivide(n, kColumnChunk)),
        columns(columns_of_result) {}

  std::string Source(std::string_view text) const {
    int levels = 2;  // Of the tree, and one for the node that is being joined.
    while ((int64_t{1} << (levels - 2)) < chunks) ++levels;
    return OverCells(x.element_type(),
                     fmt::format("#define LANES {}\n#define COLUMNS {}\n#define LEVELS {}\n{}{}{}",
                                 commands.description().is_host ? 8 : 1, columns, levels, kLanes,
                                 printed::JoinOfMoments(), text));
  }
  Result<std::shared_ptr<DeviceMemory>> LanesOfChunks() const {
    return commands.device().Allocate(rows * chunks * columns * 8 * 8);
  }
  LaunchShape ShapeOfChunks() const {
    return commands.ShapeOfCells(rows * chunks * (commands.description().is_host ? 1 : 8));
  }
  Result<std::shared_ptr<const CellsOnDevice>> MakeResult() const {
    return MakeOnDevice(commands.device(), {rows, columns}, x.element_type());
  }

  DeviceCommands commands;
  const Matrix& x;
  const PlaceOnDevice cells;
  const int64_t rows, n, chunks, columns;
};

// The host adds up in a wider range what comes out infinite or NaN; of floats a double has that range.
Result<std::optional<Value>> SpreadOnDevice(LongRows& of, AggregateKind kind) {
  const std::string source = of.Source(kSpread);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result, of.MakeResult());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> sums, of.LanesOfChunks());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> squares, of.LanesOfChunks());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> flag,
                          of.commands.device().Allocate(sizeof(int32_t)));
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_sums",
      std::vector<DeviceArgument>{of.rows, of.n, of.chunks, of.cells.memory, of.cells.first_cell, sums,
                                  flag},
      of.ShapeOfChunks()));
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_squares",
      std::vector<DeviceArgument>{of.rows, of.n, of.chunks, of.cells.memory, of.cells.first_cell, sums,
                                  squares},
      of.ShapeOfChunks()));
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_spread",
      std::vector<DeviceArgument>{of.rows, of.n, of.chunks,
                                  int64_t{kind == AggregateKind::kDeviation ? 1 : 0}, sums, squares, flag,
                                  result->memory()},
      of.commands.ShapeOfCells(of.rows)));
  if (of.x.element_type() == ElementType::kFloat64) {
    // Both live until the host has looked: what is queued reads the one and writes the other.
    const auto is_flagged = std::make_shared<int32_t>(0);
    DeviceQueue& queue = of.commands.queue();
    HEDDLE_RETURN_IF_ERROR(queue.Read(*flag, 0, sizeof(int32_t), is_flagged.get()));
    HEDDLE_RETURN_IF_ERROR(queue.AtEnd([is_flagged, flag] {
      return *is_flagged == 0 ? OkStatus() : Unimplemented("a sum is infinite or NaN");
    }));
  }
  return std::optional<Value>(Matrix::OfDeviceCells(result));
}

}  // namespace

Result<std::optional<Value>> MultiplyLongRowsOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& y = call.inputs[1]->matrix();
  LongRows of(call, queue, y.columns());
  const std::string source = of.Source(kProduct);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result, of.MakeResult());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> lanes, of.LanesOfChunks());
  if (of.rows == 0 || of.columns == 0) return std::optional<Value>(Matrix::OfDeviceCells(result));
  const PlaceOnDevice right = PlaceOf(y);
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_chunks",
      std::vector<DeviceArgument>{of.rows, of.n, of.chunks, of.cells.memory, of.cells.first_cell,
                                  right.memory, right.first_cell, lanes},
      of.ShapeOfChunks()));
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_rows", std::vector<DeviceArgument>{of.rows, of.chunks, lanes, result->memory()},
      of.commands.ShapeOfCells(of.rows * of.columns)));
  return std::optional<Value>(Matrix::OfDeviceCells(result));
}

Result<std::optional<Value>> AggregateLongRowsOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const AggregateKind kind = FindAggregate(call.node.op)->kind;
  LongRows of(call, queue, 1);
  if (of.n <= kColumnChunk) return std::optional<Value>();
  if (of.rows == 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result, of.MakeResult());
    return std::optional<Value>(Matrix::OfDeviceCells(result));
  }
  if (IsSpread(kind)) return SpreadOnDevice(of, kind);
  const std::string source = of.Source(kPlaces);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result, of.MakeResult());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> best, of.LanesOfChunks());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> places, of.LanesOfChunks());
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_chunks",
      std::vector<DeviceArgument>{of.rows, of.n, of.chunks,
                                  int64_t{kind == AggregateKind::kIndexMin ? 1 : 0}, of.cells.memory,
                                  of.cells.first_cell, best, places},
      of.ShapeOfChunks()));
  HEDDLE_RETURN_IF_ERROR(of.commands.Launch(
      source, "heddle_rows",
      std::vector<DeviceArgument>{of.rows, of.chunks, best, places, result->memory()},
      of.commands.ShapeOfCells(of.rows)));
  return std::optional<Value>(Matrix::OfDeviceCells(result));
}

}  // namespace heddle::ops
