// SPDX-License-Identifier: Apache-2.0
#include "actor/simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "actor/actor_host.h"
#include "actor/outgoing_messages.h"
#include "actor/protocol.h"
#include "actor/run_errors.h"
#include "actor/run_number.h"
#include "ops/device/run/device_act.h"

namespace heddle::actor {

struct Simulation::Envelope {
  Message message;
  int64_t due_ns = 0;
};

// Something that happens at a time, in no order with anything else.
struct Simulation::Event {
  int64_t due_ns = 0;
  std::function<void()> happen;
};

// One rank of one lane: the host of its actors and, in small, the supervisor that lane.cc is in production.
class Simulation::Rank : public ActorHost {
 public:
  Rank(Simulation& simulation, uint32_t rank, uint32_t lane, std::unique_ptr<PlanInstance> instance,
       std::unique_ptr<TaskBody> body)
      : simulation_(simulation),
        rank_(rank),
        lane_(lane),
        instance_(std::move(instance)),
        body_(std::move(body)) {}

  PlanInstance& instance() { return *instance_; }
  TaskBody& body() { return *body_; }
  uint32_t rank() const { return rank_; }
  uint32_t lane() const { return lane_; }
  bool has_begun() const { return has_begun_; }
  bool is_done() const { return has_begun_ && remaining_ == 0; }
  bool has_exposed() const { return !exposed_.empty(); }
  const RunErrors& errors() const { return errors_; }
  const Status& status() const { return errors_.First(); }
  int64_t early_messages() const { return early_messages_; }
  int64_t sends() const { return sends_; }
  void CountEarly() { early_messages_ += !has_begun_; }

  void Prepare(uint32_t run) {
    run_ = run;
    has_begun_ = aborting_ = false;
    early_messages_ = sends_ = 0;
    hands_out_until_ns_ = 0;
    errors_.Clear();
    exposed_.clear();
    device_.clear();
  }

  void Begin() {
    instance_->Begin(run_);
    // As where one thread serves the run alone, or as where several do: by the seed.
    outgoing_.Begin(simulation_.options_.seed % 2 == 0 ? nullptr : instance_.get());
    has_begun_ = true;
    remaining_ = instance_->actors().size();
    for (uint32_t stream = 0; stream < simulation_.streams_; ++stream) Tell(stream, MessageType::kStart);
    if (!errors_.empty()) Abort();
  }

  void Handle(const Message& message) {
    // A message of a run to come waits in its channel.
    if (FateOf(remaining_ > 0, message.run == run_, /*is_of_later_run=*/false) != Fate::kDeliver) return;
    current_ = message.destination.stream();
    if (message.type == MessageType::kStart || message.type == MessageType::kAbort) {
      for (Actor* actor : instance_->OnStream(current_)) {
        message.type == MessageType::kStart ? actor->Start(*this) : actor->Abort(*this);
        Check(*actor);
      }
      SendOutgoing();
      return;
    }
    Actor* actor = instance_->Find(message.destination);
    if (actor == nullptr) return;
    actor->Handle(message, *this);
    Check(*actor);
    SendOutgoing();
  }

  // Of this rank or, with announce == false, told by another one.
  void Fail(NodeId node, uint32_t rank, const Status& status, bool announce) {
    if (is_done()) return;
    errors_.Add(node, rank, status);
    if (has_begun_) Abort();
    for (auto& other : simulation_.ranks_) {
      if (!announce || other.get() == this || other->lane_ != lane_) continue;
      simulation_.events_.push_back(
          {simulation_.DueAfterMessage(), [to = other.get(), node, rank, status, run = run_] {
             if (to->run_ == run) to->Fail(node, rank, status, false);
           }});
    }
  }

  void Send(const Message& message) override {
    if (message.destination.rank() != rank_) return outgoing_.Add(message);
    simulation_.Enqueue(lane_, ThreadOf(current_), ThreadOf(message.destination.stream()), message);
  }

