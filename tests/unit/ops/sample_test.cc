// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Inputs;
using testing::Invocation;
using testing::Rows;
using Cells = std::vector<double>;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Sample(Inputs inputs, Attributes attributes = {}) {
  inputs.resize(4);
  return Invocation("sample", std::move(inputs), std::move(attributes));
}
Cells Drawn(Invocation call) {
  const Matrix x = call.RunMatrix();
  EXPECT_EQ(x.columns(), 1);
  return {x.data(), x.data() + x.cells()};
}
Cells Drawn(Inputs inputs) { return Drawn(Sample(std::move(inputs))); }

// The numbers that SystemDS 3.4 draws.
TEST(SampleTest, DrawsWhatSystemdsDraws) {
  EXPECT_EQ(Drawn({S(10), S(5), std::nullopt, S(7)}), (Cells{1, 10, 3, 4, 2}));
  EXPECT_EQ(Drawn({S(10), S(5), S(false), S(7)}), (Cells{1, 10, 3, 4, 2}));
  EXPECT_EQ(Drawn({S(10.7), S(3.9), S(false), S(7)}), (Cells{10, 4, 5}));
  EXPECT_EQ(Drawn({S(10), S(10), S(false), S(42)}), (Cells{1, 5, 8, 7, 2, 6, 3, 10, 4, 9}));
  EXPECT_EQ(Drawn({S(1000), S(6), S(false), S(-5)}), (Cells{423, 967, 90, 456, 68, 639}));
  EXPECT_EQ(Drawn({S(1000000), S(6), S(false), S(1)}),
            (Cells{890104, 200509, 719887, 318785, 410527, 766890}));
  EXPECT_EQ(Drawn({S(20), S(7), S(true), S(123456789)}), (Cells{14, 1, 9, 4, 8, 16, 9}));
  EXPECT_EQ(Drawn({S(1000000), S(6), S(true), S(1)}),
            (Cells{709785, 979347, 904177, 794142, 346665, 291795}));
  EXPECT_EQ(Drawn({S(int64_t{5000000000}), S(3), S(true), S(2)}), (Cells{2611762169, 2076106008, 887871694}));
  EXPECT_EQ(Drawn({S(1), S(1), std::nullopt, S(1)}), (Cells{1}));
  EXPECT_EQ(Drawn({S(10), S(0), std::nullopt, S(7)}), Cells{});
}

TEST(SampleTest, WithoutReplacementNothingComesTwice) {
  for (const int size : {1, 2, 99, 100}) {
    const Cells drawn = Drawn({S(100), S(size), S(false), S(size)});
    const std::set<double> distinct(drawn.begin(), drawn.end());
    EXPECT_EQ(distinct.size(), static_cast<size_t>(size));
    EXPECT_GE(*distinct.begin(), 1);
    EXPECT_LE(*distinct.rbegin(), 100);
  }
}

TEST(SampleTest, WithoutASeedTheJobAndTheCallDecide) {
  const auto draw = [](uint64_t job, uint64_t execution, int stream, Scalar seed) {
    Invocation call = Sample({S(1000000), S(4), S(true), S(std::move(seed))}, {{"stream", Scalar(stream)}});
    call.context.job_seed = job;
    call.context.execution = execution;
    return Drawn(std::move(call));
  };
  const std::set<Cells> all = {draw(1, 0, 0, -1), draw(2, 0, 0, -1), draw(1, 1, 0, -1), draw(1, 0, 1, -1)};
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(draw(1, 0, 0, -1), draw(1, 0, 0, -1));
  EXPECT_EQ(draw(1, 0, 0, 5), draw(2, 1, 1, 5));
}

TEST(SampleTest, ErrorsNameTheNumbers) {
  EXPECT_EQ(Sample({S(3), S(5)}).Error(), "sample: cannot draw 5 of 3 numbers without replacement");
  EXPECT_EQ(Sample({S(3), S(5), S(false), S(7)}).Error(),
            "sample: cannot draw 5 of 3 numbers without replacement");
  EXPECT_EQ(Sample({S(0), S(2), S(true)}).Error(), "sample: range must be at least 1, not 0");
  EXPECT_EQ(Sample({S(NAN), S(2), S(true)}).Error(), "sample: range must be a 64-bit integer, not NaN");
  EXPECT_EQ(Sample({S(3), S(-1), S(true)}).Error(),
            "sample: size must be a number that is not negative, not -1");
  EXPECT_EQ(Sample({S(3), S("2")}).Error(), "sample: argument 2 is a string, not a number");
  EXPECT_EQ(Sample({S(3), S(2), S(true), S(1e300)}).Error(),
            "sample: seed must be a 64-bit integer, not 1.0E300");
  EXPECT_EQ(Sample({S(int64_t{1} << 31), S(2)}).Error(),
            "sample: cannot draw of 2147483648 numbers without replacement");
  StatusCode code = StatusCode::kOk;
  EXPECT_EQ(Sample({S(3), S(5)}).RunTimeError(&code),
            "sample: cannot draw 5 of 3 numbers without replacement");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
}

Invocation Rand(const std::string& pdf, double rows, double columns, int seed,
                std::optional<Value> sparsity = std::nullopt) {
  return Invocation(
      "rand", {S(rows), S(columns), std::nullopt, std::nullopt, std::move(sparsity), S(seed), std::nullopt},
      {{"pdf", Scalar(pdf)}});
}
Cells Generated(const std::string& pdf, double rows, double columns, int seed) {
  const Matrix x = Rand(pdf, rows, columns, seed).RunMatrix();
  return {x.data(), x.data() + x.cells()};
}

// The numbers that SystemDS 3.4 prints.
TEST(RandTest, CounterBasedStreamsAreThoseOfSystemds) {
  const Cells uniform = {0.278524, 0.618397, 0.166960, 0.693234, 0.189932, 0.558552};
  const Cells normal = {-1.176517, -1.082733, -0.660633, -1.773010, -1.700724, -0.655525};
  const Cells of_uniform = Generated("cb_uniform", 3, 2, 3), of_normal = Generated("CB_NORMAL", 3, 2, 3);
  for (size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(of_uniform[k], uniform[k], 5e-7);
    EXPECT_NEAR(of_normal[k], normal[k], 5e-7);
  }
  EXPECT_EQ(Generated("UNIFORM", 3, 2, 3), Generated("uniform", 3, 2, 3));
}

TEST(RandTest, CounterBasedStreamsAreTheSameInPieces) {
  for (const char* pdf : {"cb_uniform", "cb_normal"}) {
    for (const double sparsity : {1.0, 0.5, 0.1}) {
      Rand(pdf, 2300, 3, 5, S(sparsity)).ExpectPiecesMatch(3);
      const Matrix x = Rand(pdf, 2300, 3, 5, S(sparsity)).RunMatrix(2);
      EXPECT_NEAR(static_cast<double>(x.CountNonzeros()) / 6900, sparsity, 0.03);
    }
  }
}

}  // namespace
}  // namespace heddle::ops
