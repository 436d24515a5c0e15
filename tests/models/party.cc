// SPDX-License-Identifier: Apache-2.0
#include "tests/models/party.h"

namespace heddle::actor {
namespace {

// Far more than any task of an instance has.
constexpr int64_t kMostActs = 60;
// What an accumulate has after some acts of its period is 100 and their number.
constexpr int64_t kPartial = 100;
constexpr uint32_t kAnyRun = 0;

}  // namespace

void World::Party::Begin() {
  run_ = MakeRun(lane_, (run_ & 0xffffff) + 1);
  if (!launched_.empty()) world_.Broken("a kernel of the last run is still on the device");
  if (std::exchange(has_late_error_, false)) return FailBeforeStart();
  instance_->Begin(run_);
  outgoing_.Begin(world_.instance_.acks_wait ? instance_.get() : nullptr);
  aborting_ = false;
  remaining_ = static_cast<int>(instance_->actors().size());
  Tell(MessageType::kStart);
}

void World::Party::Handle(const Message& message, uint32_t stream) {
  stream_ = stream;
  if (message.type == MessageType::kStart || message.type == MessageType::kAbort) {
    for (Actor* actor : instance_->OnStream(stream))
      message.type == MessageType::kStart ? actor->Start(*this) : actor->Abort(*this);
  } else if (Actor* actor = instance_->Find(message.destination); actor != nullptr) {
    // Debug builds stop where a peer talks to a task that is done.
    if (ToldTwice() && actor->state() == ActorState::kDone) return;
    actor->Handle(message, *this);
  }
  SendOutgoing();
}

void World::Party::EndKernel(size_t number, bool saw_the_end) {
  Actor& actor = instance_->actors()[number];
  const int64_t act = launched_[number];
  launched_.erase(number);
  ActResult& result = ActorSnapshot::ResultOf(actor);
  if (saw_the_end) {
    result.status = Cancelled("the run has ended");
  } else {
    // Its inputs are still what they were when it was launched.
    std::vector<const Value*> inputs;
    if (actor.task().kind == TaskKind::kAccumulate || actor.task().kind == TaskKind::kPack) {
      for (const InputEdge& edge : actor.edges())
        if (!edge.control) inputs.push_back(&edge.source->value(edge.queue.front()));
      if (inputs.size() != 1 || inputs[0]->scalar().AsInteger() != act)
        world_.Broken("the input of a kernel on the device was replaced");
      result.values[0] = Value(IsAtPeriod(ActorSnapshot::RulesOf(actor), {.acts = act + 1})
                                   ? act / actor.task().rate
                                   : kPartial + act % actor.task().rate);
    } else {
      for (const InputEdge& edge : actor.edges())
        if (!edge.control) inputs.push_back(&edge.source->value(edge.queue.front()));
      Compute(actor, inputs, act, &result);
    }
  }
  const TaskId task = actor.task().id;
  stream_ = task.stream();
  const Message done{
      .destination = task, .source = task, .run = run_, .type = MessageType::kDone, .port = kLaunchDone};
  if (FateOfMessage(done) == Fate::kDeliver) Handle(done, stream_);
}

bool World::Party::CanEndPull(size_t actor) const {
  return std::any_of(pulls_.begin(), pulls_.end(), [&](const PendingPull& pull) {
    return pull.actor == actor && !world_.parties_[world_.PartyOf(pull.producer.rank(), lane_)]->is_lost_;
  });
}

void World::Party::EndPull(size_t number, bool comes_twice) {
  const auto found = std::find_if(pulls_.begin(), pulls_.end(),
                                  [&](const PendingPull& pull) { return pull.actor == number; });
  const PendingPull pull = *found;
  if (!comes_twice) pulls_.erase(found);
  Actor& actor = instance_->actors()[number];
  const TaskId task = actor.task().id;
  const Message done{
      .destination = task, .source = task, .run = pull.run, .type = MessageType::kDone, .port = kPullDone};
  if (FateOfMessage(done) != Fate::kDeliver) return;
  if (ToldTwice() && actor.state() == ActorState::kDone) return;
  if (PulledBody* body = ActorSnapshot::BodyOf(actor)) {
    const Party& from = *world_.parties_[world_.PartyOf(pull.producer.rank(), lane_)];
    const auto value = from.exposed_.find({pull.register_id, pull.slot});
    if (from.run_ != pull.run || value == from.exposed_.end()) {
      if (!from.aborting_ && from.run_ == pull.run && !ToldTwice())
        world_.Broken("a body that is pulled is not there");
      body->value = Cancelled("not published");
    } else {
      if (value->second != actor.acts()) world_.Broken("another body than the one that was announced");
      body->value = Value(value->second);
    }
  }
  Handle(done, task.stream());
}

bool World::Party::HasErrorOf(size_t party) const {
  return !is_lost_ && std::any_of(errors_.begin(), errors_.end(), [&](const auto& error) {
    return error.first == party && (error.second == kAnyRun || !ComesAfter(error.second, run_));
  });
}

// As Lane::OnError.
void World::Party::HearErrorOf(size_t party) {
  const auto found = std::find_if(errors_.begin(), errors_.end(), [&](const auto& error) {
    return error.first == party && (error.second == kAnyRun || !ComesAfter(error.second, run_));
  });
  const uint32_t run = found->second;
  errors_.erase(found);
  if (run == kAnyRun) return Cancel();  // A lost rank ends what runs, or what would run next.
  if (!ComesAfter(run, failed_run_)) return;
  if (IsRunning()) return Fail(run != run_);
  has_late_error_ = true;
}

void World::Party::Cancel() {
  if (IsRunning()) return Fail(true);
  has_late_error_ = true;
}

void World::Party::Lose() {
  is_lost_ = true;
  for (auto& other : world_.parties_)
    if (other->lane_ == lane_ && other.get() != this) other->errors_.emplace_back(number_, kAnyRun);
}

void World::Party::Fail(bool announce) {
  if (!std::exchange(aborting_, true)) Tell(MessageType::kAbort);
  for (auto& other : world_.parties_)
    if (announce && other->lane_ == lane_ && other.get() != this) other->errors_.emplace_back(number_, run_);
}

void World::Party::FailBeforeStart() {
  failed_run_ = run_;
  for (auto& other : world_.parties_)
    if (other->lane_ == lane_ && other.get() != this) other->errors_.emplace_back(number_, run_);
}

void World::Party::Tell(MessageType type) {
  for (uint32_t stream = 0; stream < instance_->plan().streams.size(); ++stream) {
    if (instance_->OnStream(stream).empty()) continue;
    Message message;
    message.type = type;
    message.run = run_;
    message.destination = TaskId::Make(rank_, stream, 0);
    message.source = message.destination;
    world_.ChannelOf(number_, stream, number_, stream, /*by_runtime=*/true).messages.push_back(message);
  }
}

void World::Party::Check() {
  if (!IsRunning()) return;
  for (const Actor& actor : instance_->actors()) {
    const Counters& now = ActorSnapshot::CountersOf(actor);
    if (ActorSnapshot::RulesOf(actor).spreads && Listens(now) && now.outstanding > 0 &&
        actor.edges()[0].queue.empty())
      world_.Broken("a repeat has given its input back while others read what it made of it");
    for (const Status& status : {actor.CheckInvariants(/*quiet=*/false), actor.CheckEdges()})
      if (!status.ok()) world_.Broken(std::string(status.message()));
  }
}

void World::Party::End() {
  if (!launched_.empty()) world_.Broken("a run has ended while a kernel of it is on the device");
  if (!aborting_) {
    const Status quiet = instance_->CheckInvariants(/*quiet=*/true);
    if (!quiet.ok()) world_.Broken(std::string(quiet.message()));
    if (!exposed_.empty()) world_.Broken("I12: a body is still published");
    for (const Actor& actor : instance_->actors())
      if (ActorSnapshot::RulesOf(actor).counted && actor.acts() != actor.task().count)
        world_.Broken("a source has not acted as often as its count says");
    return;
  }
  failed_run_ = run_;
  exposed_.clear();
  instance_->Clear();
  for (const Actor& actor : instance_->actors())
    for (const RegisterState* made : actor.produced())
      if (made->outstanding() != 0 || !made->HasFreeSlot()) world_.Broken("an aborted run keeps a slot");
}

void World::Party::Send(const Message& message) {
  const Actor* sender = instance_->Find(message.source);
  if (sender->state() == ActorState::kFailed) world_.Broken("a task that has failed says something");
  if (message.destination.rank() != rank_) return outgoing_.Add(message);
  world_.ChannelOf(number_, stream_, number_, message.destination.stream(), false)
      .messages.push_back(message);
}

void World::Party::SendOutgoing() {
  outgoing_.Flush([&](uint32_t rank, std::span<const Message> messages) {
    for (const Message& message : messages)
      world_
          .ChannelOf(number_, message.source.stream(), world_.PartyOf(rank, lane_),
                     message.destination.stream(), false)
          .messages.push_back(message);
  });
  if (remaining_ == 0) End();
}

void World::Party::Compute(Actor& actor, std::span<const Value* const> inputs, int64_t act,
                           ActResult* result) {
  const Task& task = actor.task();
  const TaskRules& rules = ActorSnapshot::RulesOf(actor);
  const int64_t expected = rules.spreads ? act / rules.rate : act;
  int64_t piece = act;
  const auto is = [](const Value* value, int64_t number) {
    return value != nullptr && value->IsScalar() && value->scalar().AsInteger() == number;
  };
  bool is_right = true;
  if (task.kind == TaskKind::kPack) {
    piece = act / rules.rate;
    for (size_t i = 0; i < inputs.size(); ++i)
      is_right &= is(inputs[i], act + 1 - rules.rate + static_cast<int64_t>(i));
  } else if (task.kind == TaskKind::kAccumulate) {
    const int64_t place = act % rules.rate;
    is_right =
        is(inputs[1], act) && (place == 0 ? inputs[0] == nullptr : is(inputs[0], kPartial + place - 1));
    piece = place == rules.rate - 1 ? act / rules.rate : kPartial + place;
  } else {
    for (const Value* input : inputs) is_right &= input == nullptr || is(input, expected);
  }
  if (!is_right) world_.Broken(fmt::format("task {} reads another piece than it is to", task.id.index()));
  for (Value& value : result->values) value = Value(piece);
}

Launch World::Party::Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act,
                             ActResult* result) {
  result->status = Status();
  const Choice choice = std::exchange(world_.choice_, Choice::kInline);
  if (act > kMostActs) {
    world_.Broken("a task acts without end");
    result->status = Internal("too many acts");
  } else if (aborting_) {
    result->status = Cancelled("the run has ended");
  } else if (choice == Choice::kFail) {
    world_.had_trouble_ = true;
    result->status = Aborted("a kernel fails");
  } else {
    Compute(actor, inputs, act, result);
    if (choice == Choice::kLaunch) {
      if (launched_.contains(actor.number())) world_.Broken("a task has two kernels on the device");
      launched_[actor.number()] = act;
      return Launch::kAsynchronous;
    }
  }
  return Launch::kInline;
}