  Launch Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act,
                 ActResult* result) override {
    if (simulation_.options_.outside != nullptr && !actor.task().id.device().IsHost()) {
      std::shared_ptr<ops::DeviceAct> steps = body_->BeginOnDevice(
          actor.number(), inputs, act, result->values, streams_, /*ends_with_its_commands=*/false);
      if (steps != nullptr) {
        TakeStep(std::move(steps), actor.task().id, result);
        return Launch::kAsynchronous;
      }
    }
    const int64_t one_in = simulation_.options_.launch_one_in;
    if (one_in > 0 && !simulation_.options_.times && simulation_.Random(static_cast<uint64_t>(one_in)) == 0) {
      device_.push_back([this, &actor, inputs, act, result] {
        RunKernel(actor, inputs, act, result);
        TellDone(actor.task().id, kLaunchDone);
      });
      if (device_.size() == 1) RunDevice();
      return Launch::kAsynchronous;
    }
    simulation_.busy_until_ns_[ThreadOf(current_)] =
        simulation_.DueAfter(std::max<int64_t>(actor.task().cost_ns, 0));
    RunKernel(actor, inputs, act, result);
    return Launch::kInline;
  }

  void Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
            std::shared_ptr<PulledBody> body) override {
    Rank* from = &simulation_.RankAt(producer.rank(), lane_);
    const TaskId task = actor.task().id;
    simulation_.events_.push_back({from->HandsOut(register_id),
                                   [this, from, body = std::move(body), task, run = run_, register_id, slot] {
                                     body->value = from->Published(run, register_id, slot);
                                     TellDone(task, kPullDone, run);
                                   }});
  }

  void Expose(RegisterId register_id, uint8_t slot, const Value& value) override {
    exposed_[{register_id, slot}] = value;
  }
  void Withdraw(RegisterId register_id, uint8_t slot) override { exposed_.erase({register_id, slot}); }

  void Failed(Actor& actor, Status status) override {
    if (aborting_ && status.code() == StatusCode::kCancelled) return;
    Fail(actor.task().node, rank_, status, true);
  }
  void Finished(Actor&) override { --remaining_; }

 private:
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) const {
    const auto found = exposed_.find({register_id, slot});
    if (run != run_ || found == exposed_.end()) return Cancelled("not published");
    return found->second;
  }

  // When a value of this rank is with the rank that asks for it now.
  int64_t HandsOut(RegisterId register_id) {
    if (!simulation_.options_.times) return simulation_.DueAfterMessage();
    const auto bytes =
        static_cast<double>(instance_->plan().registers[static_cast<size_t>(register_id)].bytes);
    hands_out_until_ns_ = std::max(hands_out_until_ns_, simulation_.DueAfterMessage()) +
                          static_cast<int64_t>(bytes / simulation_.options_.times->send_bytes_per_ns);
    return hands_out_until_ns_ + simulation_.options_.times->message_ns;
  }

  void SendOutgoing() {
    outgoing_.Flush([this](uint32_t, std::span<const Message> messages) {
      ++sends_;
      for (const Message& message : messages) {
        const TaskId to = message.destination;
        simulation_.Enqueue(lane_, ThreadOf(message.source.stream()),
                            simulation_.ThreadOf(to.rank(), lane_, to.stream()), message);
      }
    });
  }

  void RunKernel(Actor& actor, std::span<const Value* const> inputs, int64_t act, ActResult* result) {
    result->status = aborting_ ? Cancelled("the run has ended")
                               : body_->Perform(actor.number(), inputs, act, result->values);
  }

  // The next step of an act on a device, some time from now.
  void TakeStep(std::shared_ptr<ops::DeviceAct> steps, TaskId task, ActResult* result) {
    if (steps->next() == ops::DeviceAct::Place::kDone) {
      result->status = steps->status();
      return TellDone(task, kLaunchDone);
    }
    const auto step = [this, steps = std::move(steps), task, result] {
      if (aborting_) {
        steps->End(Cancelled("the run has ended"));
        return TakeStep(steps, task, result);
      }
      // Called when the act goes on: here, or when its commands are done.
      steps->Step([this, steps, task, result] { TakeStep(steps, task, result); });
    };
    simulation_.events_.push_back({simulation_.DueAfter(0), step});
  }

  // The first launch in the queue ends some time from now, then the next one begins.
  void RunDevice() {
    simulation_.events_.push_back({simulation_.DueAfter(0), [this] {
                                     device_.front()();
                                     device_.pop_front();
                                     if (!device_.empty()) RunDevice();
                                   }});
  }

  void TellDone(TaskId task, uint16_t port) { TellDone(task, port, run_); }
  void TellDone(TaskId task, uint16_t port, uint32_t run) {
    const size_t thread = ThreadOf(task.stream());
    simulation_.Enqueue(
        lane_, thread, thread,
        {.destination = task, .source = task, .run = run, .type = MessageType::kDone, .port = port});
  }

  void Abort() {
    if (std::exchange(aborting_, true)) return;
    for (uint32_t stream = 0; stream < simulation_.streams_; ++stream) Tell(stream, MessageType::kAbort);
  }

  // From the rank's runtime to one of its threads; ordered after what the thread has told itself.
  void Tell(uint32_t stream, MessageType type) {
    if (instance_->OnStream(stream).empty()) return;
    Message message;
    message.type = type;
    message.run = run_;
    message.destination = TaskId::Make(rank_, stream, 0);
    simulation_.Enqueue(lane_, ThreadOf(stream), ThreadOf(stream), message);
  }

  size_t ThreadOf(uint32_t stream) const { return simulation_.ThreadOf(rank_, lane_, stream); }

  void Check(const Actor& actor) {
    if (simulation_.broken_.ok()) simulation_.broken_ = simulation_.CheckStep(actor, *instance_);
  }

  Simulation& simulation_;
  const uint32_t rank_;
  const uint32_t lane_;
  const std::unique_ptr<PlanInstance> instance_;
  const std::unique_ptr<TaskBody> body_;
  uint32_t run_ = 0;
  bool has_begun_ = false;
  bool aborting_ = false;
  int64_t early_messages_ = 0;
  int64_t sends_ = 0;
  int64_t hands_out_until_ns_ = 0;
  uint32_t current_ = 0;  // Stream whose thread is running.
  size_t remaining_ = 0;
  OutgoingMessages outgoing_;
  RunErrors errors_;
  std::map<std::pair<RegisterId, uint8_t>, Value> exposed_;
  ops::DeviceStreams streams_;
  std::deque<std::function<void()>> device_;  // Launches; the first one is running.
};

