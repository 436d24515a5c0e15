// SPDX-License-Identifier: Apache-2.0
// t, rev, roll, X[a:b, c:d], cbind, rbind and diag on a device: cells that only move. Whole rows of a matrix
// are its memory, and cost nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/device_forms.h"
#include "ops/base/whole_number.h"
#include "ops/device/operators/device_commands.h"
#include "ops/index/ranges.h"

namespace heddle::ops {
namespace {

// heddle_move: cell (i, j) of `to` is cell (i, j) of `from`, each with a first cell and cells between rows
// and columns. heddle_transpose: the columns x rows transpose of a matrix, squares of 16 x 16 cells in
// local memory, so that cells are read and written side by side.
constexpr std::string_view kMoves = R"(
__kernel void heddle_move(const long rows, const long columns, __global const CELL* from,
                          const long first_from, const long from_row, const long from_column,
                          __global CELL* to, const long first_to, const long to_row) {
  for (long c = (long)get_global_id(0); c < rows * columns; c += (long)get_global_size(0)) {
    const long i = c / columns, j = c - i * columns;
    to[first_to + i * to_row + j] = from[first_from + i * from_row + j * from_column];
  }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void heddle_transpose(const long rows, const long columns, __global const CELL* from, const long first,
                      __global CELL* to) {
  const int item = (int)get_local_id(0), across = item % 16, down = item / 16;
  const long squares = (columns + 15) / 16;
  const long row = (long)get_group_id(0) / squares * 16, column = (long)get_group_id(0) % squares * 16;
  __local CELL square[16][17];
  if (row + down < rows && column + across < columns)
    square[down][across] = from[first + (row + down) * columns + column + across];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (row + across < rows && column + down < columns)
    to[(column + down) * rows + row + across] = square[across][down];
}
)";

constexpr int64_t kItemsOfSquare = 256;

// A result in the memory of the device, and the commands that fill it.
class Moves {
 public:
  Moves(const KernelCall& call, DeviceQueue& queue)
      : commands_(call, queue), type_(call.inputs[0]->matrix().element_type()) {}

  Status Make(Shape shape) {
    HEDDLE_ASSIGN_OR_RETURN(result_, MakeOnDevice(commands_.device(), shape, type_));
    return OkStatus();
  }

  // `cells` of x from `from` on to cell `to` of the result, without gaps.
  Status Copy(const Matrix& x, int64_t from, int64_t cells, int64_t to) {
    return Move(x, {1, cells}, from, cells, 1, to, cells);
  }

  // A rectangle of x: `from` is its first cell, with so many cells between its rows and columns; rows of the
  // result that it goes to have `to_row` cells.
  Status Move(const Matrix& x, Shape shape, int64_t from, int64_t from_row, int64_t from_column, int64_t to,
              int64_t to_row) {
    if (shape.Cells() == 0) return OkStatus();
    PlaceOnDevice place = PlaceOf(x);
    const std::vector<DeviceArgument> arguments = {
        shape.rows,  shape.columns,     place.memory, place.first_cell + from, from_row,
        from_column, result_->memory(), to,           to_row};
    return commands_.Launch(OverBits(type_, kMoves), "heddle_move", arguments,
                            commands_.ShapeOfCells(shape.Cells()));
  }

  Status Transpose(const Matrix& x) {
    if (x.cells() == 0) return OkStatus();
    PlaceOnDevice place = PlaceOf(x);
    const std::vector<DeviceArgument> arguments = {x.rows(), x.columns(), place.memory, place.first_cell,
                                                   result_->memory()};
    const int64_t squares = CeilDivide(x.rows(), 16) * CeilDivide(x.columns(), 16);
    return commands_.Launch(OverBits(type_, kMoves), "heddle_transpose", arguments,
                            {squares, kItemsOfSquare});
  }

  std::optional<Value> Result() { return Value(Matrix::OfDeviceCells(result_)); }

