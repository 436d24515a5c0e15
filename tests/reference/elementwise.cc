// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ops/simd/cellwise/math.h"

namespace heddle::ops::reference {
namespace {

double Truncated(double x) {
  return std::isnan(x) ? x : std::copysign(std::floor(std::fabs(x) + 0x1p-53), x) + 0.0;
}

double JavaMin(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 && y == 0) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

double BitCell(std::string_view op, int64_t x, int64_t y) {
  if (op == "bitwAnd") return static_cast<double>(x & y);
  if (op == "bitwOr") return static_cast<double>(x | y);
  if (op == "bitwXor") return static_cast<double>(x ^ y);
  if (op == "bitwShiftL")
    return static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(x) << (y & 63)));
  return static_cast<double>(x >> (y & 63));
}

// The operand's cell that meets cell (i, j) of the result.
double CellOf(const Value& operand, int64_t i, int64_t j) {
  if (operand.IsScalar()) return operand.scalar().AsDouble();
  const Matrix& matrix = operand.matrix();
  return matrix.At(matrix.rows() == 1 ? 0 : i, matrix.columns() == 1 ? 0 : j);
}

int64_t RowsOf(const Value& value) { return value.IsMatrix() ? value.matrix().rows() : -1; }
int64_t ColumnsOf(const Value& value) { return value.IsMatrix() ? value.matrix().columns() : -1; }
bool IsSparse(const Value& value) { return value.IsMatrix() && value.matrix().IsSparse(); }

Matrix Empty(int64_t rows, int64_t columns) {
  Result<Matrix> result = Matrix::Dense(rows, columns);
  HEDDLE_CHECK(result.ok(), "tests are small");
  return *std::move(result);
}

}  // namespace

double BinaryCell(std::string_view op, double x, double y) {
  if (op == "+") return x + y;
  if (op == "-") return x - y;
  if (op == "*") return x * y;
  if (op == "/") return x / y;
  if (op == "^") return y == 2 ? x * x : y == 3 ? (x * x) * x : y == -1 ? 1 / x : Power(x, y);
  if (op == "%/%") return Truncated(x / y);
  if (op == "%%") {
    const double product = Truncated(x / y) * y;
    return x - product;
  }
  if (op == "<") return x < y ? 1 : 0;
  if (op == "<=") return x <= y ? 1 : 0;
  if (op == ">") return x > y ? 1 : 0;
  if (op == ">=") return x >= y ? 1 : 0;
  if (op == "==") return x == y ? 1 : 0;
  if (op == "!=") return x != y ? 1 : 0;
  if (op == "&") return x != 0 && y != 0 ? 1 : 0;
  if (op == "|") return x != 0 || y != 0 ? 1 : 0;
  if (op == "xor") return (x != 0) != (y != 0) ? 1 : 0;
  if (op == "pmin") return JavaMin(x, y);
  if (op == "pmax") return -JavaMin(-x, -y);
  if (op == "log") return Log(x) / Log(y);
  return BitCell(op, TruncateToInteger(x), TruncateToInteger(y));
}

double UnaryCell(std::string_view op, double x) {
  if (op == "!") return x == 0 ? 1 : 0;
  if (op == "sqrt") return std::sqrt(x);
  if (op == "exp") return Exp(x);
  if (op == "log") return Log(x);
  if (op == "abs") return std::fabs(x);
  if (op == "round") {
    const double below = std::floor(x);
    return below + (x - below >= 0.5 ? 1.0 : 0.0);
  }
  if (op == "floor") return std::floor(x);
  if (op == "ceil") return std::ceil(x);
  if (op == "sign") return x > 0 ? 1 : x < 0 ? -1 : x;
  if (op == "sin") return Sin(x);
  if (op == "cos") return Cos(x);
  if (op == "tan") return Tan(x);
  if (op == "asin") return Asin(x);
  if (op == "acos") return Acos(x);
  if (op == "atan") return Atan(x);
  if (op == "sinh") return Sinh(x);
  if (op == "cosh") return Cosh(x);
  if (op == "tanh") return Tanh(x);
  if (op == "sigmoid") return Sigmoid(x);
  if (op == "erf") return Erf(x);
  if (op == "is.infinite") return std::isinf(x) ? 1 : 0;
  return std::isnan(x) ? 1 : 0;
}

Matrix Binary(std::string_view op, const Value& a, const Value& b) {
  // A vector is only repeated on the right, except in the outer form.
  const int64_t rows = a.IsMatrix() ? RowsOf(a) : RowsOf(b);
  const int64_t columns = !a.IsMatrix() || (ColumnsOf(a) == 1 && b.IsMatrix()) ? ColumnsOf(b) : ColumnsOf(a);
  auto is_vector = [&](const Value& v) { return RowsOf(v) != rows || ColumnsOf(v) != columns; };
  const bool skips = op == "*" || op == "&";
  Matrix result = Empty(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double x = CellOf(a, i, j), y = CellOf(b, i, j);
      double cell = BinaryCell(op, x, y);
      if (skips && IsSparse(a) && !is_vector(a) && x == 0) cell = 0;
      if (skips && IsSparse(b) && !is_vector(b) && y == 0) cell = 0;
      result.mutable_data()[i * columns + j] = cell;
    }
  }
  return result;
}

Matrix Unary(std::string_view op, const Matrix& x) {
  Matrix result = Empty(x.rows(), x.columns());
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      result.mutable_data()[i * x.columns() + j] = UnaryCell(op, x.At(i, j));
  return result;
}

Matrix Select(const Value& condition, const Value& a, const Value& b) {
  const int64_t rows = std::max({RowsOf(condition), RowsOf(a), RowsOf(b)});
  const int64_t columns = std::max({ColumnsOf(condition), ColumnsOf(a), ColumnsOf(b)});
  Matrix result = Empty(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result.mutable_data()[i * columns + j] =
          CellOf(condition, i, j) != 0 ? CellOf(a, i, j) : CellOf(b, i, j);
  return result;
}

}  // namespace heddle::ops::reference