Simulation::Simulation() = default;
Simulation::~Simulation() = default;

Result<std::unique_ptr<Simulation>> Simulation::CreateLanes(std::vector<std::shared_ptr<const Plan>> plans,
                                                            const BodyFactory& make_body) {
  std::unique_ptr<Simulation> simulation(new Simulation());
  simulation->lanes_ = static_cast<uint32_t>(plans.size());
  simulation->streams_ = static_cast<uint32_t>(plans[0]->streams.size());
  for (const auto& plan : plans)
    simulation->ranks_of_lane_ = std::max(simulation->ranks_of_lane_, static_cast<uint32_t>(plan->ranks));
  for (uint32_t lane = 0; lane < simulation->lanes_; ++lane) {
    for (uint32_t rank = 0; rank < simulation->ranks_of_lane_; ++rank) {
      HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<PlanInstance> instance,
                              PlanInstance::Create(plans[lane], rank));
      std::unique_ptr<TaskBody> body = make_body(*instance);
      simulation->ranks_.push_back(
          std::make_unique<Rank>(*simulation, rank, lane, std::move(instance), std::move(body)));
    }
  }
  const size_t threads = simulation->ThreadOf(simulation->ranks_of_lane_, 0, 0);
  simulation->channels_.resize(plans.size() * threads * threads);
  simulation->heads_.resize(simulation->channels_.size());
  simulation->busy_until_ns_.resize(threads);
  return simulation;
}

