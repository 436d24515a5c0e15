// SPDX-License-Identifier: Apache-2.0
// Loops over rows and over lists of tree nodes stop when the kernel is cancelled.
#include <algorithm>
#include <atomic>
#include <string_view>

#include "core/values/frame.h"
#include "ops/reduction/payload_parts.h"
#include "ops/statistics/narrow_column.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Invocation;
using testing::RandomCells;

const std::atomic<bool> kCancelled = true;

// Each stage of a form by rank 0 of one, which goes on from what the stages before have made when nothing was
// cancelled.
void ExpectEveryStageStops(Invocation call, int64_t rows, int32_t place, const std::vector<int32_t>& stages) {
  const StagedForm& form = *StagedFormAt(*call.op, place);
  const Split cuts = Distribution::SplitRows(rows, 1).split;
  const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
  ASSERT_TRUE(inferred.ok());
  call.SetInfos(*inferred);
  std::vector<const Value*> inputs;
  for (const auto& input : call.inputs) inputs.push_back(&*input);
  std::vector<Value> held;
  for (int32_t stage = 0; stage < static_cast<int32_t>(form.stages.size()); ++stage) {
    const Stage& now = form.stages[static_cast<size_t>(stage)];
    std::vector<const Value*> received;
    for (const Value& value : held) received.push_back(&value);
    const bool is_last = stage + 1 == static_cast<int32_t>(form.stages.size());
    std::vector<Value> made(is_last ? 1 : ValuesMade(now, {.ranks = 1}, 0));
    const auto run = [&](const std::atomic<bool>* cancelled) {
      KernelContext context = call.context;
      context.cancelled = cancelled;
      return form.run({.form = form,
                       .node = call.node,
                       .input_infos = call.infos,
                       .stage = stage,
                       .rows = cuts,
                       .result_rows = cuts,
                       .inputs = now.reads_inputs ? inputs : std::vector<const Value*>(),
                       .received = received,
                       .context = context},
                      made);
    };
    if (std::find(stages.begin(), stages.end(), stage) != stages.end()) {
      EXPECT_EQ(run(&kCancelled).code(), StatusCode::kCancelled) << call.node.op << ", stage " << stage;
    }
    ASSERT_TRUE(run(nullptr).ok()) << call.node.op << ", stage " << stage;
    if (HandsOn(now)) made.pop_back();  // There is no next rank.
    held = std::move(made);
  }
}

TEST(CancelledTest, AdjointsOfCumulativeOperators) {
  const Matrix x = RandomCells(100, 3, 1, 1), y = RandomCells(100, 3, 2, 1);
  const auto of = [&](const char* name) {
    return Invocation("cumulative_backward", {Value(x), Value(y), Value(x)}, {{"of", Scalar(name)}});
  };
  ExpectEveryStageStops(of("cumprod"), 100, 0, {1, 2});
  ExpectEveryStageStops(of("cummax"), 100, 1, {0});
  ExpectEveryStageStops(of("cummin"), 100, 1, {0});
}

TEST(CancelledTest, SwappedCells) {
  std::vector<std::string_view> numbers, texts;
  for (int i = 0; i < 50; ++i) {
    numbers.emplace_back(i % 7 == 0 ? "word" : "34");
    texts.emplace_back(i % 7 == 0 ? "12" : "text");
  }
  const auto frame_of = [](const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
    return *Frame::Of({}, {*Column::OfTexts(a), *Column::OfTexts(b)});
  };
  const Frame frame = frame_of(numbers, texts), schema = frame_of({"INT64"}, {"STRING"});
  Invocation call("valueSwap", {Value(frame), Value(schema)});
  ExpectEveryStageStops(call, 50, 0, {0, 1, 2, 3});
  call.context.cancelled = &kCancelled;
  EXPECT_EQ(call.RunRows(0, 0, 0).status().code(), StatusCode::kCancelled);
}

TEST(CancelledTest, NarrowColumns) {
  const Matrix x = RandomCells(1000, 1, 3, 1);
  const ValueRange range{-0.5, 0.5};
  const std::span<const double> cells(x.data(), 1000);
  EXPECT_TRUE(NarrowColumn::Of(cells, {&range, 1}, nullptr).ok());
  EXPECT_EQ(NarrowColumn::Of(cells, {&range, 1}, &kCancelled).status().code(), StatusCode::kCancelled);
}

TEST(CancelledTest, JoinsOfNodes) {
  Reduction reduction{.width = 8};
  const Matrix nodes = *ReduceLeaves(reduction, 1, 8, [](int64_t leaf, double* payload) {
    std::fill_n(payload, 8, static_cast<double>(leaf));
    return true;
  });
  ASSERT_GT(nodes.rows(), 1);
  EXPECT_TRUE(JoinNodes(reduction, nodes).ok());
  reduction.cancelled = &kCancelled;
  EXPECT_EQ(JoinNodes(reduction, nodes).status().code(), StatusCode::kCancelled);
}

// Every stage of a reduction in parts reads a list that it does not come to the end of.
TEST(CancelledTest, ReductionsInParts) {
  Invocation call("colSums", {Value(RandomCells(100, 20, 5, 1))});
  call.SetInfos(*call.InferWith(call.scalars));
  const Value* const input[] = {&*call.inputs[0]};
  const Value list = *CatalogKernels().Run({.node = call.node,
                                            .phase = Phase::kPartial,
                                            .inputs = input,
                                            .input_infos = call.infos,
                                            .row_end = 100,
                                            .total_rows = 100,
                                            .context = call.context});
  const StagedForm& form = *PartsFormOf(*call.op).second;
  const Split cuts = Distribution::SplitRows(100, 1).split;
  KernelContext context = call.context;
  const Value* const lists[] = {&list};
  for (const int32_t stage : {kJoinParts, kFinishPart}) {
    for (const bool is_cancelled : {false, true}) {
      context.cancelled = is_cancelled ? &kCancelled : nullptr;
      Value made;
      const Status status = form.run({.form = form,
                                      .node = call.node,
                                      .input_infos = call.infos,
                                      .stage = stage,
                                      .rows = cuts,
                                      .result_rows = cuts,
                                      .inputs = {},
                                      .received = lists,
                                      .end = 20,
                                      .context = context},
                                     {&made, 1});
      EXPECT_EQ(status.code(), is_cancelled ? StatusCode::kCancelled : StatusCode::kOk) << stage;
    }
  }
}

}  // namespace
}  // namespace heddle::ops