void World::Party::Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
                        std::shared_ptr<PulledBody>) {
  pulls_.push_back({actor.number(), run_, producer, register_id, slot});
}

void World::Party::Expose(RegisterId register_id, uint8_t slot, const Value& value) {
  if (!exposed_.try_emplace({register_id, slot}, value.scalar().AsInteger()).second)
    world_.Broken("a body that others may pull was replaced");
}

void World::Party::Failed(Actor& actor, Status status) {
  if (!IsRunning() || (aborting_ && status.code() == StatusCode::kCancelled)) return;
  if (status.code() == StatusCode::kInternal && !(ToldTwice() && world_.had_trouble_))
    world_.Broken(std::string(status.message()));
  if (status.code() == StatusCode::kCancelled)
    world_.Broken(fmt::format("task {} calls it an error that a run has ended", actor.task().id.index()));
  Fail(true);
}

void World::Party::Save(ByteWriter* out) const {
  out->Add(RunsBegun());
  out->Add(failed_run_ & 0xff);
  out->Add(aborting_ | has_late_error_ << 1 | is_lost_ << 2);
  out->Add(remaining_);
  for (const Actor& actor : instance_->actors()) ActorSnapshot::Save(actor, out);
  ActorSnapshot::Save(outgoing_, out);
  out->Add(static_cast<int64_t>(launched_.size()));
  for (const auto& [actor, act] : launched_) {
    out->Add(static_cast<int64_t>(actor));
    out->Add(act);
  }
  std::vector<PendingPull> pulls = pulls_;
  std::sort(pulls.begin(), pulls.end(), [](const PendingPull& a, const PendingPull& b) {
    return std::pair(a.actor, a.run) < std::pair(b.actor, b.run);
  });
  out->Add(static_cast<int64_t>(pulls.size()));
  for (const PendingPull& pull : pulls) {
    out->Add(static_cast<int64_t>(pull.actor));
    out->Add(pull.run & 0xff);
    out->Add(pull.producer.rank());
    out->Add(pull.register_id);
    out->Add(pull.slot);
  }
  out->Add(static_cast<int64_t>(exposed_.size()));
  for (const auto& [key, value] : exposed_) {
    out->Add(key.first);
    out->Add(key.second);
    out->Add(value);
  }
  std::vector<std::pair<size_t, uint32_t>> errors = errors_;
  std::sort(errors.begin(), errors.end());
  out->Add(static_cast<int64_t>(errors.size()));
  for (const auto& [party, run] : errors) {
    out->Add(static_cast<int64_t>(party));
    out->Add(run & 0xff);
  }
}

