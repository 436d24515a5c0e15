// SPDX-License-Identifier: Apache-2.0
// When regions are compiled, and what the runtime keeps.
#include <cmath>
#include <memory>
#include <optional>

#include "body_builder.h"
#include "ops/fused/fused.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/run/tile_inputs.h"

namespace heddle::ops::testing {
namespace {

// A job whose sizes change with every round, and a master that plans for ever, must not grow with what they
// have seen.
TEST(FusedRuntimeTest, ProgramsAreForgottenButNotWhatTheyDid) {
  FusedRuntime runtime(nullptr, false, nullptr);
  constexpr int64_t kRounds = static_cast<int64_t>(FusedRuntime::kMostPrograms) + 10;
  int64_t rows_read = 0;
  for (int64_t rows = 2; rows < 2 + kRounds; ++rows) {
    BodyBuilder body;
    body.Finish({body.Op("sum", {body.Op("abs", {body.Input(Value(*FilledMatrix(rows, 1, -1.0)))})})});
    const Result<Value> sum = body.RunFused(1, 1, &runtime);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    rows_read += rows;
    ASSERT_LE(runtime.programs(), FusedRuntime::kMostPrograms);
  }
  EXPECT_EQ(runtime.programs(), FusedRuntime::kMostPrograms);
  int64_t calls = 0, bytes = 0;
  for (const FusedCounts& counts : runtime.Counts()) {
    EXPECT_EQ(counts.label, "cell sum");
    calls += counts.calls;
    bytes += counts.bytes;
  }
  EXPECT_EQ(calls, kRounds);
  EXPECT_EQ(bytes, 8 * rows_read);
}

// Plans come and go: each has its own objects, and a new one may lie where an old one lay.
TEST(FusedRuntimeTest, EqualOperatorsOfSeveralPlansShareAProgram) {
  FusedRuntime runtime(nullptr, false, nullptr);
  const auto get = [&](const std::shared_ptr<const FusedOperator>& fused) {
    Result<std::shared_ptr<const TileProgram>> program = runtime.Get(fused);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    return *std::move(program);
  };
  const auto make = [](const char* op) {
    BodyBuilder body;
    body.Finish({body.Op("sum", {body.Op(op, {body.Input(Value(Cells(5, 3, 1)))})})});
    return body.fused();
  };
  const auto first = std::make_shared<const FusedOperator>(make("abs"));
  EXPECT_EQ(get(first), get(first));
  EXPECT_EQ(get(first), get(std::make_shared<const FusedOperator>(make("abs"))));
  EXPECT_EQ(runtime.programs(), 1u);
  // At one address, one after the other.
  std::optional<FusedOperator> place;
  for (const char* const op : {"abs", "exp", "abs"}) {
    place = make(op);
    const std::shared_ptr<const FusedOperator> here(&*place, [](const FusedOperator*) {});
    EXPECT_EQ(get(here)->fused.ToText(), place->ToText());
  }
  EXPECT_EQ(runtime.programs(), 2u);
}

// Counts what is asked of it; interprets, or refuses.
class CountingSource : public RegionSource {
 public:
  explicit CountingSource(bool refuses) : refuses_(refuses) {}
  Result<std::shared_ptr<const RegionCode>> Compile(const Region& region) override {
    ++asked;
    if (refuses_) return Internal("no code today");
    return InterpretedRegions().Compile(region);
  }
  int asked = 0;

