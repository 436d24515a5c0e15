// SPDX-License-Identifier: Apache-2.0
#include "actor/plan_instance.h"

#include <algorithm>
#include <utility>

namespace heddle::actor {
namespace {

constexpr int32_t kMaxSlots = 255;

constexpr size_t kMostPorts = 0xffff;

}  // namespace

// Resolves the routes of one rank. Linear in the plan: every list is walked a fixed number of times.
class PlanInstance::Builder {
 public:
  Builder(const Plan& plan, uint32_t rank, PlanInstance& instance)
      : plan_(plan), rank_(rank), instance_(instance), registers_(plan.registers.size()) {}

  Status Build() {
    instance_.streams_.resize(plan_.streams.size());
    instance_.edges_to_.resize(static_cast<size_t>(std::max(plan_.ranks, 1)));
    for (const Task& task : plan_.tasks) instance_.acts_once_ &= task.count == 1 && task.rate == 1;
    if (kMemoryIsChecked && rank_ < plan_.peak_bytes.size())
      instance_.ledger_ = std::make_unique<MemoryLedger>(plan_.peak_bytes[rank_]);
    for (const Task& task : plan_.tasks) HEDDLE_RETURN_IF_ERROR(AddOutputs(task));
    for (const Task& task : plan_.tasks) AddReader(task);
    for (size_t i = 0; i < registers_.size(); ++i) {
      if (plan_.registers[i].id != static_cast<RegisterId>(i))
        return Internal("plan: register {} is out of place", i);
      HEDDLE_RETURN_IF_ERROR(MakeRegister(plan_.registers[i], registers_[i]));
    }
    for (const Task& task : plan_.tasks)
      if (task.id.rank() == rank_) HEDDLE_RETURN_IF_ERROR(MakeActor(task));
    return OkStatus();
  }

 private:
  struct Route {
    const Task* producer = nullptr;
    uint16_t producer_port = 0;
    std::vector<Reader> readers;
    RegisterState* state = nullptr;  // On this rank.
    uint64_t walk = 0;               // The last walk over a task's edges that met it,
    int position = -1;               // and where.
  };

  Route* Find(RegisterId id) {
    return id < 0 || id >= static_cast<RegisterId>(registers_.size()) ? nullptr
                                                                      : &registers_[static_cast<size_t>(id)];
  }

  Status AddOutputs(const Task& task) {
    if (task.id.stream() >= plan_.streams.size())
      return Internal("plan: task {} has no stream", task.id.index());
    for (const auto* list : {&task.consumed, &task.control_in}) {
      for (RegisterId id : *list)
        if (id >= 0 && Find(id) == nullptr) return Internal("plan: register {} does not exist", id);
    }
    if (task.produced.size() > kMostPorts)
      return Internal("plan: task {} has too many outputs", task.id.index());
    for (size_t port = 0; port < task.produced.size(); ++port) {
      Route* route = Find(task.produced[port]);
      if (route == nullptr) return Internal("plan: register {} does not exist", task.produced[port]);
      if (route->producer != nullptr ||
          plan_.registers[static_cast<size_t>(task.produced[port])].producer != task.id) {
        return Internal("plan: task {} does not own register {}", task.id.index(), task.produced[port]);
      }
      route->producer = &task;
      route->producer_port = static_cast<uint16_t>(port);
    }
    return OkStatus();
  }

  // Calls body(register, position) for the registers that a task consumes, each once, in the order in which
  // its edges are numbered: data, then control.
  template <typename Body>
  void ForEachEdge(const Task& task, const Body& body) {
    ++walk_;
    int position = 0;
    for (const auto* list : {&task.consumed, &task.control_in}) {
      for (RegisterId id : *list) {
        if (id < 0) continue;
        Route& route = *Find(id);
        if (std::exchange(route.walk, walk_) == walk_) continue;
        route.position = position;
        body(id, position++);
      }
    }
  }

  void AddReader(const Task& task) {
    ForEachEdge(task, [&](RegisterId id, int position) {
      Find(id)->readers.push_back({task.id, static_cast<uint16_t>(position)});
    });
  }