void World::Party::Load(ByteReader* in) {
  const auto run_of = [this](int place) { return MakeRun(lane_, static_cast<uint32_t>(place)); };
  run_ = run_of(in->Next());
  failed_run_ = run_of(in->Next());
  const int flags = in->Next();
  aborting_ = (flags & 1) != 0;
  has_late_error_ = (flags >> 1 & 1) != 0;
  is_lost_ = (flags >> 2 & 1) != 0;
  remaining_ = in->Next();
  for (Actor& actor : instance_->actors()) ActorSnapshot::Load(in, lane_, &actor);
  ActorSnapshot::Load(in, *instance_, lane_, &outgoing_);
  launched_.clear();
  for (int left = in->Next(); left > 0; --left) {
    const auto actor = static_cast<size_t>(in->Next());
    launched_[actor] = in->Next();
  }
  pulls_.clear();
  for (int left = in->Next(); left > 0; --left) {
    PendingPull& pull = pulls_.emplace_back();
    pull.actor = static_cast<size_t>(in->Next());
    pull.run = run_of(in->Next());
    pull.producer = TaskId::Make(static_cast<uint32_t>(in->Next()), 0, 0);
    pull.register_id = in->Next();
    pull.slot = static_cast<uint8_t>(in->Next());
  }
  exposed_.clear();
  for (int left = in->Next(); left > 0; --left) {
    const RegisterId id = in->Next();
    const auto slot = static_cast<uint8_t>(in->Next());
    exposed_[{id, slot}] = in->Next();
  }
  errors_.clear();
  for (int left = in->Next(); left > 0; --left) {
    const auto party = static_cast<size_t>(in->Next());
    const int place = in->Next();
    errors_.emplace_back(party, place == 0 ? kAnyRun : run_of(place));
  }
}

}  // namespace heddle::actor