 private:
  bool refuses_;
};

// With a hundred columns and three operators: more than is interpreted.
constexpr auto kManyRows = static_cast<int64_t>(FusedRuntime::kInterpretedWork) / 300;

// sum(abs(x + 1) * x): a region of few values for each cell.
void SumOf(const Shape& shape, BodyBuilder* body) {
  const NodeId x = body->Input(Value(Cells(shape.rows, shape.columns, 1)));
  body->Finish({body->Op(
      "sum", {body->Op("*", {body->Op("abs", {body->Op("+", {x, body->Literal(Scalar(1.0))})}), x})})});
}

TEST(FusedRuntimeTest, RegionsAreCompiledOnceTheyHaveComputedEnough) {
  const auto source = std::make_shared<CountingSource>(false);
  FusedRuntime runtime(source, false, nullptr);
  BodyBuilder body, other;
  SumOf({1000, 100}, &body);
  SumOf({700, 100}, &other);
  const auto nodes = static_cast<double>((*Lower(body.fused())).regions[0].nodes.size());
  const auto calls = static_cast<int64_t>(std::ceil(FusedRuntime::kInterpretedWork / (nodes * 100000)));
  ASSERT_GT(calls, 1);
  const Value expected = body.RunOneByOne();
  for (int64_t call = 1; call <= calls + 1; ++call) {
    const Result<Value> sum = body.RunFused(1, 1, &runtime);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(sum->scalar().AsDouble(), expected.scalar().AsDouble());
    EXPECT_EQ(source->asked, call < calls ? 0 : 1) << call;
  }
  // The same loop in another operator: there is code for it.
  ASSERT_TRUE(other.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 2);
  EXPECT_EQ(runtime.fallbacks(), 0);
}

TEST(FusedRuntimeTest, LargeCallsAndStrictRuntimesCompileAtOnce) {
  BodyBuilder large, small;
  SumOf({kManyRows, 100}, &large);
  SumOf({10, 10}, &small);
  const auto source = std::make_shared<CountingSource>(false);
  FusedRuntime runtime(source, false, nullptr), strict(source, true, nullptr);
  ASSERT_TRUE(small.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 0);
  ASSERT_TRUE(large.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 1);
  ASSERT_TRUE(small.RunFused(1, 1, &strict).ok());
  EXPECT_EQ(source->asked, 2);
  ASSERT_TRUE(runtime.Get(std::make_shared<const FusedOperator>(large.fused())).ok());
  EXPECT_EQ(source->asked, 2);
  BodyBuilder unseen;
  SumOf({20, 3}, &unseen);
  ASSERT_TRUE(runtime.Get(std::make_shared<const FusedOperator>(unseen.fused())).ok());
  EXPECT_EQ(source->asked, 3) << "nobody says what will be computed";
}

TEST(FusedRuntimeTest, WhatCannotBeCompiledIsInterpretedWithOneWarning) {
  BodyBuilder body;
  SumOf({kManyRows, 100}, &body);
  const auto source = std::make_shared<CountingSource>(true);
  int warnings = 0;
  FusedRuntime runtime(source, false, [&](const Status&) { ++warnings; }), strict(source, true, nullptr);
  for (int call = 0; call < 3; ++call) {
    const Result<Value> sum = body.RunFused(1, 2, &runtime);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(sum->scalar().AsDouble(), body.RunOneByOne().scalar().AsDouble());
  }
  EXPECT_EQ(source->asked, 1);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(runtime.fallbacks(), 1);
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(body.RunFused(1, 2, &strict).status().code(), StatusCode::kFailedPrecondition);
}

// A copy in doubles of a whole input takes longer than what is computed.
TEST(TileInputsTest, RowsOfFloatsAreReadWhereTheyAre) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(3000, 40, 1))), v = body.Input(Value(Cells(40, 1, 2)));
  const NodeId scaled = body.Op("/", {x, body.Op("rowSums", {body.Op("*", {x, x})})});
  body.Finish({body.Op("t%*%", {x, body.Op("*", {body.Op("rowMaxs", {scaled}), body.Op("%*%", {x, v})})})});
  body.fused().kind = FusionTemplate::kRow;
  body.BecomeSingle();
  const Result<TileProgram> program = Lower(body.fused());
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  KernelContext context;
  const Node node{.op = "fused"};
  const std::vector<const Value*> inputs = {&body.input(0), &body.input(1)};
  TileInputs made;
  const Status status = MakeTileInputs(
      *program,
      {.node = node, .phase = Phase::kWhole, .inputs = inputs, .input_infos = {}, .context = context}, &made);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(made.doubles[0].element_type(), ElementType::kFloat32);
  EXPECT_EQ(made.doubles[1].element_type(), ElementType::kFloat64) << "a narrow right operand is read whole";
}

}  // namespace
}  // namespace heddle::ops::testing
