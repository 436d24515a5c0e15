// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops::testing {

enum class Roots : uint8_t { kOne, kSeveral };
enum class Sizes : uint8_t { kOrdinary, kLarge };

// A body of up to `most` random operators over matrices of that shape, fused against one by one; with several
// roots of any kind it is a stitch. False if the executor refuses it.
inline bool RandomBodyAgrees(const Shape& shape, uint32_t seed, size_t most, Roots roots = Roots::kOne,
                             Sizes sizes = Sizes::kOrdinary) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return random() % n; };
  BodyBuilder body;
  std::vector<NodeId> matrices, columns, scalars;
  const bool sparse = pick(3) == 0;
  const auto sized = [&](const Matrix& x) { return sizes == Sizes::kLarge ? Enlarged(x) : x; };
  matrices.push_back(
      body.Input(Value(sparse ? *ToSparse(sized(Cells(shape.rows, shape.columns, seed, false, 0.2)))
                              : sized(Cells(shape.rows, shape.columns, seed)))));
  const bool special = pick(2) == 0;
  const Matrix other = sized(Cells(shape.rows, shape.columns, seed + 1000, special, pick(4) == 0 ? 0.3 : 1));
  matrices.push_back(body.Input(Value(pick(4) == 0 ? *ToSparse(other) : other)));
  columns.push_back(body.Input(Value(Cells(shape.rows, 1, seed + 2000))));
  if (pick(4) == 0)
    columns.push_back(body.Input(Value(*ToSparse(Cells(shape.rows, 1, seed + 5000, false, 0.6)))));
  for (const double literal : {0.5, 0.0, -1.0, 1.0}) scalars.push_back(body.Literal(Scalar(literal)));
  scalars.push_back(body.Input(Value(Scalar(1.25))));
  const NodeId v = body.Input(Value(Cells(shape.columns, 1, seed + 3000)));
  const NodeId row = body.Input(Value(Cells(1, shape.columns, seed + 4000)));
  const char* const binary[] = {"+", "-", "*", "/", "pmin", "pmax", ">", "!=", ">=", "=="};
  const char* const unary[] = {"abs", "exp", "sqrt", "sign", "!", "round"};
  const char* const folds[] = {"rowSums",     "rowMaxs",  "rowMeans", "rowMins",
                               "rowIndexMax", "rowProds", "rowVars",  "rowSds"};
  for (size_t step = 0, count = 2 + pick(most - 1); step < count; ++step) {
    const NodeId a = matrices[pick(matrices.size())];
    const auto any = [&] {
      return pick(3) == 0 ? scalars[pick(scalars.size())] : matrices[pick(matrices.size())];
    };
    switch (pick(sparse ? 15 : 12)) {
      case 0:
      case 1: matrices.push_back(body.Op(binary[pick(10)], {a, matrices[pick(matrices.size())]})); break;
      case 2: matrices.push_back(body.Op(unary[pick(6)], {a})); break;
      case 3: matrices.push_back(body.Op(binary[pick(10)], {a, columns[pick(columns.size())]})); break;
      case 4: matrices.push_back(body.Op(binary[pick(10)], {a, scalars[pick(scalars.size())]})); break;
      case 5: columns.push_back(body.Op(folds[pick(8)], {a})); break;
      case 6:
        columns.push_back(
            body.Op(binary[pick(10)], {columns[pick(columns.size())], columns[pick(columns.size())]}));
        break;
      case 7:
        if (shape.columns > 1) matrices.push_back(body.Op(binary[pick(10)], {a, row}));
        break;
      case 9: matrices.push_back(body.Op("ifelse", {a, any(), any()})); break;
      case 10: matrices.push_back(body.Op(binary[pick(10)], {scalars[pick(scalars.size())], a})); break;
      case 11: {
        const double patterns[] = {0.0, 1.0, NAN, INFINITY};
        matrices.push_back(
            body.Op("replace", {a, body.Literal(Scalar(patterns[pick(4)])), scalars[pick(scalars.size())]}));
        break;
      }
      // What masks make of CSR values: products at entries, quotients by columns, cells hidden by a number.
      case 12: {
        const NodeId left = body.Input(Value(Cells(shape.rows, 3, seed + 6000))),
                     right = body.Input(Value(Cells(shape.columns, 3, seed + 7000)));
        matrices.push_back(body.Op("sampledProduct", {matrices[0], left, right}));
        break;
      }
      case 13:
        matrices.push_back(body.Op("/", {body.Op("*", {a, matrices[0]}), columns[pick(columns.size())]}));
        break;
      case 14:
        matrices.push_back(body.Op("ifelse", {body.Op("==", {matrices[0], body.Literal(Scalar(0.0))}),
                                              body.Literal(Scalar(-INFINITY)), a}));
        break;
      case 8:
        if (body.info(a).format == Format::kDense || a == matrices[0])
          columns.push_back(body.Op("%*%", {a, v}));
        break;
    }
  }
  if (roots == Roots::kSeveral) {
    const auto is_computed = [&](NodeId id) { return !body.fused().body[id].Is("variable"); };
    std::vector<NodeId> chosen;
    for (const std::vector<NodeId>* list : {&matrices, &columns})
      for (const NodeId id : *list)
        if (is_computed(id) && pick(3) == 0) chosen.push_back(id);
    const bool has_long_rows = shape.columns > kColumnChunk;
    std::vector<std::string> reductions = {"sum", "colSums", "max", "colMaxs", "mean", "colProds", "min"};
    if (sizes == Sizes::kLarge) reductions = {"sum", "colSums", "mean", "colMeans", "min", "colMaxs"};
    for (const std::string& reduction : reductions)
      if (pick(3) == 0)
        chosen.push_back(body.Op(
            reduction, {pick(4) == 0 ? columns[pick(columns.size())] : matrices[pick(matrices.size())]}));
    if (pick(2) == 0 && !has_long_rows)
      chosen.push_back(body.Op("t%*%", {matrices[pick(matrices.size())], columns[pick(columns.size())]}));
    if (chosen.size() < 2) return false;
    chosen.resize(std::min<size_t>(chosen.size(), FusedOperator::kMaxRoots));
    body.fused().kind = FusionTemplate::kStitch;
    for (int driver = 0; driver < 3; ++driver) {
      body.Finish(chosen, driver);
      if (!CanRunFused(body.fused()).ok()) continue;
      body.ExpectSame("seed " + std::to_string(seed));
      return true;
    }
    return false;
  }
  const NodeId last = matrices.back(), last_column = columns.back();
  NodeId root = last;
  switch (pick(8)) {
    case 0: break;
    case 1: root = body.Op("sum", {last}); break;
    case 2: root = body.Op("colSums", {last}); break;
    case 3: root = last_column; break;
    case 4:
      root = body.info(last).format == Format::kDense ? body.Op("t%*%", {last, last_column})
                                                      : body.Op("rowSums", {last});
      break;
    case 5: root = body.Op("sum", {last_column}); break;
    case 6: root = body.Op(folds[pick(4)], {last}); break;
    case 7: root = body.Op(pick(2) == 0 ? "colMaxs" : "min", {last}); break;
  }
  body.Finish({root}, 0);
  // The driver must be used: walk the rows of whichever matrix is.
  if (!CanRunFused(body.fused()).ok()) body.Finish({root}, 1);
  if (!CanRunFused(body.fused()).ok()) body.Finish({root}, 2);
  if (!CanRunFused(body.fused()).ok()) return false;
  body.ExpectSame("seed " + std::to_string(seed));
  return true;
}

}  // namespace heddle::ops::testing
