// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/expression_generator.h"

#include <fmt/format.h>

#include "ops/base/operator.h"
#include "tests/fuzz/hostile.h"

namespace heddle::fuzz {

std::string ExpressionGenerator::Leaf(const Scope& scope, int64_t rows, int64_t columns) {
  if (choose_.Chance(70)) {
    std::vector<std::string> fitting;
    for (const MatrixVariable& matrix : scope.matrices)
      if (matrix.rows == rows && matrix.columns == columns) fitting.push_back(matrix.name);
    if (!fitting.empty()) return choose_.Pick(fitting);
  }
  if (rows * columns == 0) return fmt::format("rand(rows={}, cols={}, seed=1)", rows, columns);
  switch (choose_.Below(6)) {
    case 0:
      return fmt::format("matrix({}, rows={}, cols={})",
                         choose_.Pick({"0", "1", "-2.5", "1e-300", "1e300", "NaN", "Inf"}), rows, columns);
    case 1: return fmt::format("matrix(seq(1, {}), rows={}, cols={})", rows * columns, rows, columns);
    case 2:
      return fmt::format("rand(rows={}, cols={}, sparsity={}, seed={})", rows, columns,
                         choose_.Pick({"0.01", "0.2", "0"}), choose_.Below(10));
    case 3:
      return fmt::format("round(rand(rows={}, cols={}, min=-2, max=3, seed={}))", rows, columns,
                         choose_.Below(10));
    default:
      return fmt::format("rand(rows={}, cols={}, min=-1, max=1, seed={})", rows, columns, choose_.Below(10));
  }
}

std::string ExpressionGenerator::CellWise(const Scope& scope, int64_t rows, int64_t columns, int depth) {
  const std::string a = Matrix(scope, rows, columns, depth);
  switch (choose_.Below(9)) {
    case 0:
      return fmt::format("{}({})",
                         choose_.Pick({"abs",         "exp", "sqrt", "log",  "sign", "round",   "floor",
                                       "ceil",        "sin", "cos",  "tan",  "tanh", "sigmoid", "is.nan",
                                       "is.infinite", "!",   "-",    "asin", "atan", "cosh"}),
                         a);
    case 1:
    case 2: {
      const std::string b = choose_.Chance(40) ? Scalar(scope, depth) : Matrix(scope, rows, columns, depth);
      return fmt::format(
          "({} {} {})", a,
          choose_.Pick({"+", "-", "*", "/", "^", "%%", "%/%", "<", "<=", ">", ">=", "==", "!=", "&", "|"}),
          b);
    }
    case 3:
      return fmt::format("({} {} {})", a, choose_.Pick({"+", "*", "/", "-"}), Matrix(scope, rows, 1, depth));
    case 4:
      return fmt::format("({} {} {})", a, choose_.Pick({"+", "*", "/", "-"}),
                         Matrix(scope, 1, columns, depth));
    case 5:
      return fmt::format("{}({}, {})", choose_.Pick({"min", "max", "xor", "bitwAnd", "bitwOr"}), a,
                         Matrix(scope, rows, columns, depth));
    case 6:
      return fmt::format("ifelse({}, {}, {})", a, Scalar(scope, depth), Matrix(scope, rows, columns, depth));
    case 7:
      return fmt::format("replace(target={}, pattern={}, replacement={})", a,
                         choose_.Pick({"0", "1", "NaN", "-1"}), Scalar(scope, depth));
    default: return fmt::format("{}({})", choose_.Pick({"cumsum", "cummin", "cummax", "cumprod"}), a);
  }
}

std::string ExpressionGenerator::Reorganized(const Scope& scope, int64_t rows, int64_t columns, int depth) {
  switch (choose_.Below(9)) {
    case 0: return fmt::format("t({})", Matrix(scope, columns, rows, depth));
    case 1: return fmt::format("rev({})", Matrix(scope, rows, columns, depth));
    case 2: {
      const int64_t inner = choose_.PickNumber({1, 2, 5, 20, choose_.Chance(20) ? 0 : 1});
      return fmt::format("({} %*% {})", Matrix(scope, rows, inner, depth),
                         Matrix(scope, inner, columns, depth));
    }
    case 3: {
      if (columns < 2) return Leaf(scope, rows, columns);
      const int64_t left = choose_.Between(1, columns - 1);
      return fmt::format("cbind({}, {})", Matrix(scope, rows, left, depth),
                         Matrix(scope, rows, columns - left, depth));
    }
    case 4: {
      if (rows < 2) return Leaf(scope, rows, columns);
      const int64_t top = choose_.Between(1, rows - 1);
      return fmt::format("rbind({}, {})", Matrix(scope, top, columns, depth),
                         Matrix(scope, rows - top, columns, depth));
    }
    case 5: {
      std::vector<MatrixVariable> larger;
      for (const MatrixVariable& matrix : scope.matrices)
        if (matrix.rows >= rows && matrix.columns >= columns) larger.push_back(matrix);
      if (larger.empty()) return Leaf(scope, rows, columns);
      const MatrixVariable from = choose_.Pick(larger);
      const int64_t row = choose_.Between(1, from.rows - rows + 1);
      const int64_t column = choose_.Between(1, from.columns - columns + 1);
      return fmt::format("{}[{}:{}, {}:{}]", from.name, row, row + rows - 1, column, column + columns - 1);
    }
    case 6:
      return fmt::format("order(target={}, by={}, decreasing={}, index.return=FALSE)",
                         Matrix(scope, rows, columns, depth), choose_.Between(1, columns),
                         choose_.Pick({"TRUE", "FALSE"}));
    case 7:
      return fmt::format("outer({}, {}, \"{}\")", Matrix(scope, rows, 1, depth),
                         Matrix(scope, 1, columns, depth),
                         choose_.Pick({"+", "-", "*", "/", "<", "==", "min"}));
    default:
      if (rows * columns > 10000) return Leaf(scope, rows, columns);
      return fmt::format("matrix({}, rows={}, cols={}, byrow={})", Matrix(scope, columns, rows, depth), rows,
                         columns, choose_.Pick({"TRUE", "FALSE"}));
  }
}

// Shapes of one row or column come from aggregates, too.
std::string ExpressionGenerator::Vector(const Scope& scope, int64_t rows, int64_t columns, int depth) {
  const int64_t other = choose_.PickNumber({1, 3, 7, 20});
  if (columns == 1) {
    if (choose_.Chance(15) && rows > 0) return fmt::format("seq(1, {})", rows);
    if (choose_.Chance(10))
      return fmt::format("order(target={}, by=1, index.return=TRUE)", Matrix(scope, rows, other, depth));
    return fmt::format("{}({})",
                       choose_.Pick({"rowSums", "rowMeans", "rowMaxs", "rowMins", "rowIndexMax",
                                     "rowIndexMin", "rowVars", "rowSds", "rowProds"}),
                       Matrix(scope, rows, other, depth));
  }
  return fmt::format(
      "{}({})", choose_.Pick({"colSums", "colMeans", "colMaxs", "colMins", "colVars", "colSds", "colProds"}),
      Matrix(scope, other, columns, depth));
}

std::string ExpressionGenerator::Matrix(const Scope& scope, int64_t rows, int64_t columns, int depth) {
  if (IsHostile()) return choose_.Chance(50) ? HostileExpression(choose_) : Any(scope, 1);
  if (depth <= 0) return Leaf(scope, rows, columns);
  if ((rows == 1 || columns == 1) && choose_.Chance(40)) return Vector(scope, rows, columns, depth - 1);
  if (choose_.Chance(55)) return CellWise(scope, rows, columns, depth - 1);
  if (choose_.Chance(60)) return Reorganized(scope, rows, columns, depth - 1);
  return Leaf(scope, rows, columns);
}

std::string ExpressionGenerator::Scalar(const Scope& scope, int depth) {
  if (IsHostile()) return choose_.Chance(70) ? HostileNumber(choose_) : HostileExpression(choose_);
  if (depth <= 0 || choose_.Chance(30)) {
    if (!scope.scalars.empty() && choose_.Chance(60)) return choose_.Pick(scope.scalars);
    return choose_.Pick({"0", "1", "2", "0.5", "-1.5", "3", "10", "1e-3", "TRUE"});
  }
  const std::vector<MatrixVariable>& matrices = scope.matrices;
  switch (choose_.Below(7)) {
    case 0:
      return fmt::format("({} {} {})", Scalar(scope, depth - 1),
                         choose_.Pick({"+", "-", "*", "/", "^", "%%", "%/%"}), Scalar(scope, depth - 1));
    case 1:
      return fmt::format("{}({})", choose_.Pick({"abs", "sqrt", "exp", "log", "round", "floor", "-"}),
                         Scalar(scope, depth - 1));
    case 2:
      if (matrices.empty()) return "1";
      return fmt::format("{}({})", choose_.Pick({"nrow", "ncol", "length"}), choose_.Pick(matrices).name);
    case 3: {
      if (matrices.empty()) return "2";
      const MatrixVariable from = choose_.Pick(matrices);
      return fmt::format("as.scalar({}[{}, {}])", from.name, choose_.Between(1, from.rows),
                         choose_.Between(1, from.columns));
    }
    case 4:
      return fmt::format("ifelse({}, {}, {})", Condition(scope, depth - 1), Scalar(scope, depth - 1),
                         Scalar(scope, depth - 1));
    case 5: return fmt::format("as.integer({})", Scalar(scope, depth - 1));
    default:
      return fmt::format(
          "{}({})", choose_.Pick({"sum", "mean", "min", "max", "var", "sd", "prod"}),
          Matrix(scope, choose_.PickNumber({1, 2, 7, 65, 300}), choose_.PickNumber({1, 3, 20}), depth - 1));
  }
}

std::string ExpressionGenerator::Condition(const Scope& scope, int depth) {
  if (IsHostile()) return HostileExpression(choose_);
  if (depth <= 0) return choose_.Pick({"TRUE", "FALSE"});
  switch (choose_.Below(4)) {
    case 0:
      return fmt::format("({} {} {})", Condition(scope, depth - 1), choose_.Pick({"&", "|"}),
                         Condition(scope, depth - 1));
    case 1: return "!(" + Condition(scope, depth - 1) + ")";
    default:
      return fmt::format("({} {} {})", Scalar(scope, depth - 1),
                         choose_.Pick({"<", "<=", ">", ">=", "==", "!="}), Scalar(scope, depth - 1));
  }
}

std::string ExpressionGenerator::Text(const Scope& scope, int depth) {
  if (IsHostile()) return HostileText(choose_);
  if (depth <= 0) {
    if (!scope.texts.empty() && choose_.Chance(50)) return choose_.Pick(scope.texts);
    return choose_.Pick({"\"a\"", "\"\"", "\"value: \""});
  }
  if (choose_.Chance(20) && !scope.matrices.empty())
    return fmt::format("toString({}, rows={}, cols={}, decimal={})", choose_.Pick(scope.matrices).name,
                       choose_.PickNumber({1, 3, 100}), choose_.PickNumber({1, 3, 100}), choose_.Below(12));
  return fmt::format("({} + {})", Text(scope, depth - 1),
                     choose_.Chance(60) ? Scalar(scope, depth - 1) : Text(scope, depth - 1));
}

std::string ExpressionGenerator::Any(const Scope& scope, int depth) {
  switch (choose_.Below(7)) {
    case 0:
    case 1: return HostileExpression(choose_);
    case 2: return Text(scope, depth);
    case 3: return Condition(scope, depth);
    case 4:
      if (!scope.matrices.empty()) return choose_.Pick(scope.matrices).name;
      return Scalar(scope, depth);
    case 5: return Matrix(scope, choose_.PickNumber({1, 2, 3, 65}), choose_.PickNumber({1, 2, 3, 20}), depth);
    default: return Scalar(scope, depth);
  }
}

// [2, 1, 28, 28], now and then with another number of elements.
std::string ExpressionGenerator::Numbers(const Scope& scope, int length) {
  if (choose_.Chance(10)) length = static_cast<int>(choose_.Between(1, 5));
  std::string list = "[";
  for (int i = 0; i < length; ++i) {
    if (i > 0) list += ", ";
    list += choose_.Chance(80) ? std::to_string(choose_.PickNumber({0, 1, 2, 3, 4, 65})) : Scalar(scope, 1);
  }
  return list + "]";
}

std::string ExpressionGenerator::AnyCall(const Scope& scope) {
  static const std::vector<std::string> kNames = ops::BuiltinNames();
  const std::string name = choose_.Pick(kNames);
  std::string call = name + "(";
  const ops::Operator* builtin = ops::FindBuiltin(name);
  const std::vector<ops::OperatorParameter> parameters = ops::ParseParameters(builtin->parameters);
  const bool by_name =
      builtin->form == ops::CallForm::kRand || choose_.Chance(parameters.size() > 2 ? 60 : 10);
  int64_t count = parameters.empty() ? choose_.Between(0, 5) : static_cast<int64_t>(parameters.size());
  if (choose_.Chance(10)) count = choose_.Between(0, count + 1);
  bool first = true;
  for (int64_t i = 0; i < count; ++i) {
    const bool known = i < static_cast<int64_t>(parameters.size());
    if (known && parameters[static_cast<size_t>(i)].optional && choose_.Chance(50)) {
      if (by_name) continue;
      break;
    }
    if (!first) call += ", ";
    first = false;
    if (by_name && known) call += std::string(parameters[static_cast<size_t>(i)].name) + "=";
    const int length = known ? parameters[static_cast<size_t>(i)].length : 0;
    call += length > 0 ? Numbers(scope, length) : Any(scope, 1);
  }
  return call + ")";
}

std::string ExpressionGenerator::Deep(const Scope& scope) {
  const auto levels = static_cast<size_t>(choose_.PickNumber({100, 400, 1000, 3000, 20000}));
  const std::string inner = Scalar(scope, 0);
  const auto times = [&](const std::string& text) {
    std::string all;
    for (size_t i = 0; i < levels; ++i) all += text;
    return all;
  };
  switch (choose_.Below(8)) {
    case 0: return times("(") + inner + times(")");
    case 1: return times("-") + inner;
    case 2: return times("!") + "TRUE";
    case 3: return inner + times(" + " + inner);
    case 4: return times("abs(") + inner + times(")");
    case 5: return inner + times("^1");
    case 6: return times("(" + inner + " + ") + inner + times(")");
    default: return "max(" + inner + times(", " + inner) + ")";
  }
}

}  // namespace heddle::fuzz