  Status MakeRegister(const Register& description, Route& route) {
    if (route.producer == nullptr) return Internal("plan: register {} has no producer", description.id);
    std::vector<TaskId> named = description.consumers;
    std::vector<TaskId> reading;
    for (const Reader& reader : route.readers) reading.push_back(reader.task);
    std::sort(named.begin(), named.end());
    std::sort(reading.begin(), reading.end());
    if (named != reading)
      return Internal("plan: register {} and its consumers do not name each other", description.id);
    if (description.producer.rank() != rank_) return OkStatus();
    if (description.slots < 1 || description.slots > kMaxSlots) {
      return Internal("plan: register {} has {} slots, legal are 1 to {}", description.id, description.slots,
                      kMaxSlots);
    }
    bool remote = false;
    for (const TaskId reader : reading) {
      if (reader.rank() == rank_) continue;
      remote = true;
      if (reader.rank() >= instance_.edges_to_.size()) instance_.edges_to_.resize(reader.rank() + 1);
      ++instance_.edges_to_[reader.rank()];
    }
    instance_.has_remote_edges_ |= remote;
    route.state = &instance_.registers_.emplace_back(description, std::move(route.readers), remote,
                                                     instance_.ledger_.get());
    return OkStatus();
  }

  Status MakeActor(const Task& task) {
    std::vector<InputEdge> edges;
    Status status;
    ForEachEdge(task, [&](RegisterId id, int) {
      const Register& description = plan_.registers[static_cast<size_t>(id)];
      const Route& route = *Find(id);
      const bool remote = description.producer.rank() != rank_;
      if (remote && !description.control && task.kind != TaskKind::kCopy && status.ok()) {
        status =
            Internal("plan: task {} reads register {} of another rank without a copy", task.id.index(), id);
      }
      instance_.has_remote_edges_ |= remote;
      InputEdge edge;
      edge.register_id = id;
      edge.producer = description.producer;
      edge.producer_port = route.producer_port;
      edge.control = description.control;
      edge.source = route.state;
      edge.queue = SlotQueue(std::clamp<int32_t>(description.slots, 1, kMaxSlots));
      edges.push_back(std::move(edge));
    });
    HEDDLE_RETURN_IF_ERROR(status);
    if (edges.size() > kMostPorts) return Internal("plan: task {} has too many inputs", task.id.index());
    std::vector<RegisterState*> produced;
    for (RegisterId id : task.produced) produced.push_back(Find(id)->state);
    std::vector<int> data_edges;
    for (RegisterId id : task.consumed) data_edges.push_back(id < 0 ? -1 : Find(id)->position);
    StreamActors& stream = instance_.streams_[task.id.stream()];
    if (stream.by_index.size() <= task.id.index()) stream.by_index.resize(task.id.index() + 1, nullptr);
    Actor*& place = stream.by_index[task.id.index()];
    if (place != nullptr) return Internal("plan: task {} is there twice", task.id.index());
    place = &instance_.actors_.emplace_back(task, instance_.actors_.size(), std::move(edges),
                                            std::move(produced), std::move(data_edges));
    stream.actors.push_back(place);
    return OkStatus();
  }

  const Plan& plan_;
  const uint32_t rank_;
  PlanInstance& instance_;
  std::vector<Route> registers_;
  uint64_t walk_ = 0;
};

Result<std::unique_ptr<PlanInstance>> PlanInstance::Create(std::shared_ptr<const Plan> plan, uint32_t rank) {
  std::unique_ptr<PlanInstance> instance(new PlanInstance());
  instance->plan_ = std::move(plan);
  HEDDLE_RETURN_IF_ERROR(Builder(*instance->plan_, rank, *instance).Build());
  return instance;
}

void PlanInstance::Begin(uint32_t run) {
  if (ledger_ != nullptr) ledger_->Reset();
  for (Actor& actor : actors_) actor.Begin(run);
}

void PlanInstance::Clear() {
  if (ledger_ != nullptr) ledger_->Reset();
  for (Actor& actor : actors_) actor.Clear();
}

Status PlanInstance::CheckInvariants(bool quiet) const {
  for (const Actor& actor : actors_) {
    HEDDLE_RETURN_IF_ERROR(actor.CheckInvariants(quiet));
    HEDDLE_RETURN_IF_ERROR(actor.CheckEdges());
  }
  if (ledger_ == nullptr) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(ledger_->status());
  if (quiet && !ledger_->IsEmpty()) return Internal("I12: memory of the plan is still in use");
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

int64_t MostEarlyMessages(const Plan& plan, uint32_t rank) {
  int64_t most = 0;
  for (const Register& description : plan.registers) {
    if (description.producer.rank() == rank) continue;
    const auto edges = std::count_if(description.consumers.begin(), description.consumers.end(),
                                     [rank](TaskId consumer) { return consumer.rank() == rank; });
    most += edges * (std::clamp<int32_t>(description.slots, 1, kMaxSlots) + 1);
  }
  return most;
}

}  // namespace heddle::actor
