// SPDX-License-Identifier: Apache-2.0
// t(P) %*% Y, where the ranks have P by columns: each makes the rows of the result of its columns, with the
// bytes of the whole.
#include <algorithm>

#include "ops/cells/column_pieces.h"
#include "ops/frame/row_pieces.h"
#include "ops/fused/fused_turned.h"
#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops {
namespace {

using testing::BodyBuilder;
using testing::Cells;

Node NodeOf(BodyBuilder& body, size_t inputs, std::vector<ValueInfo>* infos) {
  Node node{.op = "fused"};
  for (size_t i = 0; i < inputs; ++i) {
    node.inputs.push_back(static_cast<NodeId>(i));
    const Matrix& input = body.input(i).matrix();
    infos->push_back(ValueInfo::OfMatrix(input.shape(), FormatOf(input.storage())));
    infos->back().element_type = input.element_type();
  }
  node.fused = std::make_shared<const FusedOperator>(body.fused());
  node.info = body.fused().body[body.fused().roots[0]].info;
  return node;
}

const StagedForm* TurnedFormOf(const Node& node, std::span<const ValueInfo> infos) {
  for (const auto& [place, form] : StagedFormsOf(*FindOperator("fused"), node, infos, Axis::kColumns))
    if (form->result == StagedResult::kTurned) return form;
  return nullptr;
}

// `shares`: of each input "whole", "columns" or "rows".
void ExpectTurned(BodyBuilder& body, const std::vector<std::string>& shares) {
  std::vector<ValueInfo> infos;
  const Node node = NodeOf(body, shares.size(), &infos);
  const StagedForm* const form = TurnedFormOf(node, infos);
  ASSERT_NE(form, nullptr) << body.fused().ToText();
  for (size_t i = 0; i < shares.size(); ++i) {
    EXPECT_EQ(InputUseOf(*form, node, infos, static_cast<int>(i)) == InputUse::kRows, shares[i] != "whole");
    EXPECT_EQ(form->is_turned(node, infos, static_cast<int>(i)), shares[i] == "rows");
  }
  const Matrix whole = body.RunOneByOne().matrix();
  const int64_t n = whole.rows();
  // Ranks without columns, with a single one, and with many.
  for (std::vector<int64_t> cuts :
       {std::vector<int64_t>{0, n / 4, n / 2, 3 * n / 4, n}, {0, 0, 1, n, n}, {0, n - 1, n - 1, n}, {0, n}}) {
    const Split columns{.axis = Axis::kColumns, .cuts = cuts}, rows{.cuts = cuts};
    for (int32_t rank = 0; rank + 1 < static_cast<int32_t>(cuts.size()); ++rank) {
      std::vector<Value> pieces;
      for (size_t i = 0; i < shares.size(); ++i) {
        const int64_t begin = columns.Begin(rank), end = columns.End(rank);
        pieces.push_back(shares[i] == "columns" ? *ColumnsOfValue(body.input(i), begin, end)
                         : shares[i] == "rows"  ? *SliceRows(body.input(i), begin, end)
                                                : body.input(i));
      }
      std::vector<const Value*> inputs;
      for (const Value& piece : pieces) inputs.push_back(&piece);
      const StagePlace at{.form = *form, .rank = rank, .rows = columns, .result_rows = rows};
      Value made;
      const Status status = CatalogKernels().Run({.node = node,
                                                  .phase = Phase::kStage,
                                                  .inputs = inputs,
                                                  .input_infos = infos,
                                                  .context = body.context(),
                                                  .op = FindOperator("fused"),
                                                  .stage = &at},
                                                 {&made, 1});
      ASSERT_TRUE(status.ok()) << status.ToString();
      const Matrix expected = SliceRows(Value(whole), rows.Begin(rank), rows.End(rank))->matrix();
      EXPECT_EQ(made.matrix().shape(), expected.shape());
      EXPECT_EQ(made.matrix().element_type(), expected.element_type());
      EXPECT_TRUE(Matrix::SameCells(made.matrix(), expected))
          << "rank " << rank << " of " << cuts.size() - 1 << "\n"
          << body.fused().ToText();
    }
  }
}

void ExpectTurnedInBoth(BodyBuilder& body, const std::vector<std::string>& shares) {
  ExpectTurned(body, shares);
  body.BecomeSingle();
  if (CanRunFused(body.fused()).ok()) ExpectTurned(body, shares);
}

// t((X != 0) * (U %*% t(S)) - X) %*% U, the gradient of a factorization: a square X, so that no size tells U
// from S.
TEST(TurnedTest, SampledProducts) {
  for (const auto& [m, n, rank] :
       {std::tuple<int64_t, int64_t, int64_t>{300, 300, 20}, {1000, 130, 9}, {70, 900, 32}}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 30, false, 0.1))));
    const NodeId u = body.Input(Value(Cells(m, rank, 31))), s = body.Input(Value(Cells(n, rank, 32)));
    const NodeId pattern = body.Op("!=", {x, body.Literal(Scalar(0.0))});
    const NodeId product = body.Op("*", {pattern, body.Op("sampledProduct", {x, u, s})});
    body.Finish({body.Op("t%*%", {body.Op("-", {product, x}), u})});
    ExpectTurnedInBoth(body, {"columns", "whole", "rows"});
  }
}

// Cells of a dense matrix with a vector of each kind.
TEST(TurnedTest, CellsAndVectors) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{200, 50}, {513, 2}, {2, 70}}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, n, 1))), y = body.Input(Value(Cells(m, 11, 2)));
    const NodeId row = body.Input(Value(Cells(1, n, 3))), column = body.Input(Value(Cells(m, 1, 4)));
    const NodeId cells = body.Op("*", {body.Op("-", {x, row}), column});
    body.Finish({body.Op("t%*%", {cells, y})});
    ExpectTurnedInBoth(body, {"columns", "whole", "columns", "whole"});
  }
}

// The order of a cell depends on the number of all columns where Y has few; and nothing is there in two ways.
TEST(TurnedTest, WhatRanksCannotDoByColumns) {
  const auto has_form = [](BodyBuilder& body, size_t inputs) {
    std::vector<ValueInfo> infos;
    const Node node = NodeOf(body, inputs, &infos);
    return TurnedFormOf(node, infos) != nullptr;
  };
  for (const int64_t k : {1, 8, 9}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(100, 30, 1))), y = body.Input(Value(Cells(100, k, 2)));
    body.Finish({body.Op("t%*%", {body.Op("exp", {x}), y})});
    EXPECT_EQ(has_form(body, 2), k > 8);
  }
  BodyBuilder same;
  const NodeId x = same.Input(Value(*ToSparse(Cells(100, 100, 30, false, 0.1))));
  const NodeId u = same.Input(Value(Cells(100, 20, 31)));
  same.Finish({same.Op("t%*%", {same.Op("*", {x, same.Op("sampledProduct", {x, u, u})}), u})});
  EXPECT_FALSE(has_form(same, 2));
  BodyBuilder rows;
  const NodeId z = rows.Input(Value(Cells(100, 30, 1))), w = rows.Input(Value(Cells(100, 20, 2)));
  rows.Finish({rows.Op("t%*%", {rows.Op("/", {z, rows.Op("rowSums", {z})}), w})});
  EXPECT_FALSE(has_form(rows, 2));
}

}  // namespace
}  // namespace heddle::ops
