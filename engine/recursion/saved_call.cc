// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/saved_call.h"

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "engine/recursion/structure_inputs.h"
#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {
namespace {

// The elements of the list, in their order. No script can write such a name.
enum Element : size_t { kNode, kEvaluation, kGroup, kElements };
constexpr const char* kNames[kElements] = {"%batched", "%evaluation", "%group"};

// Hangs on the list: whoever has the list has what is saved.
struct DeleteSavedList {
  std::shared_ptr<const SavedEvaluation> evaluation;
  void operator()(ListOf<Variable>* list) const { delete list; }
};

}  // namespace

int64_t HashOfRoots(const std::vector<int64_t>& roots) {
  uint64_t hash = roots.size();
  for (const int64_t root : roots) hash = FoldHash(hash, static_cast<uint64_t>(root));
  return static_cast<int64_t>(hash >> 1);
}

Result<std::shared_ptr<ListOf<Variable>>> SavedCall::ToList(int ranks) const {
  std::shared_ptr<ListOf<Variable>> list(new ListOf<Variable>, DeleteSavedList{evaluation});
  HEDDLE_RETURN_IF_ERROR(list->Add(kNames[kNode], Variable::OfScalar(Scalar(node))));
  HEDDLE_RETURN_IF_ERROR(list->Add(kNames[kEvaluation], Variable::OfScalar(Scalar(roots_hash))));
  HEDDLE_RETURN_IF_ERROR(list->Add(kNames[kGroup], VariableOf(group, ValueType::kDouble, ranks)));
  return list;
}

std::optional<SavedCall> SavedCall::In(const Variable& variable) {
  const std::shared_ptr<ListOf<Variable>>& list = variable.list;
  if (list == nullptr || !std::equal(list->names.begin(), list->names.end(), kNames, kNames + kElements))
    return std::nullopt;
  SavedCall call = {.node = list->elements[kNode].value.scalar().AsInteger(),
                    .group = list->elements[kGroup].value.matrix(),
                    .roots_hash = list->elements[kEvaluation].value.scalar().AsInteger()};
  if (const auto* const saved = std::get_deleter<DeleteSavedList>(list)) call.evaluation = saved->evaluation;
  return call;
}

bool SavedCall::IsOfSameEvaluation(const SavedCall& other) const {
  if (evaluation != nullptr && other.evaluation != nullptr)
    return evaluation == other.evaluation || evaluation->roots == other.evaluation->roots;
  // One of the two comes from another session, and only the hash and the group are left of its roots.
  return roots_hash == other.roots_hash &&
         (group.At(0, 0) != other.group.At(0, 0) || ops::RootsOf(group, 0) == ops::RootsOf(other.group, 0));
}

}  // namespace heddle::engine