size_t Simulation::ThreadOf(uint32_t rank, uint32_t lane, uint32_t stream) const {
  return rank * ThreadsOfRank() + (stream == 0 ? lane : lanes_ + stream - 1);
}

Simulation::Rank& Simulation::RankAt(uint32_t rank, uint32_t lane) const {
  return *ranks_[size_t{lane} * ranks_of_lane_ + rank];
}

Simulation::Rank& Simulation::ReceiverOf(size_t channel) const {
  const size_t threads = busy_until_ns_.size();
  const size_t rank = channel % threads / ThreadsOfRank();
  return RankAt(static_cast<uint32_t>(rank), static_cast<uint32_t>(channel / threads / threads));
}

// splitmix64 (Steele, Lea, Flood 2014): any seed gives a good stream.
uint64_t Simulation::Random(uint64_t below) {
  random_state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % below;
}

void Simulation::Enqueue(uint32_t lane, size_t from, size_t to, const Message& message) {
  const size_t channel = (lane * busy_until_ns_.size() + from) * busy_until_ns_.size() + to;
  std::vector<Envelope>& queue = channels_[channel];
  const bool crosses = from / ThreadsOfRank() != to / ThreadsOfRank();
  int64_t due_ns = crosses ? DueAfterMessage() : clock_.MonotonicNs();
  if (heads_[channel] == queue.size()) {
    queue.clear();
    heads_[channel] = 0;
    active_channels_.push_back(channel);
  } else {
    due_ns = std::max(due_ns, queue.back().due_ns);
  }
  queue.push_back({message, due_ns});
  if (crosses) ReceiverOf(channel).CountEarly();
}

Status Simulation::CheckStep(const Actor& actor, const PlanInstance& instance) const {
  if (!options_.check_invariants) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(actor.CheckInvariants(/*quiet=*/false));
  HEDDLE_RETURN_IF_ERROR(actor.CheckEdges());
  return instance.ledger() == nullptr ? OkStatus() : instance.ledger()->status();
}

bool Simulation::Step() {
  const size_t threads = busy_until_ns_.size();
  // What could happen, and when; channels of ranks that have not begun wait for that.
  const auto due_of = [&](size_t channel) {
    const size_t to = channel % threads;
    const Envelope& head = channels_[channel][heads_[channel]];
    return std::max(head.due_ns, busy_until_ns_[to]);
  };
  size_t eligible = 0;
  int64_t next_ns = INT64_MAX;
  const int64_t now_ns = clock_.MonotonicNs();
  const auto offer = [&](int64_t due_ns) {
    eligible += due_ns <= now_ns;
    next_ns = std::min(next_ns, due_ns);
  };
  const auto can_receive = [&](size_t channel) { return ReceiverOf(channel).has_begun(); };
  for (size_t channel : active_channels_) {
    if (can_receive(channel)) offer(due_of(channel));
  }
  for (const Event& event : events_) offer(event.due_ns);
  const int64_t outside_ns = options_.outside == nullptr ? INT64_MAX : options_.outside->NextNs();
  if (outside_ns != INT64_MAX) offer(outside_ns);
  if (next_ns == INT64_MAX) return false;
  if (eligible == 0) {
    clock_.Advance(next_ns - now_ns);
    return true;
  }
  ++steps_;
  size_t chosen = Random(eligible);
  for (size_t i = 0; i < active_channels_.size(); ++i) {
    const size_t channel = active_channels_[i];
    if (!can_receive(channel) || due_of(channel) > now_ns || chosen-- > 0) continue;
    const Message message = channels_[channel][heads_[channel]++].message;
    if (heads_[channel] == channels_[channel].size()) {
      active_channels_[i] = active_channels_.back();
      active_channels_.pop_back();
    }
    ReceiverOf(channel).Handle(message);
    return true;
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].due_ns > now_ns || chosen-- > 0) continue;
    const std::function<void()> happen = std::move(events_[i].happen);
    events_[i] = std::move(events_.back());
    events_.pop_back();
    happen();
    return true;
  }
  if (outside_ns <= now_ns) {
    options_.outside->Happen();
    return true;
  }
  HEDDLE_CHECK(false, "one of the eligible steps was chosen");
  return false;
}

