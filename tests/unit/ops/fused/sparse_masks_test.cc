// SPDX-License-Identifier: Apache-2.0
// Softmax at the entries of a sparse mask, as it is written in DML, into every root, and several results of
// one pass over the entries.
#include "body_builder.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops::testing {
namespace {

struct MaskCase {
  Shape shape;
  double density;
};
// Rows without entries, with all of them, and longer than a column chunk.
constexpr MaskCase kMasks[] = {{{130, 3}, 0.4},      {{100, 64}, 0.1},    {{70, 1000}, 0.02},
                               {{515, 16}, 1},       {{9, 20000}, 0.001}, {{300, 250}, 0.004},
                               {{40, 66000}, 0.001}, {{5, 140000}, 2e-5}};

enum class Hidden : uint8_t {
  kMultiplied,  // exp(S - rowMaxs(S)) * M with S = M * X
  kInfinite,    // ifelse(M == 0, -Infinity, X)
  kChosen,      // ifelse(M, X, -Infinity)
  kLast,        // M * (E / rowSums(M * E))
};

// Of values at the entries of a mask, which is input 0.
struct Attention {
  NodeId mask, scores, maxima, weights, sums, shares;
};

Attention Build(BodyBuilder& body, const MaskCase& one, Hidden hidden, bool sampled, bool special = false) {
  const auto& [shape, density] = one;
  Attention a{};
  a.mask = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, special, density))));
  NodeId cells = kNoNode;
  if (sampled) {
    const NodeId q = body.Input(Value(Cells(shape.rows, 9, 2))),
                 k = body.Input(Value(Cells(shape.columns, 9, 3)));
    cells = body.Op("/", {body.Op("sampledProduct", {a.mask, q, k}), body.Literal(Scalar(3.0))});
  } else {
    cells = body.Input(Value(Cells(shape.rows, shape.columns, 4, special)));
  }
  const NodeId nothing = body.Literal(Scalar(-INFINITY));
  switch (hidden) {
    case Hidden::kMultiplied:
    case Hidden::kLast: a.scores = sampled ? cells : body.Op("*", {a.mask, cells}); break;
    case Hidden::kInfinite:
      a.scores = body.Op("ifelse", {body.Op("==", {a.mask, body.Literal(Scalar(0.0))}), nothing, cells});
      break;
    case Hidden::kChosen: a.scores = body.Op("ifelse", {a.mask, cells, nothing}); break;
  }
  a.maxima = body.Op("rowMaxs", {a.scores});
  const NodeId from = hidden == Hidden::kMultiplied && !sampled ? cells : a.scores;
  const NodeId e = body.Op("exp", {body.Op("-", {from, a.maxima})});
  const bool multiplied = hidden == Hidden::kMultiplied;
  a.weights = multiplied ? body.Op("*", {e, a.mask}) : e;
  a.sums = body.Op("rowSums", {hidden == Hidden::kLast ? body.Op("*", {a.mask, e}) : a.weights});
  a.shares = body.Op("/", {a.weights, a.sums});
  if (hidden == Hidden::kLast) a.shares = body.Op("*", {a.mask, a.shares});
  return a;
}

bool IsDense(const TileProgram& program) {
  const auto wide = [&](const Step& step) {
    return (step.kind == Step::Kind::kSpread || step.kind == Step::Kind::kDensify) && step.columns > 1;
  };
  return !program.by_pattern || std::any_of(program.steps.begin(), program.steps.end(), wide);
}

NodeId RootOf(BodyBuilder& body, const Attention& a, const std::string& root, const Shape& shape) {
  if (root == "shares") return a.shares;
  if (root == "logSumExp") return body.Op("+", {a.maxima, body.Op("log", {a.sums, kNoNode})});
  if (root.starts_with("%*%"))
    return body.Op("%*%", {a.shares, body.Input(Value(Cells(shape.columns, std::stoi(root.substr(3)), 5)))});
  if (root == "t%*%") return body.Op(root, {a.shares, body.Input(Value(Cells(shape.rows, 2, 6)))});
  return body.Op(root, {a.shares});
}

