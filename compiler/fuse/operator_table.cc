// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/operator_table.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace heddle::compiler::fusion {
namespace {

constexpr FusionOperator CellWise(std::string_view name, double published, double flops) {
  return {name, RowUse::kCells, true, true, true, published, flops};
}
// Mean, product and variance are not in the published table; they cost what sum, min and two sums cost.
constexpr FusionOperator Aggregate(std::string_view name, RowUse use, double published, double flops) {
  return {name, use, true, true, use == RowUse::kFullAggregate, published, flops};
}

// Sparse-safety has no column: a node's format says where its cells may be absent (docs/numerics.md R6), and
// the executor finds by itself where a body is zero.
constexpr FusionOperator kTable[] = {
    CellWise("+", 1, 0.35),
    CellWise("-", 1, 0.35),
    CellWise("*", 1, 0.35),
    CellWise("/", 22, 4),
    CellWise("^", 16, 45),
    CellWise("%%", 8, 8),
    CellWise("%/%", 6, 6),
    CellWise("<", 1, 0.5),
    CellWise("<=", 1, 0.5),
    CellWise(">", 1, 0.5),
    CellWise(">=", 1, 0.5),
    CellWise("==", 1, 0.5),
    CellWise("!=", 1, 0.5),
    CellWise("&", 1, 0.4),
    CellWise("|", 1, 0.4),
    CellWise("xor", 1, 0.4),
    CellWise("pmin", 1, 1.7),
    CellWise("pmax", 1, 1.7),
    CellWise("bitwAnd", 1, 8),
    CellWise("bitwOr", 1, 8),
    CellWise("bitwXor", 1, 8),
    CellWise("bitwShiftL", 1, 8),
    CellWise("bitwShiftR", 1, 8),
    CellWise("!", 1, 0.4),
    CellWise("sqrt", 2, 9),
    CellWise("exp", 18, 9),
    CellWise("log", 32, 12),
    CellWise("abs", 1, 0.3),
    CellWise("round", 1, 0.7),
    CellWise("floor", 1, 0.7),
    CellWise("ceil", 1, 0.7),
    CellWise("sign", 1, 1.5),
    CellWise("sin", 18, 26),
    CellWise("cos", 22, 26),
    CellWise("tan", 42, 40),
    CellWise("asin", 93, 22),
    CellWise("acos", 103, 22),
    CellWise("atan", 40, 20),
    CellWise("sinh", 93, 26),
    CellWise("cosh", 103, 22),
    CellWise("tanh", 40, 24),
    CellWise("sigmoid", 21, 18),
    CellWise("is.nan", 1, 0.5),
    CellWise("is.na", 1, 0.5),
    CellWise("is.infinite", 1, 0.5),
    CellWise("ifelse", 2, 0.3),
    CellWise("replace", 2, 0.8),
    Aggregate("sum", RowUse::kFullAggregate, 4, 0.35),
    Aggregate("mean", RowUse::kFullAggregate, 4, 0.35),
    Aggregate("min", RowUse::kFullAggregate, 1, 0.5),
    Aggregate("max", RowUse::kFullAggregate, 1, 0.5),
    Aggregate("prod", RowUse::kFullAggregate, 1, 0.5),
    Aggregate("rowSums", RowUse::kRowAggregate, 4, 0.35),
    Aggregate("rowMeans", RowUse::kRowAggregate, 4, 0.35),
    Aggregate("rowMins", RowUse::kRowAggregate, 1, 0.5),
    Aggregate("rowMaxs", RowUse::kRowAggregate, 1, 0.5),
    Aggregate("rowProds", RowUse::kRowAggregate, 1, 0.5),
    Aggregate("rowIndexMax", RowUse::kRowAggregate, 1, 0.5),
    Aggregate("rowIndexMin", RowUse::kRowAggregate, 1, 0.5),
    Aggregate("rowVars", RowUse::kRowAggregate, 8, 1.4),
    Aggregate("rowSds", RowUse::kRowAggregate, 8, 1.4),
    Aggregate("colSums", RowUse::kColumnAggregate, 4, 0.7),
    Aggregate("colMeans", RowUse::kColumnAggregate, 4, 0.7),
    Aggregate("colMins", RowUse::kColumnAggregate, 1, 1),
    Aggregate("colMaxs", RowUse::kColumnAggregate, 1, 1),
    Aggregate("colProds", RowUse::kColumnAggregate, 1, 1),
    // Multiply-adds run at the peak of the machine, eight times the rate of single operations through the
    // caches.
    {"%*%", RowUse::kProduct, false, true, true, 2, 0.3},
    {"t%*%", RowUse::kTransposedProduct, true, true, true, 2, 0.3},
    {"index", RowUse::kColumnRange, true, true, false, 1, 1},
    {"cbind", RowUse::kCbind, false, true, false, 1, 1},
    {"sampledProduct", RowUse::kSampledProduct, false, false, true, 2, 1},
};

}  // namespace

const FusionOperator* FindFusionOperator(std::string_view name) {
  static const auto* const table = [] {
    auto* result = new std::unordered_map<std::string_view, const FusionOperator*>;
    for (const FusionOperator& line : kTable) result->emplace(line.name, &line);
    return result;
  }();
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

}  // namespace heddle::compiler::fusion
