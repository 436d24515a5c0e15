// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ops/frame/text_column.h"
#include "tests/unit/ops/run_stages.h"

// What tests of operators on frames that lie on several ranks share.
namespace heddle::ops::testing {

/// Ways to cut so many rows: the usual ones, more ranks than rows, ranks without rows, all rows on one.
inline std::vector<Split> CutsOf(int64_t rows) {
  std::vector<Split> cuts;
  for (const int32_t ranks : {1, 2, 3, 8}) cuts.push_back(Distribution::SplitRows(rows, ranks).split);
  const auto add = [&](std::vector<int64_t> places) {
    Split split;
    split.cuts = std::move(places);
    cuts.push_back(std::move(split));
  };
  add({0, rows, rows, rows});
  add({0, 0, 0, rows});
  add({0, rows / 3, rows / 3, rows});
  std::vector<int64_t> single;
  for (int64_t row = 0; row <= std::min<int64_t>(rows, 12); ++row) single.push_back(row);
  single.push_back(rows);
  single.push_back(rows);
  add(single);
  return cuts;
}

inline void ExpectStagesMatchAtAllCuts(Invocation& call, int64_t rows, int32_t place = 0) {
  for (const Split& cuts : CutsOf(rows)) ExpectStagesMatch(call, cuts, place);
}

/// An operator row by row gives, of any rows of its inputs, these rows of its result.
inline void ExpectRowsMatchAtAllCuts(Invocation& call, int64_t rows) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << call.node.op << ": " << whole.status().ToString();
  const RowRule rule = RowRuleOf(call.node, call.infos);
  EXPECT_TRUE(rule == RowRule::kRowWise || rule == RowRule::kGenerate) << call.node.op;
  for (const Split& cuts : CutsOf(rows)) {
    std::vector<Value> made;
    for (int32_t rank = 0; rank + 1 < static_cast<int32_t>(cuts.cuts.size()); ++rank) {
      const std::vector<Value> pieces = PiecesOf(call, cuts, rank);
      std::vector<const Value*> inputs;
      for (size_t i = 0; i < pieces.size(); ++i) inputs.push_back(call.inputs[i] ? &pieces[i] : nullptr);
      const Result<Value> rows_of_rank = call.op->run({.node = call.node,
                                                       .phase = Phase::kWhole,
                                                       .inputs = inputs,
                                                       .input_infos = call.infos,
                                                       .row_begin = cuts.Begin(rank),
                                                       .row_end = cuts.End(rank),
                                                       .total_rows = rows,
                                                       .context = call.context});
      ASSERT_TRUE(rows_of_rank.ok()) << call.node.op << ": " << rows_of_rank.status().ToString();
      made.push_back(*rows_of_rank);
    }
    std::vector<const Value*> pointers;
    for (const Value& value : made) pointers.push_back(&value);
    const Result<Value> all = JoinRows(pointers);
    ASSERT_TRUE(all.ok()) << call.node.op << ": " << all.status().ToString();
    EXPECT_TRUE(AreSame(*all, (*whole)[0])) << call.node.op;
  }
}

using TextCells = std::vector<std::optional<std::string>>;

/// Columns with names of their own.
inline Frame NamedFrame(std::vector<Column> columns, std::vector<std::string> names) {
  Schema schema{{}, std::move(names)};
  for (const Column& column : columns) schema.types.push_back(column.type());
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

inline Value Text(std::string text) { return Value(Scalar(std::move(text))); }

}  // namespace heddle::ops::testing