 private:
  DeviceCommands commands_;
  const ElementType type_;
  std::shared_ptr<const CellsOnDevice> result_;
};

// The same rows, as a value of its own: whoever makes a value says when its cells are there.
Matrix SameRows(const Matrix& x) {
  const DeviceCells& all = x.device_cells();
  const auto cells = std::make_shared<CellsOnDevice>(DeviceOf(x), PlaceOf(x).memory,
                                                     Shape{all.rows(), all.columns()}, x.element_type());
  return Matrix::OfDeviceCells(cells).Rows(x.first_row(), x.first_row() + x.rows());
}

// Whether all inputs of a bind have cells of one type, and as many rows (or columns).
bool AreAlike(const KernelCall& call, bool columns) {
  const Matrix& first = call.inputs[0]->matrix();
  for (const Value* const input : call.inputs) {
    const Matrix& part = input->matrix();
    if (part.element_type() != first.element_type()) return false;
    if (columns ? part.rows() != first.rows() : part.columns() != first.columns()) return false;
  }
  return true;
}

}  // namespace

Result<std::optional<Value>> TransposeOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  if (DeviceOf(x).description().most_group_size < kItemsOfSquare) return std::optional<Value>();
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make({x.columns(), x.rows()}));
  HEDDLE_RETURN_IF_ERROR(x.rows() == 1 || x.columns() == 1 ? moves.Copy(x, 0, x.cells(), 0)
                                                           : moves.Transpose(x));
  return moves.Result();
}

Result<std::optional<Value>> ReverseOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t n = x.columns();
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make(x.shape()));
  HEDDLE_RETURN_IF_ERROR(moves.Move(x, x.shape(), (x.rows() - 1) * n, -n, 1, 0, n));
  return moves.Result();
}

Result<std::optional<Value>> RollOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t shift,
      RequireWholeNumber(call.inputs[1]->scalar(), "roll", "the shift", StatusCode::kFailedPrecondition));
  const int64_t m = x.rows(), n = x.columns();
  if (m == 0 || shift % m == 0) return std::optional<Value>(SameRows(x));
  // Row `first` becomes the top one.
  const int64_t first = (m - shift % m) % m;
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make(x.shape()));
  HEDDLE_RETURN_IF_ERROR(moves.Copy(x, first * n, (m - first) * n, 0));
  HEDDLE_RETURN_IF_ERROR(moves.Copy(x, 0, first * n, (m - first) * n));
  return moves.Result();
}

Result<std::optional<Value>> IndexOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  const Range rows = GivenRange(call, 1), columns = GivenRange(call, 3);
  const bool is_known = !call.input_infos.empty() && call.input_infos[0].shape.IsKnown();
  if (!CheckRanges(rows, columns, is_known ? call.input_infos[0].shape : x.shape(),
                   StatusCode::kFailedPrecondition)
           .ok())
    return std::optional<Value>();  // The host says what is wrong with them.
  const Matrix panel = rows.all ? x : x.Rows(rows.Begin(), rows.End(x.rows()));
  const int64_t first = columns.Begin(), width = columns.End(x.columns()) - first;
  if (width == x.columns()) return std::optional<Value>(SameRows(panel));
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make({panel.rows(), width}));
  HEDDLE_RETURN_IF_ERROR(moves.Move(panel, {panel.rows(), width}, first, x.columns(), 1, 0, width));
  return moves.Result();
}

Result<std::optional<Value>> CbindOnDevice(const KernelCall& call, DeviceQueue& queue) {
  if (!AreAlike(call, /*columns=*/true)) return std::optional<Value>();
  int64_t all = 0, column = 0;
  for (const Value* const input : call.inputs) all = SaturatingSum(all, input->matrix().columns());
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make({call.inputs[0]->matrix().rows(), all}));
  for (const Value* const input : call.inputs) {
    const Matrix& part = input->matrix();
    HEDDLE_RETURN_IF_ERROR(moves.Move(part, part.shape(), 0, part.columns(), 1, column, all));
    column += part.columns();
  }
  return moves.Result();
}

Result<std::optional<Value>> RbindOnDevice(const KernelCall& call, DeviceQueue& queue) {
  if (!AreAlike(call, /*columns=*/false)) return std::optional<Value>();
  int64_t all = 0, cell = 0;
  for (const Value* const input : call.inputs) all = SaturatingSum(all, input->matrix().rows());
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make({all, call.inputs[0]->matrix().columns()}));
  for (const Value* const input : call.inputs) {
    HEDDLE_RETURN_IF_ERROR(moves.Copy(input->matrix(), 0, input->matrix().cells(), cell));
    cell += input->matrix().cells();
  }
  return moves.Result();
}

Result<std::optional<Value>> DiagonalOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const Matrix& x = call.inputs[0]->matrix();
  if (x.columns() == 1 || x.columns() != std::max(call.total_rows, x.rows())) return std::optional<Value>();
  Moves moves(call, queue);
  HEDDLE_RETURN_IF_ERROR(moves.Make({x.rows(), 1}));
  HEDDLE_RETURN_IF_ERROR(moves.Move(x, {x.rows(), 1}, call.row_begin, x.columns() + 1, 1, 0, 1));
  return moves.Result();
}

}  // namespace heddle::ops
