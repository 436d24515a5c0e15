// SPDX-License-Identifier: Apache-2.0
#include "compiler/builtins/builtin_table.h"

#include <fmt/format.h>

#include <iterator>

#include "ops/operator.h"

namespace heddle::compiler {
namespace {

using enum CallForm;

constexpr Builtin kBuiltins[] = {
    // Cell-wise.
    {"abs", "abs", kPositional, "x"},
    {"acos", "acos", kPositional, "x"},
    {"asin", "asin", kPositional, "x"},
    {"atan", "atan", kPositional, "x"},
    {"bitwAnd", "bitwAnd", kPositional, "a b"},
    {"bitwOr", "bitwOr", kPositional, "a b"},
    {"bitwShiftL", "bitwShiftL", kPositional, "a n"},
    {"bitwShiftR", "bitwShiftR", kPositional, "a n"},
    {"bitwXor", "bitwXor", kPositional, "a b"},
    {"ceil", "ceil", kPositional, "x"},
    {"cos", "cos", kPositional, "x"},
    {"cosh", "cosh", kPositional, "x"},
    {"exp", "exp", kPositional, "x"},
    {"floor", "floor", kPositional, "x"},
    {"ifelse", "ifelse", kPositional, "c a b"},
    {"is.infinite", "is.infinite", kPositional, "x"},
    {"is.na", "is.na", kPositional, "x"},
    {"is.nan", "is.nan", kPositional, "x"},
    {"log", "log", kPositional, "x base?"},
    {"max", "max", kMinMax, ""},
    {"min", "min", kMinMax, ""},
    {"outer", "", kOuter, ""},
    {"round", "round", kPositional, "x"},
    {"sigmoid", "sigmoid", kPositional, "X"},
    {"sign", "sign", kPositional, "x"},
    {"sin", "sin", kPositional, "x"},
    {"sinh", "sinh", kPositional, "x"},
    {"sqrt", "sqrt", kPositional, "x"},
    {"tan", "tan", kPositional, "x"},
    {"tanh", "tanh", kPositional, "x"},
    {"xor", "xor", kPositional, "a b"},
    // Aggregates.
    {"colMaxs", "colMaxs", kPositional, "X"},
    {"colMeans", "colMeans", kPositional, "X"},
    {"colMins", "colMins", kPositional, "X"},
    {"colProds", "colProds", kPositional, "X"},
    {"colSds", "colSds", kPositional, "X"},
    {"colSums", "colSums", kPositional, "X"},
    {"colVars", "colVars", kPositional, "X"},
    {"cummax", "cummax", kPositional, "X"},
    {"cummin", "cummin", kPositional, "X"},
    {"cumprod", "cumprod", kPositional, "X"},
    {"cumsum", "cumsum", kPositional, "X"},
    {"mean", "mean", kPositional, "X"},
    {"prod", "prod", kPositional, "X"},
    {"rowIndexMax", "rowIndexMax", kPositional, "X"},
    {"rowIndexMin", "rowIndexMin", kPositional, "X"},
    {"rowMaxs", "rowMaxs", kPositional, "X"},
    {"rowMeans", "rowMeans", kPositional, "X"},
    {"rowMins", "rowMins", kPositional, "X"},
    {"rowProds", "rowProds", kPositional, "X"},
    {"rowSds", "rowSds", kPositional, "X"},
    {"rowSums", "rowSums", kPositional, "X"},
    {"rowVars", "rowVars", kPositional, "X"},
    {"sd", "sd", kPositional, "X"},
    {"sum", "sum", kPositional, "X"},
    {"trace", "trace", kPositional, "X"},
    {"var", "var", kPositional, "X"},
    // Construction and shape.
    {"cbind", "cbind", kVariadic, ""},
    {"diag", "diag", kPositional, "X"},
    {"length", "length", kPositional, "X"},
    {"matrix", "matrix", kMatrix, "data rows cols @byrow?"},
    {"ncol", "ncol", kPositional, "X"},
    {"nrow", "nrow", kPositional, "X"},
    {"order", "order", kNamed, "target by? decreasing? index.return?"},
    {"rand", "rand", kRand, "rows? cols? min? max? sparsity? seed? lambda? @pdf?"},
    {"rbind", "rbind", kVariadic, ""},
    {"removeEmpty", "removeEmpty", kNamed, "target select? @margin @empty.return?"},
    {"replace", "replace", kNamed, "target pattern replacement"},
    {"rev", "rev", kPositional, "X"},
    {"seq", "seq", kPositional, "from to incr?"},
    {"t", "t", kPositional, "X"},
    {"table", "table", kTable, ""},
    // Linear algebra.
    {"cholesky", "cholesky", kPositional, "A"},
    {"det", "det", kPositional, "A"},
    {"eigen", "eigen", kPositional, "A"},
    {"inv", "inv", kPositional, "A"},
    {"lu", "lu", kPositional, "A"},
    {"qr", "qr", kPositional, "X"},
    {"solve", "solve", kPositional, "A b"},
    {"svd", "svd", kPositional, "X"},
    // Casts.
    {"as.double", "as.double", kPositional, "x"},
    {"as.integer", "as.integer", kPositional, "x"},
    {"as.logical", "as.logical", kPositional, "x"},
    {"as.matrix", "as.matrix", kPositional, "x"},
    {"as.scalar", "as.scalar", kPositional, "x"},
    // Input, output, control.
    {"assert", "assert", kAssert, "condition"},
    {"print", "print", kPrint, ""},
    {"read", "read", kRead, ""},
    {"stop", "stop", kStop, "message?"},
    {"time", "time", kPositional, ""},
    {"toString", "toString", kNamed, "x rows? cols? decimal? sparse? sep? linesep?"},
    {"write", "write", kWrite, ""},
};

struct Alias {
  std::string_view name;
  std::string_view of;
};
constexpr Alias kAliases[] = {
    {"Rand", "rand"},
    {"append", "cbind"},
    {"as.boolean", "as.logical"},
    {"avg", "mean"},
    {"castAsScalar", "as.scalar"},
    {"ceiling", "ceil"},
    {"ctable", "table"},
    {"inverse", "inv"},
    {"isInf", "is.infinite"},
    {"isNA", "is.na"},
    {"isNaN", "is.nan"},
    {"pmax", "max"},
    {"pmin", "min"},
    {"tr", "trace"},
};

}  // namespace

const Builtin* FindBuiltin(std::string_view name) {
  for (const Alias& alias : kAliases)
    if (alias.name == name) name = alias.of;
  for (const Builtin& builtin : kBuiltins)
    if (builtin.name == name) return &builtin;
  return nullptr;
}

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

int ResultCountOf(const Builtin& builtin) {
  const ops::Operator* const op = ops::FindOperator(builtin.op);
  return op == nullptr ? 1 : op->results;
}

std::string AssignmentOf(std::string_view name, int results) {
  if (results == 1) return fmt::format("x = {}(...)", name);
  std::string targets;
  for (int i = 0; i < results; ++i) targets += fmt::format("{}{}", i == 0 ? "" : ", ", char('a' + i));
  return fmt::format("[{}] = {}(...)", targets, name);
}

std::vector<BuiltinParameter> ParametersOf(const Builtin& builtin) {
  std::vector<BuiltinParameter> parameters;
  std::string_view text = builtin.parameters;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    BuiltinParameter parameter;
    if (word.front() == '@') {
      parameter.attribute = true;
      word.remove_prefix(1);
    }
    if (word.back() == '?') {
      parameter.optional = true;
      word.remove_suffix(1);
    }
    parameter.name = word;
    parameters.push_back(parameter);
  }
  return parameters;
}

}  // namespace heddle::compiler
