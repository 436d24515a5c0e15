// SPDX-License-Identifier: Apache-2.0
#include "actor/plan_instance.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace heddle::actor {
namespace {

constexpr int32_t kMaxSlots = 255;

// The registers that a task consumes, each once, in the order in which its edges are numbered: data, then
// control.
std::vector<RegisterId> EdgesOf(const Task& task) {
  std::vector<RegisterId> edges;
  for (const auto* list : {&task.consumed, &task.control_in}) {
    for (RegisterId id : *list) {
      if (id >= 0 && std::find(edges.begin(), edges.end(), id) == edges.end()) edges.push_back(id);
    }
  }
  return edges;
}

Result<uint16_t> PositionOf(RegisterId id, const std::vector<RegisterId>& list, TaskId task) {
  const auto found = std::find(list.begin(), list.end(), id);
  if (found == list.end() || found - list.begin() > 0xffff) {
    return Internal("plan: register {} and task {} do not name each other", id, task.index());
  }
  return static_cast<uint16_t>(found - list.begin());
}

struct TaskIdHash {
  size_t operator()(TaskId id) const { return std::hash<uint64_t>()(id.bits); }
};

}  // namespace

Result<std::unique_ptr<PlanInstance>> PlanInstance::Create(std::shared_ptr<const Plan> plan, uint32_t rank) {
  std::unique_ptr<PlanInstance> instance(new PlanInstance());
  instance->plan_ = plan;
  std::unordered_map<TaskId, const Task*, TaskIdHash> tasks;
  for (const Task& task : plan->tasks) {
    if (!tasks.emplace(task.id, &task).second)
      return Internal("plan: task {} is there twice", task.id.index());
    if (task.id.stream() >= kStreams) return Internal("plan: task {} has no stream", task.id.index());
    for (const auto* list : {&task.consumed, &task.control_in, &task.produced}) {
      for (RegisterId id : *list) {
        if (id >= static_cast<RegisterId>(plan->registers.size()))
          return Internal("plan: register {} does not exist", id);
      }
    }
  }

  // Registers that this rank produces, with the way to their readers.
  std::vector<RegisterState*> states(plan->registers.size(), nullptr);
  for (const Register& description : plan->registers) {
    if (description.producer.rank() != rank) continue;
    if (description.slots < 1 || description.slots > kMaxSlots) {
      return Internal("plan: register {} has {} slots, legal are 1 to {}", description.id, description.slots,
                      kMaxSlots);
    }
    std::vector<Reader> readers;
    bool remote = false;
    for (TaskId consumer : description.consumers) {
      if (std::any_of(readers.begin(), readers.end(), [&](const Reader& r) { return r.task == consumer; }))
        continue;
      const auto task = tasks.find(consumer);
      if (task == tasks.end()) return Internal("plan: register {} has an unknown consumer", description.id);
      HEDDLE_ASSIGN_OR_RETURN(const uint16_t port,
                              PositionOf(description.id, EdgesOf(*task->second), consumer));
      readers.push_back({consumer, port});
      remote |= consumer.rank() != rank;
    }
    instance->has_remote_edges_ |= remote;
    states[static_cast<size_t>(description.id)] =
        &instance->registers_.emplace_back(description, std::move(readers), remote);
  }

  for (const Task& task : plan->tasks) {
    if (task.id.rank() != rank) continue;
    const std::vector<RegisterId> edge_ids = EdgesOf(task);
    std::vector<InputEdge> edges;
    for (RegisterId id : edge_ids) {
      const Register& description = plan->registers[static_cast<size_t>(id)];
      const auto producer = tasks.find(description.producer);
      if (producer == tasks.end()) return Internal("plan: register {} has no producer", id);
      if (std::find(description.consumers.begin(), description.consumers.end(), task.id) ==
          description.consumers.end()) {
        return Internal("plan: register {} does not know its consumer, task {}", id, task.id.index());
      }
      const bool remote = description.producer.rank() != rank;
      if (remote && !description.control && task.kind != TaskKind::kCopy) {
        return Internal("plan: task {} reads register {} of another rank without a copy", task.id.index(),
                        id);
      }
      HEDDLE_ASSIGN_OR_RETURN(const uint16_t port,
                              PositionOf(id, producer->second->produced, description.producer));
      InputEdge edge;
      edge.register_id = id;
      edge.producer = description.producer;
      edge.producer_port = port;
      edge.control = description.control;
      edge.source = states[static_cast<size_t>(id)];
      edge.queue = SlotQueue(std::clamp<int32_t>(description.slots, 1, kMaxSlots));
      instance->has_remote_edges_ |= remote;
      edges.push_back(std::move(edge));
    }
    std::vector<RegisterState*> produced;
    for (RegisterId id : task.produced) {
      if (id < 0 || states[static_cast<size_t>(id)] == nullptr ||
          !(plan->registers[static_cast<size_t>(id)].producer == task.id)) {
        return Internal("plan: task {} does not own register {}", task.id.index(), id);
      }
      produced.push_back(states[static_cast<size_t>(id)]);
    }
    std::vector<int> data_edges;
    for (RegisterId id : task.consumed) {
      const auto found = std::find(edge_ids.begin(), edge_ids.end(), id);
      data_edges.push_back(id < 0 ? -1 : static_cast<int>(found - edge_ids.begin()));
    }
    StreamActors& stream = instance->streams_[task.id.stream()];
    Actor& actor = instance->actors_.emplace_back(task, instance->actors_.size(), std::move(edges),
                                                  std::move(produced), std::move(data_edges));
    stream.actors.push_back(&actor);
    if (stream.by_index.size() <= task.id.index()) stream.by_index.resize(task.id.index() + 1, nullptr);
    stream.by_index[task.id.index()] = &actor;
  }
  return instance;
}

void PlanInstance::Begin(uint32_t run) {
  for (Actor& actor : actors_) actor.Begin(run);
}

void PlanInstance::Clear() {
  for (Actor& actor : actors_) actor.Clear();
}

Status PlanInstance::CheckInvariants(bool quiet) const {
  for (const Actor& actor : actors_) HEDDLE_RETURN_IF_ERROR(actor.CheckInvariants(quiet));
  return OkStatus();
}

std::vector<std::string> PlanInstance::DescribeWaits(size_t limit) const {
  std::vector<std::string> lines;
  for (const Actor& actor : actors_) {
    if (lines.size() == limit) break;
    if (std::string line = actor.DescribeWait(); !line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

bool PlanInstance::WaitsForOtherRank() const {
  return std::any_of(actors_.begin(), actors_.end(),
                     [](const Actor& actor) { return actor.WaitsForOtherRank(); });
}

}  // namespace heddle::actor
