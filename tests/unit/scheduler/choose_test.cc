// SPDX-License-Identifier: Apache-2.0
#include "scheduler/choice/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/environment/random.h"

namespace heddle::scheduler {
namespace {

double RandomCost(SeededRandom& random) { return static_cast<double>(random.Below(1000)); }

// A problem of `count` variables in which pair (a, b) exists with odds of one in `sparsity`.
ChoiceProblem RandomProblem(SeededRandom& random, int count, uint64_t sparsity, std::vector<int>* sizes) {
  ChoiceProblem problem;
  for (int v = 0; v < count; ++v) {
    std::vector<double> costs(1 + random.Below(4));
    for (double& cost : costs) cost = RandomCost(random);
    sizes->push_back(static_cast<int>(costs.size()));
    problem.Add(std::move(costs));
  }
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b || random.Below(sparsity) != 0) continue;
      std::vector<double> costs(
          static_cast<size_t>((*sizes)[static_cast<size_t>(a)] * (*sizes)[static_cast<size_t>(b)]));
      for (double& cost : costs)
        cost = random.Below(10) == 0 ? std::numeric_limits<double>::infinity() : RandomCost(random);
      costs[0] = RandomCost(random);  // First choices of all are possible together.
      problem.AddPair(a, b, std::move(costs));
    }
  return problem;
}

double LeastCost(const ChoiceProblem& problem, const std::vector<int>& sizes) {
  std::vector<int> choices(sizes.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < sizes.size();) {
    least = std::min(least, problem.CostOf(choices));
    for (v = 0; v < sizes.size() && ++choices[v] == sizes[v]; ++v) choices[v] = 0;
  }
  return least;
}

TEST(ChooseTest, FindsTheLeastSumOfAll) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRandom random(seed);
    std::vector<int> sizes;
    const ChoiceProblem problem =
        RandomProblem(random, 1 + static_cast<int>(random.Below(7)), 1 + random.Below(5), &sizes);
    bool is_exact = false;
    const std::vector<int> choices = problem.Solve(&is_exact);
    EXPECT_TRUE(is_exact);
    EXPECT_EQ(problem.CostOf(choices), LeastCost(problem, sizes));
    EXPECT_EQ(choices, problem.Solve());
    for (size_t v = 0; v < sizes.size(); ++v) {
      const std::vector<double> costs = problem.CostsOf(static_cast<int>(v), choices);
      EXPECT_EQ(*std::min_element(costs.begin(), costs.end()), costs[static_cast<size_t>(choices[v])]);
    }
  }
}

// A chain of a thousand variables is exact; what is all in all is not, and is still no worse than the first
// choice of everything.
TEST(ChooseTest, ChainsAreExactAndWhatIsDenseEnds) {
  SeededRandom random(7);
  ChoiceProblem chain;
  const int first = chain.Add({1, 0});
  for (int v = first; v < 1000; ++v) {
    const int next = chain.Add({0, 0.5});
    chain.AddPair(v, next, {0, 10, 10, 0});
  }
  bool is_exact = false;
  std::vector<int> choices = chain.Solve(&is_exact);
  EXPECT_TRUE(is_exact);
  EXPECT_EQ(chain.CostOf(choices), 1);

  std::vector<int> sizes;
  ChoiceProblem dense;
  for (int v = 0; v < 40; ++v) dense.Add({RandomCost(random), RandomCost(random), RandomCost(random)});
  for (int a = 0; a < 40; ++a)
    for (int b = a + 1; b < 40; ++b) {
      std::vector<double> costs(9);
      for (double& cost : costs) cost = RandomCost(random);
      dense.AddPair(a, b, costs);
    }
  choices = dense.Solve(&is_exact);
  EXPECT_FALSE(is_exact);
  EXPECT_LT(dense.CostOf(choices), dense.CostOf(std::vector<int>(40, 0)));
  EXPECT_EQ(choices, dense.Solve());
}

TEST(ChooseTest, EqualSumsGoToTheLowerChoice) {
  ChoiceProblem problem;
  for (int v = 0; v < 5; ++v) problem.Add({3, 3, 3});
  for (int v = 1; v < 5; ++v) problem.AddPair(v - 1, v, std::vector<double>(9, 1));
  EXPECT_EQ(problem.Solve(), std::vector<int>(5, 0));
}

}  // namespace
}  // namespace heddle::scheduler
