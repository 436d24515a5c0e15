// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/sparse_leaves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "aggregate_cases.h"
#include "tests/reference/aggregate.h"

namespace heddle::ops {
namespace {

struct Term {
  int64_t place;
  double value;
  size_t weights;
};

// Terms of each leaf; some leaves have none. Places in several blocks, the first and the last one among them.
struct Terms {
  int64_t places, cells;
  std::vector<std::vector<Term>> leaves;
  std::vector<std::vector<double>> weights;

  Terms(int64_t leaf_count, int64_t place_count, int64_t cell_count, int64_t terms_of_leaf, uint32_t seed)
      : places(place_count), cells(cell_count), leaves(static_cast<size_t>(leaf_count)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> value(-1, 1);
    for (int i = 0; i < 50; ++i) {
      weights.emplace_back();
      for (int64_t c = 0; c < cells; ++c) weights.back().push_back(value(random));
    }
    for (std::vector<Term>& leaf : leaves) {
      if (random() % 4 == 0) continue;
      for (int64_t t = 0; t < terms_of_leaf; ++t) {
        const int64_t place = random() % 8 == 0   ? 0
                              : random() % 8 == 0 ? places - 1
                                                  : static_cast<int64_t>(random()) % places;
        leaf.push_back(
            {place, std::ldexp(value(random), static_cast<int>(random() % 16)), random() % weights.size()});
      }
    }
  }

  // Every place by the definition: a chain in each leaf, +0.0 in others, the tree over all.
  std::vector<double> Definition() const {
    std::map<int64_t, std::vector<double>> of_cell;
    for (size_t i = 0; i < leaves.size(); ++i) {
      for (const Term& term : leaves[i]) {
        for (int64_t c = 0; c < cells; ++c) {
          std::vector<double>& values = of_cell[c * places + term.place];
          values.resize(leaves.size());
          values[i] = std::fma(term.value, weights[term.weights][static_cast<size_t>(c)], values[i]);
        }
      }
    }
    std::vector<double> result(static_cast<size_t>(places * cells));
    for (const auto& [cell, values] : of_cell)
      result[static_cast<size_t>(cell)] =
          reference::Tree(values, 0, values.size(), [](double a, double b) { return a + b; });
    return result;
  }

  Result<Matrix> Reduce(int64_t begin, int64_t end, bool whole,
                        const std::atomic<bool>* cancelled = nullptr) const {
    return ReduceSparseLeaves({.width = places * cells, .cancelled = cancelled}, cells, begin, end, whole,
                              [this](int64_t leaf, SparseLeaf& out) {
                                for (const Term& term : leaves[static_cast<size_t>(leaf)]) {
                                  out.Weigh(weights[term.weights].data());
                                  out.Add(term.place, term.value);
                                }
                              });
  }
};

void ExpectDefinition(const Terms& terms, const std::vector<double>& expected, const Matrix& nodes) {
  const Result<RootPayload> root = JoinNodes({.width = terms.places * terms.cells}, nodes);
  ASSERT_TRUE(root.ok());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ((*root)[static_cast<int64_t>(i)], expected[i]) << "cell " << i;
}

TEST(SparseLeavesTest, EveryPlaceIsTheTreeOverItsLeaves) {
  uint32_t seed = 0;
  for (const int64_t leaves : {1, 2, 3, 7, 32, 49, 100})
    for (const int64_t places : {1, 5, 4096, 4097, 20'000})
      for (const int64_t cells : {1, 2, 3, 8})
        for (const int64_t count : {0, 1, 40, 400}) {
          SCOPED_TRACE(testing::Message() << leaves << " leaves, " << places << " places of " << cells << ", "
                                          << count << " terms");
          const Terms terms(leaves, places, cells, count, ++seed);
          const std::vector<double> expected = terms.Definition();
          OnOneAndTwoThreads([&] { ExpectDefinition(terms, expected, *terms.Reduce(0, leaves, true)); });
        }
}

TEST(SparseLeavesTest, AnyCutGivesTheTree) {
  const int64_t leaves = 37, places = 9'000;
  for (const int64_t cells : {1, 3}) {
    const Terms terms(leaves, places, cells, 300, 7);
    const std::vector<double> expected = terms.Definition();
    for (int64_t cut = 0; cut <= leaves; ++cut) {
      SCOPED_TRACE(cut);
      const Matrix first = *terms.Reduce(0, cut, false), second = *terms.Reduce(cut, leaves, false);
      Matrix nodes = *FilledMatrix(first.rows() + second.rows(), 2 + places * cells, 0.0);
      std::copy_n(first.data(), first.cells(), nodes.mutable_data());
      std::copy_n(second.data(), second.cells(), nodes.mutable_data() + first.cells());
      ExpectDefinition(terms, expected, nodes);
    }
  }
}

// So many leaves that blocks are larger than a cache, or where each block's terms begin would take more
// memory than the terms.
TEST(SparseLeavesTest, ManyLeavesOfManyPlaces) {
  const Terms terms(6'000, 6'000'000, 1, 1, 3);
  ExpectDefinition(terms, terms.Definition(), *terms.Reduce(0, 6'000, true));
}

// Rows that are not copied, and cells of a place side by side in the payload.
TEST(SparseLeavesTest, RowsWeighWithoutACopy) {
  for (const int64_t cells : {1, 9, 70}) {
    const Terms terms(37, 3'000, cells, 40, 11);
    std::vector<double> rows;
    for (const std::vector<double>& weights : terms.weights)
      rows.insert(rows.end(), weights.begin(), weights.end());
    const auto leaf = [&](int64_t i, SparseLeaf& out) {
      out.WeighByRowsOf(rows.data());
      for (const Term& term : terms.leaves[static_cast<size_t>(i)]) {
        out.WeighByRow(static_cast<int64_t>(term.weights));
        out.Add(term.place, term.value);
      }
    };
    const std::vector<double> apart = terms.Definition();
    std::vector<double> together(apart.size());
    for (int64_t place = 0; place < terms.places; ++place)
      for (int64_t c = 0; c < cells; ++c)
        together[static_cast<size_t>(place * cells + c)] =
            apart[static_cast<size_t>(c * terms.places + place)];
    const Reduction reduction{.width = terms.places * cells};
    OnOneAndTwoThreads([&] {
      ExpectDefinition(terms, apart, *ReduceSparseLeaves(reduction, cells, 0, 37, true, leaf));
      ExpectDefinition(terms, together,
                       *ReduceSparseLeaves(reduction, cells, 0, 37, true, leaf, PlaceLayout::kCellsTogether));
    });
  }
}

TEST(SparseLeavesTest, CancellationIsReported) {
  const std::atomic<bool> cancelled = true;
  EXPECT_EQ(Terms(3, 10, 1, 4, 1).Reduce(0, 3, true, &cancelled).status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace heddle::ops