TEST(SparseMasksTest, SoftmaxIntoEveryRoot) {
  for (const MaskCase& one : kMasks)
    for (const Hidden hidden : {Hidden::kMultiplied, Hidden::kInfinite, Hidden::kChosen, Hidden::kLast})
      for (const bool sampled : {false, true})
        for (const std::string root : {"shares", "logSumExp", "rowSums", "rowMaxs", "rowMeans", "rowMins",
                                       "sum", "colSums", "%*%1", "%*%3", "%*%20", "t%*%"}) {
          const bool long_rows = one.shape.columns > kColumnChunk;
          const bool is_dense = hidden == Hidden::kInfinite || hidden == Hidden::kChosen;
          const bool dense_result = is_dense && root != "logSumExp" && !root.starts_with("row");
          if (long_rows && (dense_result || root.starts_with("%*%"))) continue;
          if (one.shape.columns > 131072 && root == "t%*%") continue;  // A payload too large.
          if (one.shape.Cells() > 100000 && (hidden == Hidden::kChosen || (!long_rows && root != "shares")))
            continue;
          BodyBuilder body;
          const Attention a = Build(body, one, hidden, sampled);
          body.Finish({RootOf(body, a, root, one.shape)});
          const std::string what = fmt::format("{} of form {} {} {} {}", root, static_cast<int>(hidden),
                                               sampled ? "sampled" : "given", one.shape, one.density);
          const Result<TileProgram> program = Lower(body.fused());
          ASSERT_TRUE(program.ok()) << what << ": " << program.status().ToString();
          EXPECT_TRUE(program->by_pattern) << what;
          const bool spreads = dense_result && !root.starts_with("%*%");
          EXPECT_EQ(IsDense(*program), spreads) << what;
          body.ExpectSame(what);
          if (HasFailure()) return;
        }
}

// Infinities and NaN in the mask, the scores and the right operand of a product, where 0 * Infinity counts.
TEST(SparseMasksTest, OddCells) {
  for (const MaskCase& one : kMasks)
    for (const Hidden hidden : {Hidden::kMultiplied, Hidden::kInfinite, Hidden::kLast})
      for (const int64_t width : {1, 4, 20}) {
        if (one.shape.Cells() > 100000) continue;
        BodyBuilder body;
        const Attention a = Build(body, one, hidden, false, true);
        const NodeId values = body.Input(Value(Cells(one.shape.columns, width, 7, true)));
        body.Finish({body.Op("%*%", {a.shares, values})});
        body.ExpectSame(fmt::format("product of {} {} {}", static_cast<int>(hidden), one.shape, width));
        body.Finish({a.shares});
        body.ExpectSame(fmt::format("shares of {} {}", static_cast<int>(hidden), one.shape));
      }
}

// Rows, vectors, sums of columns and of all, and products, each of its own kind, from one pass.
TEST(SparseMasksTest, SeveralResultsOfOnePass) {
  for (const MaskCase& one : kMasks)
    for (const Hidden hidden : {Hidden::kMultiplied, Hidden::kInfinite, Hidden::kLast})
      for (const bool sampled : {false, true}) {
        if (one.shape.columns > kColumnChunk || one.shape.Cells() > 100000) continue;
        BodyBuilder body;
        const Attention a = Build(body, one, hidden, sampled);
        const NodeId values = body.Input(Value(Cells(one.shape.columns, 12, 8)));
        const NodeId rows = body.Input(Value(Cells(one.shape.rows, 3, 9)));
        body.fused().kind = FusionTemplate::kStitch;
        body.Finish({a.shares, a.maxima, body.Op("sum", {a.shares}), body.Op("colSums", {a.weights}),
                     body.Op("%*%", {a.shares, values}), body.Op("t%*%", {a.shares, rows}), a.weights});
        const Result<TileProgram> program = Lower(body.fused());
        ASSERT_TRUE(program.ok()) << program.status().ToString();
        EXPECT_TRUE(program->by_pattern);
        body.ExpectSame(fmt::format("several of {} {}", static_cast<int>(hidden), one.shape));
        body.Finish({body.Op("sum", {a.weights}), body.Op("colSums", {a.weights})});
        body.ExpectSame(fmt::format("sums of {} {}", static_cast<int>(hidden), one.shape));
        if (HasFailure()) return;
      }
}

}  // namespace
}  // namespace heddle::ops::testing
