// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/values/list.h"
#include "core/values/matrix.h"
#include "engine/recursion/adjoints.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Parameters that every one of so many ranks has whole.
struct SharedParameters {
  int ranks = 1;
  VariableTable variables;
};

/// What the calls of one evaluation of a forward function share.
struct SavedEvaluation {
  std::vector<int64_t> roots;
  std::shared_ptr<const RecursionAdjoints::Slot> slot;  ///< Of the values that this rank has saved.
  /// The parameters as the ranks of the session had them, where these are several.
  std::shared_ptr<const SharedParameters> parameters;
};

/// What a call of a forward function saves for its backward call, where batches have computed it: not the
/// values themselves, but where they are, and from what all of them can be computed again.
struct SavedCall {
  int64_t node = 0;
  Matrix group;            ///< The row of ops::RowsOfGroups that has the node.
  int64_t roots_hash = 0;  ///< Of all roots of the evaluation: the same on all ranks and in all sessions.
  /// nullptr in a session that goes on from a state of another.
  std::shared_ptr<const SavedEvaluation> evaluation;

  /// As the list that the program passes from the forward to the backward call (compiler::kSaved). States of
  /// a session keep what stands in it; `evaluation` hangs on the list itself.
  Result<std::shared_ptr<ListOf<Variable>>> ToList(int ranks) const;
  /// nullopt of every other value, as of what calls in the interpreter save.
  static std::optional<SavedCall> In(const Variable& variable);

  /// Whether both calls are of evaluations of the same roots.
  bool IsOfSameEvaluation(const SavedCall& other) const;
};

int64_t HashOfRoots(const std::vector<int64_t>& roots);

}  // namespace heddle::engine
