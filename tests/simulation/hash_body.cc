// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/hash_body.h"

#include <functional>

namespace heddle::actor {
namespace {

int64_t Mix(int64_t hash, int64_t value) {
  uint64_t x = static_cast<uint64_t>(hash) * 0x100000001b3u ^ static_cast<uint64_t>(value);
  x ^= x >> 29;
  return static_cast<int64_t>(x * 0xbf58476d1ce4e5b9u);
}

int64_t Seed(const Task& task) { return Mix(17, static_cast<int64_t>(task.id.bits)); }

int64_t Naive(const Task& task, std::span<const int64_t> inputs, int64_t act) {
  int64_t hash = Seed(task);
  for (int64_t input : inputs) hash = Mix(hash, input);
  return inputs.empty() ? Mix(hash, act) : hash;
}

// Result i of a task whose first one is `hash`.
int64_t Later(int64_t hash, size_t i) { return i == 0 ? hash : Mix(hash, static_cast<int64_t>(i)); }

int64_t Accumulate(const Task& task, int64_t so_far, int64_t piece) {
  return Mix(Mix(so_far, piece), Seed(task));
}

}  // namespace

HashBody::HashBody(const PlanInstance& instance, HashTrace& trace, TaskId failing)
    : trace_(trace), failing_(failing) {
  for (const Actor& actor : instance.actors()) tasks_.push_back(&actor.task());
}

Status HashBody::Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                         std::span<Value> results) {
  const Task& task = *tasks_[number];
  trace_.acts.push_back(task.id);
  if (task.id == failing_) return Aborted("task {} fails on purpose", task.id.index());
  const Value first = Hash(task, inputs, act);
  results[0] = first;
  for (size_t i = 1; i < results.size(); ++i) results[i] = Value(Later(first.scalar().AsInteger(), i));
  return OkStatus();
}

Value HashBody::Hash(const Task& task, std::span<const Value* const> inputs, int64_t act) {
  std::vector<int64_t> values;
  for (const Value* input : inputs) {
    if (input != nullptr) values.push_back(input->scalar().AsInteger());
  }
  switch (task.kind) {
    case TaskKind::kCopy:
    case TaskKind::kRepeat: return Value(values.empty() ? int64_t{0} : values[0]);
    case TaskKind::kUnpack: return Value(Mix(values.empty() ? 0 : values[0], act % task.rate));
    case TaskKind::kAccumulate:
      return Value(values.size() == 1 ? values[0] : Accumulate(task, values[0], values[1]));
    case TaskKind::kSink: trace_.received[task.id].push_back(Naive(task, values, act)); return Value();
    default: return Value(Naive(task, values, act));
  }
}

std::map<TaskId, std::vector<int64_t>> EvaluateInSequence(const Plan& plan) {
  std::map<TaskId, const Task*> tasks;
  for (const Task& task : plan.tasks) tasks[task.id] = &task;
  std::map<TaskId, std::vector<int64_t>> outputs;  // The first result of each task.
  std::map<TaskId, std::vector<int64_t>> received;
  const std::function<const std::vector<int64_t>&(const Task&)> evaluate =
      [&](const Task& task) -> const std::vector<int64_t>& {
    if (const auto found = outputs.find(task.id); found != outputs.end()) return found->second;
    const auto sequence_of = [&](RegisterId id) {
      const Task& producer = *tasks.at(plan.registers[static_cast<size_t>(id)].producer);
      std::vector<int64_t> sequence = evaluate(producer);
      size_t result = 0;
      for (const RegisterId before : producer.produced) {
        if (before == id) break;
        result += !plan.registers[static_cast<size_t>(before)].control;
      }
      for (int64_t& hash : sequence) hash = Later(hash, result);
      return sequence;
    };
    std::vector<std::vector<int64_t>> inputs;
    for (RegisterId id : task.consumed) {
      if (id >= 0) inputs.push_back(sequence_of(id));
    }
    size_t pieces = static_cast<size_t>(task.count);
    if (!task.control_in.empty()) pieces = sequence_of(task.control_in[0]).size();
    if (!inputs.empty()) pieces = inputs[0].size();
    const auto rate = static_cast<size_t>(task.rate);
    std::vector<int64_t> result;
    for (size_t i = 0; i < pieces; ++i) {
      std::vector<int64_t> at;
      for (const auto& input : inputs) at.push_back(input[i]);
      switch (task.kind) {
        case TaskKind::kCopy: result.push_back(at.empty() ? 0 : at[0]); break;
        case TaskKind::kRepeat: result.insert(result.end(), rate, at.empty() ? 0 : at[0]); break;
        case TaskKind::kUnpack:
          for (size_t part = 0; part < rate; ++part)
            result.push_back(Mix(at.empty() ? 0 : at[0], static_cast<int64_t>(part)));
          break;
        case TaskKind::kAccumulate:
          if (i % rate == 0)
            result.push_back(at[0]);
          else
            result.back() = Accumulate(task, result.back(), at[0]);
          break;
        case TaskKind::kPack:
          if (i % rate == rate - 1)
            result.push_back(Naive(task, std::span(inputs[0]).subspan(i + 1 - rate, rate), 0));
          break;
        default: result.push_back(Naive(task, at, static_cast<int64_t>(i)));
      }
    }
    if (task.kind == TaskKind::kSink) received[task.id] = result;
    return outputs[task.id] = std::move(result);
  };
  for (const Task& task : plan.tasks) evaluate(task);
  std::erase_if(received, [](const auto& entry) { return entry.second.empty(); });
  return received;
}

}  // namespace heddle::actor
