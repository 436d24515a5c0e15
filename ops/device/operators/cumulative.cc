// SPDX-License-Identifier: Apache-2.0
// cumsum, cumprod, cummin, cummax and cumsumprod on a device: the orders of ops/elementwise/cumulative.cc and
// cumsumprod.cc. A work-item has a column of a granule of rows.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/device_forms.h"
#include "ops/device/operators/device_commands.h"
#include "ops/elementwise/cumulative.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

// heddle_totals: row g + 1 of `offsets` becomes the fold of granule g; heddle_offsets: row g + 1 the fold of
// row g and itself, row 0 is the start; heddle_scan: the result.
constexpr std::string_view kCumulative = R"(
static inline double heddle_fold(const long fold, const double a, const double b) {
  if (fold == 0) return a + b;
  if (fold == 1) return a * b;
  if (isnan(a) || isnan(b)) return as_double(0x7ff8000000000000UL);
  // Of two zeros the one with the sign is the smaller.
  const int is_less = a < b || (a == b && signbit(a));
  return is_less == (fold == 2) ? a : b;
}

__kernel void heddle_totals(const long fold, const double start, const long granules, const long height,
                            const long n, __global const CELL* x, const long first,
                            __global double* offsets) {
  for (long c = (long)get_global_id(0); c < granules * n; c += (long)get_global_size(0)) {
    const long g = c / n, j = c - g * n;
    double total = start;
    for (long i = g * height; i < (g + 1) * height; ++i)
      total = heddle_fold(fold, total, (double)x[first + i * n + j]);
    offsets[(g + 1) * n + j] = total;
  }
}

__kernel void heddle_offsets(const long fold, const double start, const long granules, const long n,
                             __global double* offsets) {
  for (long j = (long)get_global_id(0); j < n; j += (long)get_global_size(0)) {
    double offset = start;
    offsets[j] = start;
    for (long g = 1; g < granules; ++g) {
      offset = heddle_fold(fold, offset, offsets[g * n + j]);
      offsets[g * n + j] = offset;
    }
  }
}

__kernel void heddle_scan(const long fold, const double start, const long rows, const long height,
                          const long n, __global const CELL* x, const long first,
                          __global const double* offsets, __global CELL* out) {
  const long granules = (rows + height - 1) / height;
  for (long c = (long)get_global_id(0); c < granules * n; c += (long)get_global_size(0)) {
    const long g = c / n, j = c - g * n;
    double folded = start;
    for (long i = g * height; i < min(rows, (g + 1) * height); ++i) {
      folded = heddle_fold(fold, folded, (double)x[first + i * n + j]);
      out[i * n + j] = ROUNDED(heddle_fold(fold, offsets[g * n + j], folded));
    }
  }
}
)";

// One work-item, which reads sixteen rows before it goes from one to the next.
constexpr std::string_view kCumsumprod = R"(
#define ROWS 16
__kernel void heddle_cumsumprod(const long begin, const long end, __global const CELL* x, const long first,
                                __global double* last, __global CELL* out) {
  double y = begin == 0 ? 0.0 : last[0];
  for (long row = begin; row < end; row += ROWS) {
    double terms[ROWS], factors[ROWS];
    const int count = (int)min((long)ROWS, end - row);
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
      const long i = row + min(k, count - 1);
      terms[k] = (double)x[first + 2 * i];
      factors[k] = (double)x[first + 2 * i + 1];
    }
    for (int k = 0; k < count; ++k) {
      const double product = factors[k] * y;
      y = terms[k] + product;
      out[row + k] = ROUNDED(y);
    }
  }
  last[0] = y;
}
)";

// Rows of cumsumprod that a launch computes: 20 ms, at 40 ns a row.
constexpr int64_t kRowsOfLaunch = int64_t{1} << 19;

}  // namespace

Result<std::optional<Value>> CumulateOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  const simd::Fold of_columns = FoldOfCumulative(call.node);
  const auto fold = static_cast<int64_t>(of_columns);
  const double start = simd::StartOf(of_columns);
  const int64_t rows = x.rows(), n = x.columns(), height = Granule(rows), granules = CeilDivide(rows, height);
  DeviceCommands commands(call, queue);
  const std::string source = OverCells(x.element_type(), kCumulative);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result,
                          MakeOnDevice(commands.device(), x.shape(), x.element_type()));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> offsets,
                          commands.device().Allocate(granules * n * 8));
  if (x.cells() == 0) return std::optional<Value>(Matrix::OfDeviceCells(result));
  const PlaceOnDevice cells = PlaceOf(x);
  if (granules > 1)
    HEDDLE_RETURN_IF_ERROR(commands.Launch(
        source, "heddle_totals",
        std::vector<DeviceArgument>{fold, start, granules - 1, height, n, cells.memory,
                                    cells.first_cell, offsets},
        commands.ShapeOfCells((granules - 1) * n)));
  HEDDLE_RETURN_IF_ERROR(
      commands.Launch(source, "heddle_offsets",
                      std::vector<DeviceArgument>{fold, start, granules, n, offsets},
                      commands.ShapeOfCells(n)));
  HEDDLE_RETURN_IF_ERROR(commands.Launch(
      source, "heddle_scan",
      std::vector<DeviceArgument>{fold, start, rows, height, n, cells.memory, cells.first_cell,
                                  offsets, result->memory()},
      commands.ShapeOfCells(granules * n)));
  return std::optional<Value>(Matrix::OfDeviceCells(result));
}

Result<std::optional<Value>> CumsumprodOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  if (x.columns() != 2) return std::optional<Value>();
  const auto steps = std::make_shared<DeviceSteps>(DeviceCommands(call, queue));
  const std::string source = OverCells(x.element_type(), kCumsumprod);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result,
                          MakeOnDevice(steps->commands().device(), {x.rows(), 1}, x.element_type()));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> last, steps->commands().device().Allocate(8));
  for (int64_t begin = 0; begin < x.rows(); begin += kRowsOfLaunch)
    steps->AddLong([begin, rows = x.rows(), cells = PlaceOf(x), source, last, to = result->memory(),
                    &commands = steps->commands()] {
      return commands.Launch(source, "heddle_cumsumprod",
                             std::vector<DeviceArgument>{begin, std::min(rows, begin + kRowsOfLaunch),
                                                         cells.memory, cells.first_cell, last, to},
                             {1, 1});
    });
  HEDDLE_RETURN_IF_ERROR(steps->Run());
  return std::optional<Value>(Matrix::OfDeviceCells(result));
}

}  // namespace heddle::ops
