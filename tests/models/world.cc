// SPDX-License-Identifier: Apache-2.0
#include "tests/models/world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/models/party.h"

namespace heddle::actor {
namespace {

constexpr size_t kMessageBytes = 8;

bool IsPull(const Actor& actor) {
  const int edge = ActorSnapshot::FirstDataEdge(actor);
  return actor.task().kind == TaskKind::kCopy && edge >= 0 &&
         actor.edges()[static_cast<size_t>(edge)].source == nullptr;
}

}  // namespace

World::World(const ModelInstance& instance) : instance_(instance) {
  for (const auto& plan : instance.plans) ranks_ = std::max(ranks_, static_cast<uint32_t>(plan->ranks));
  for (uint32_t lane = 0; lane < instance.plans.size(); ++lane) {
    // The ledger of a plan instance does not go back with SPIN: here the peak is checked (CheckPeak).
    auto plan = std::make_shared<Plan>(*instance.plans[lane]);
    peak_bytes_.push_back(std::exchange(plan->peak_bytes, {}));
    has_peak_ |= !peak_bytes_.back().empty();
    instance_.plans[lane] = std::move(plan);
    for (uint32_t rank = 0; rank < ranks_; ++rank)
      parties_.push_back(std::make_unique<Party>(*this, parties_.size(), rank, lane));
  }
  AddChannels();
  AddEvents();
  std::vector<uint8_t> bytes;
  ByteWriter out(&bytes);
  for (const auto& party : parties_) party->Save(&out);
  // Each slot of an edge is in a message or in its reader's queue, and exposed; messages of an aborted run
  // stay where they are.
  size_t edges = 0;
  size_t slots = 0;
  for (const auto& plan : instance.plans) {
    for (const Register& made : plan->registers) {
      edges += made.consumers.size();
      slots += made.consumers.size() * static_cast<size_t>(made.slots);
    }
  }
  const size_t tasks = 40;
  most_bytes_ = bytes.size() + channels_.size() + 1 + (2 * slots + edges) * kMessageBytes * 3 / 2 +
                slots * 4 + parties_.size() * (parties_.size() * 6 + 40) + tasks;
  most_bytes_ = (most_bytes_ + 63) / 64 * 64;
  std::vector<uint8_t> first(most_bytes_);
  Save(first.data());
}

World::~World() = default;

int World::ProcessOf(const std::string& name) {
  const auto found = std::find(processes_.begin(), processes_.end(), name);
  if (found == processes_.end()) processes_.push_back(name);
  return static_cast<int>(std::find(processes_.begin(), processes_.end(), name) - processes_.begin());
}

// The threads of all streams but the first serve all lanes of their rank.
int World::ThreadOf(const Party& party, uint32_t stream) {
  return ProcessOf(stream == 0 && instance_.plans.size() > 1
                       ? fmt::format("rank {} lane {} thread 0", party.rank(), party.lane())
                       : fmt::format("rank {} thread {}", party.rank(), stream));
}

World::Channel& World::ChannelOf(size_t from, uint32_t from_stream, size_t to, uint32_t to_stream,
                                 bool by_runtime) {
  for (Channel& channel : channels_)
    if (channel.from == from && channel.from_stream == from_stream && channel.to == to &&
        channel.to_stream == to_stream && channel.by_runtime == by_runtime)
      return channel;
  channels_.push_back({from, to, from_stream, to_stream, by_runtime, {}});
  return channels_.back();
}

void World::AddChannels() {
  for (size_t number = 0; number < parties_.size(); ++number) {
    const Party& party = *parties_[number];
    for (const Actor& actor : party.instance().actors()) {
      const uint32_t stream = actor.task().id.stream();
      ChannelOf(number, stream, number, stream, /*by_runtime=*/true);
      for (const InputEdge& edge : actor.edges()) {
        const size_t other = PartyOf(edge.producer.rank(), party.lane());
        ChannelOf(other, edge.producer.stream(), number, stream, false);
        ChannelOf(number, stream, other, edge.producer.stream(), false);
      }
    }
  }
}

void World::Add(Happening happening, int process, const std::string& text) {
  happenings_.push_back(happening);
  event_texts_.push_back({process, text});
}

void World::AddChoices(Happening happening, int process, const std::string& text) {
  Add(happening, process, text);
  if (instance_.launches) {
    happening.choice = Choice::kLaunch;
    Add(happening, process, text + "; the next kernel goes to the device");
  }
  if (instance_.trouble == Trouble::kFailingKernel) {
    happening.choice = Choice::kFail;
    Add(happening, process, text + "; the next kernel fails");
  }
  const bool is_from_runtime = happening.kind == Kind::kMessage && channels_[happening.number].by_runtime;
  if (instance_.trouble == Trouble::kTwice && !is_from_runtime) {
    happening.choice = Choice::kTwice;
    Add(happening, process, text + ", which comes twice");
  }
}

void World::AddEvents() {
  for (size_t number = 0; number < channels_.size(); ++number) {
    const Channel& channel = channels_[number];
    const std::string from =
        channel.by_runtime
            ? "the runtime"
            : fmt::format("rank {} thread {}", parties_[channel.from]->rank(), channel.from_stream);
    AddChoices({Kind::kMessage, channel.to, number}, ThreadOf(*parties_[channel.to], channel.to_stream),
               fmt::format("lane {} rank {} thread {} takes a message of {}", parties_[channel.to]->lane(),
                           parties_[channel.to]->rank(), channel.to_stream, from));
  }
  for (size_t number = 0; number < parties_.size(); ++number) {
    const Party& party = *parties_[number];
    const std::string name = fmt::format("lane {} rank {}", party.lane(), party.rank());
    const int runtime = ProcessOf("runtime of " + name);
    Add({Kind::kBegin, number}, runtime, name + " begins a run");
    for (const Actor& actor : party.instance().actors()) {
      const int thread = ThreadOf(party, actor.task().id.stream());
      const std::string task = fmt::format("task {}.{}", actor.task().id.stream(), actor.task().id.index());
      if (IsPull(actor)) {
        AddChoices({Kind::kPullDone, number, actor.number()}, thread, name + " " + task + " has its body");
      } else if (instance_.launches) {
        AddChoices({Kind::kKernelDone, number, actor.number()}, thread,
                   name + " " + task + " has its kernel back");
        if (instance_.trouble != Trouble::kNone)
          Add({Kind::kKernelGone, number, actor.number()}, thread,
              name + " " + task + " has its kernel back, which saw that the run has failed");
      }
    }
    if (instance_.trouble == Trouble::kNone) continue;
    for (size_t other = 0; other < parties_.size(); ++other)
      if (other != number && parties_[other]->lane() == party.lane())
        Add({Kind::kError, number, other}, runtime,
            fmt::format("{} hears that rank {} has failed", name, parties_[other]->rank()));
    if (instance_.trouble == Trouble::kCancel)
      Add({Kind::kCancel, number}, ProcessOf("trouble"), name + " is cancelled");
    if (instance_.trouble == Trouble::kLostRank)
      Add({Kind::kLoseRank, number}, ProcessOf("trouble"), name + " is lost");
  }
}

bool World::Can(size_t event) {
  const Happening& happening = happenings_[event];
  const Party& party = *parties_[happening.party];
  if (party.is_lost()) return false;
  if ((happening.choice == Choice::kFail || happening.choice == Choice::kTwice) && had_trouble_) return false;
  switch (happening.kind) {
    case Kind::kBegin: return party.MayBegin();
    case Kind::kMessage: {
      const Channel& channel = channels_[happening.number];
      // An ACK has no number: said again when its slot holds the next piece, it is taken for that piece's.
      // Two ranks of which one does so stop; links say everything once.
      if (happening.choice == Choice::kTwice && ranks_ > 1 && !channel.messages.empty() &&
          channel.messages.front().type == MessageType::kAck)
        return false;
      return !channel.messages.empty() && party.FateOfMessage(channel.messages.front()) != Fate::kKeep;
    }
    case Kind::kKernelDone: return party.HasLaunched(happening.number);
    case Kind::kKernelGone: return party.IsAborting() && party.HasLaunched(happening.number);
    case Kind::kPullDone: return party.CanEndPull(happening.number);
    case Kind::kError: return party.HasErrorOf(happening.number);
    case Kind::kCancel:
    case Kind::kLoseRank: return !had_trouble_ && !party.IsOver();
  }
  return false;
}

bool World::Do(size_t event) {
  const Happening& happening = happenings_[event];
  Party& party = *parties_[happening.party];
  choice_ = happening.choice;
  switch (happening.kind) {
    case Kind::kBegin: party.Begin(); break;
    case Kind::kMessage: {
      Channel& channel = channels_[happening.number];
      const Message message = channel.messages.front();
      if (choice_ == Choice::kTwice)
        had_trouble_ = true;
      else
        channel.messages.pop_front();
      if (party.FateOfMessage(message) == Fate::kDeliver) party.Handle(message, channel.to_stream);
      break;
    }
    case Kind::kKernelDone: party.EndKernel(happening.number, false); break;
    case Kind::kKernelGone: party.EndKernel(happening.number, true); break;
    case Kind::kPullDone:
      had_trouble_ |= choice_ == Choice::kTwice;
      party.EndPull(happening.number, choice_ == Choice::kTwice);
      break;
    case Kind::kError: party.HearErrorOf(happening.number); break;
    case Kind::kCancel:
      had_trouble_ = true;
      party.Cancel();
      break;
    case Kind::kLoseRank:
      had_trouble_ = true;
      party.Lose();
      break;
  }
  party.Check();
  if (has_peak_) CheckPeak();
  if (IsOver()) CheckEnd();
  return why_.empty();
}

bool World::IsOver() {
  return std::all_of(parties_.begin(), parties_.end(), [](const auto& party) { return party->IsOver(); });
}

void World::CheckEnd() {
  if (had_trouble_) return;
  for (const Channel& channel : channels_)
    if (!channel.by_runtime && !channel.messages.empty())
      Broken("I7: messages are left after the end of the run");
  for (const auto& party : parties_)
    if (party->LeavesSomething()) Broken("I12: pulls, kernels or errors are left after the end of the run");
}

// I8: slots that are in use at a time take no more than the plan says: being written, announced, or read.
void World::CheckPeak() {
  for (size_t number = 0; number < parties_.size(); ++number) {
    const PlanInstance& instance = parties_[number]->instance();
    const std::vector<int64_t>& peak_bytes = peak_bytes_[parties_[number]->lane()];
    if (peak_bytes.empty()) continue;
    int64_t used_bytes = 0;
    for (const Actor& actor : instance.actors()) {
      for (const RegisterState* made : actor.produced()) {
        const Register& description = made->description();
        if (ActorSnapshot::CountersOf(actor).flight != Flight::kNone && ActorSnapshot::HasNextSlot(*made))
          used_bytes += description.bytes;
        for (int slot = 0; slot < description.slots; ++slot) {
          bool is_read = false;
          for (const Actor& reader : instance.actors())
            for (const InputEdge& edge : reader.edges())
              for (int i = 0; edge.source == made && i < edge.queue.size(); ++i)
                is_read |= edge.queue.At(i) == slot;
          for (const Channel& channel : channels_)
            for (const Message& message : channel.messages)
              is_read |= channel.to == number && channel.from == number &&
                         message.type == MessageType::kReady && message.register_id == description.id &&
                         message.slot == slot;
          if (is_read) used_bytes += description.bytes;
        }
      }
    }
    if (used_bytes > peak_bytes[parties_[number]->rank()])
      return Broken("I8: slots that are in use at a time take more than the plan says");
  }
}

void World::Save(uint8_t* bytes) {
  std::vector<uint8_t> all;
  all.reserve(most_bytes_);
  ByteWriter out(&all);
  out.Add(had_trouble_);
  for (const auto& party : parties_) party->Save(&out);
  for (const Channel& channel : channels_) {
    out.Add(static_cast<int64_t>(channel.messages.size()));
    for (const Message& message : channel.messages) SaveMessage(message, &out);
  }
  HEDDLE_CHECK(all.size() <= most_bytes_, "the bound of a state's bytes is right");
  all.resize(most_bytes_, 0);
  saved_ = std::move(all);
  std::memcpy(bytes, saved_.data(), most_bytes_);
}

void World::Load(const uint8_t* bytes) {
  why_.clear();
  if (std::memcmp(bytes, saved_.data(), most_bytes_) == 0) return;
  saved_.assign(bytes, bytes + most_bytes_);
  ByteReader in(bytes);
  had_trouble_ = in.Next() != 0;
  for (const auto& party : parties_) party->Load(&in);
  for (Channel& channel : channels_) {
    channel.messages.clear();
    for (int left = in.Next(); left > 0; --left)
      channel.messages.push_back(LoadMessage(&in, parties_[channel.to]->lane()));
  }
}

}  // namespace heddle::actor
