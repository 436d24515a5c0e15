// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/saved_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {
namespace {

SavedCall CallOf(std::vector<int64_t> roots, int64_t group, int64_t hash) {
  const Matrix groups = *ops::RowsOfGroups(roots);
  SavedCall call = {
      .node = ops::RootsOf(groups, group)[0], .group = groups.Rows(group, group + 1), .roots_hash = hash};
  call.evaluation = std::make_shared<const SavedEvaluation>(SavedEvaluation{.roots = std::move(roots)});
  return call;
}

SavedCall FromAnotherSession(SavedCall call) {
  call.evaluation = nullptr;
  return call;
}

std::vector<int64_t> RootsFrom(int64_t first, int64_t count) {
  std::vector<int64_t> roots;
  for (int64_t i = 0; i < count; ++i) roots.push_back(first + i);
  return roots;
}

// Hashes of different roots may be equal: only the roots decide.
TEST(SavedCallTest, EvaluationsAreToldApartByTheirRoots) {
  constexpr int64_t kHash = 7;
  const SavedCall call = CallOf(RootsFrom(1, 40), 0, kHash), same = CallOf(RootsFrom(1, 40), 1, kHash),
                  other = CallOf(RootsFrom(2, 40), 1, kHash);
  EXPECT_TRUE(call.IsOfSameEvaluation(call));
  EXPECT_TRUE(call.IsOfSameEvaluation(same));
  EXPECT_FALSE(call.IsOfSameEvaluation(other));
  // A call of another session has the roots of its group only.
  EXPECT_TRUE(FromAnotherSession(same).IsOfSameEvaluation(same));
  EXPECT_FALSE(FromAnotherSession(same).IsOfSameEvaluation(other));
  EXPECT_FALSE(same.IsOfSameEvaluation(FromAnotherSession(other)));
  EXPECT_FALSE(FromAnotherSession(call).IsOfSameEvaluation(CallOf(RootsFrom(1, 40), 0, kHash + 1)));
}

TEST(SavedCallTest, AListHoldsWhatIsSavedAndOtherListsAreNone) {
  const SavedCall call = CallOf(RootsFrom(5, 3), 0, HashOfRoots(RootsFrom(5, 3)));
  const Variable list = Variable::OfList(*call.ToList(/*ranks=*/2));
  const std::optional<SavedCall> found = SavedCall::In(list);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, 5);
  EXPECT_EQ(found->evaluation, call.evaluation);
  EXPECT_EQ(ops::RootsOf(found->group, 0), RootsFrom(5, 3));
  EXPECT_EQ(found->roots_hash, call.roots_hash);
  // What a state of a session keeps is a list of the same elements.
  const Variable copy = Variable::OfList(std::make_shared<ListOf<Variable>>(*list.list));
  ASSERT_TRUE(SavedCall::In(copy));
  EXPECT_EQ(SavedCall::In(copy)->evaluation, nullptr);
  EXPECT_FALSE(SavedCall::In(Variable::OfScalar(Scalar(1.0))));
  EXPECT_FALSE(SavedCall::In(Variable::OfList(std::make_shared<ListOf<Variable>>())));
}

}  // namespace
}  // namespace heddle::engine