Status Simulation::Run(uint32_t run, const SimulationOptions& options) {
  options_ = options;
  random_state_ = options.seed;
  steps_ = 0;
  broken_ = OkStatus();
  for (auto& rank : ranks_) {
    rank->Prepare(MakeRun(rank->lane(), run));
    events_.push_back({DueAfter(0), [&rank = *rank] { rank.Begin(); }});
  }
  while (broken_.ok()) {
    if (steps_ == options.abort_at_step) {
      options_.abort_at_step = -1;
      Rank& rank = *ranks_[Random(ranks_.size())];
      rank.Fail(kNoNode, rank.rank(), Cancelled("cancelled at step {}", steps_), true);
      ++steps_;
    }
    if (!Step()) break;
  }
  return Finish();
}

Status Simulation::Finish() {
  Status first;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const Status status = FinishLane(lane);
    if (first.ok()) first = status;
  }
  if (!broken_.ok()) {
    events_.clear();
    return broken_;
  }
  if (first.ok() && options_.check_invariants && !active_channels_.empty())
    return Internal("I7: messages are left after the end of the run");
  return first;
}

Status Simulation::FinishLane(uint32_t lane) {
  RunErrors errors;
  std::vector<std::string> waits;
  bool stalled = false;
  for (uint32_t i = 0; i < ranks_of_lane_; ++i) {
    Rank& rank = RankAt(i, lane);
    if (!rank.errors().empty()) errors.Add(rank.errors().node(), rank.errors().rank(), rank.status());
    stalled |= !rank.is_done();
    for (std::string& line : rank.instance().DescribeWaits(4)) waits.push_back(std::move(line));
  }
  Status status = errors.First();
  if (stalled && broken_.ok()) {
    status = Internal("stalled: nothing can happen any more");
    for (const std::string& line : waits) status = status.WithNote(line);
  } else if (status.ok() && broken_.ok() && options_.check_invariants) {
    for (uint32_t i = 0; i < ranks_of_lane_ && status.ok(); ++i) {
      status = RankAt(i, lane).instance().CheckInvariants(/*quiet=*/true);
      if (status.ok() && RankAt(i, lane).has_exposed()) status = Internal("I12: a body is still published");
    }
  }
  for (uint32_t i = 0; i < ranks_of_lane_; ++i)
    if (!status.ok() || !broken_.ok()) RankAt(i, lane).instance().Clear();
  return status;
}

int64_t Simulation::acts() const {
  int64_t acts = 0;
  for (const auto& rank : ranks_) {
    for (const Actor& actor : rank->instance().actors()) acts += actor.acts();
  }
  return acts;
}

int64_t Simulation::SendsOf(uint32_t rank, uint32_t lane) const { return RankAt(rank, lane).sends(); }
int64_t Simulation::EarlyMessagesOf(uint32_t rank, uint32_t lane) const {
  return RankAt(rank, lane).early_messages();
}

TaskBody& Simulation::body(uint32_t rank, uint32_t lane) { return RankAt(rank, lane).body(); }
PlanInstance& Simulation::instance(uint32_t rank, uint32_t lane) { return RankAt(rank, lane).instance(); }
const Status& Simulation::StatusOf(uint32_t rank, uint32_t lane) const { return RankAt(rank, lane).status(); }

}  // namespace heddle::actor
