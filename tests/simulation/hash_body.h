// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "actor/task_body.h"
#include "core/programs/plan.h"

namespace heddle::actor {

/// What every rank did, in the one order in which a simulation let it happen.
struct HashTrace {
  std::vector<TaskId> acts;  ///< Calls of a body; copies of other ranks' registers make none.
  std::map<TaskId, std::vector<int64_t>> received;  ///< By sink: one entry an act.
};

/// Tasks that compute integer hashes of their inputs: enough to see a lost, doubled, swapped or stale piece.
/// A task of several results has another hash for each.
class HashBody : public TaskBody {
 public:
  HashBody(const PlanInstance& instance, HashTrace& trace, TaskId failing = TaskId{UINT64_MAX});
  Status Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                 std::span<Value> results) override;

 private:
  Value Hash(const Task& task, std::span<const Value* const> inputs, int64_t act);

  std::vector<const Task*> tasks_;
  HashTrace& trace_;
  TaskId failing_;
};

/// What the sinks must receive, computed task by task from whole input sequences: no slots, no messages, no
/// order. Acts of a task that only waits for control registers are counted by them.
std::map<TaskId, std::vector<int64_t>> EvaluateInSequence(const Plan& plan);

}  // namespace heddle::actor
