// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actor/plan_instance.h"
#include "actor/task_body.h"
#include "core/environment/clock.h"
#include "core/programs/plan.h"

namespace heddle::actor {

/// How long things take in a simulation that is to tell how long a run would take.
struct SimulatedTimes {
  int64_t message_ns = 0;        ///< From one rank to another.
  double send_bytes_per_ns = 0;  ///< Of all values together that a rank hands out, one behind the other.
};

/// What happens outside of ranks at times of its own: commands of a device that is simulated as well.
class OutsideEvents {
 public:
  virtual ~OutsideEvents() = default;
  virtual int64_t NextNs() = 0;  ///< When the next one happens; INT64_MAX: nothing does.
  virtual void Happen() = 0;     ///< It does.
};

struct SimulationOptions {
  uint64_t seed = 0;
  int64_t abort_at_step = -1;    ///< Cancels the run on a random rank at this step; -1: never.
  int64_t most_delay_ns = 1000;  ///< Of a message between ranks, a pull, an act, the start of a rank.
  bool check_invariants = true;  ///< I1-I3, I8 after every step, I12 at the end.
  /// One act in so many is launched on the device of its rank and comes back as a message; 0: none.
  int64_t launch_one_in = 3;
  /// An act takes Task::cost_ns, and values the time of their bytes; without, everything takes random times.
  std::optional<SimulatedTimes> times;
  /// Acts of streams of devices are taken step by step (ops/device/run/device_act.h), each at a random time,
  /// and what they wait for happens here; nullptr: they wait in place, as all acts do.
  OutsideEvents* outside = nullptr;
};

/// All ranks of a plan with the real actors, on one thread and a virtual clock (runtime reference 2.14); or
/// of several plans, one for each lane, whose runs are in flight at once. A seed decides which mailbox is
/// served next, how long messages between ranks, pulls and acts take, which acts are launched on the device,
/// and when ranks begin each run: one seed is one interleaving. Kept as in production: order per sender and
/// receiving thread, one act at a time per thread, launches of a rank and lane one after the other; the
/// threads of all streams but the first serve all lanes of their rank. With an odd seed, messages between
/// ranks wait as they do where one thread serves a run (outgoing_messages.h).
class Simulation {
 public:
  using BodyFactory = std::function<std::unique_ptr<TaskBody>(const PlanInstance& instance)>;

  static Result<std::unique_ptr<Simulation>> Create(std::shared_ptr<const Plan> plan,
                                                    const BodyFactory& make_body) {
    return CreateLanes({std::move(plan)}, make_body);
  }
  /// A plan for each lane; `make_body` is called lane by lane.
  static Result<std::unique_ptr<Simulation>> CreateLanes(std::vector<std::shared_ptr<const Plan>> plans,
                                                         const BodyFactory& make_body);
  ~Simulation();

  /// One run of each lane on all ranks, until nothing is left to happen. Ok if every rank ended well; else,
  /// of the first lane with an error, the first one in (node, rank) order: of a task, of the cancellation
  /// (kCancelled), "stalled: ..." (kInternal) with the blocked actors as notes, or a broken invariant
  /// (kInternal). All slots are free afterwards. Messages that an aborted run leaves behind stay in the
  /// mailboxes and reach the next run. `run` grows from call to call.
  Status Run(uint32_t run, const SimulationOptions& options);

  int64_t steps() const { return steps_; }  ///< Of the last run.
  int64_t acts() const;                     ///< Of the last run, all ranks and lanes.
  TaskBody& body(uint32_t rank, uint32_t lane = 0);
  PlanInstance& instance(uint32_t rank, uint32_t lane = 0);
  /// Status of one rank's own part of the last run of a lane.
  const Status& StatusOf(uint32_t rank, uint32_t lane = 0) const;
  /// How many times a rank has sent something to another one in the last run of a lane: messages that leave
  /// together count once.
  int64_t SendsOf(uint32_t rank, uint32_t lane = 0) const;
  /// How many messages other ranks sent for the last run of a lane before this rank began it.
  int64_t EarlyMessagesOf(uint32_t rank, uint32_t lane = 0) const;
  VirtualClock& clock() { return clock_; }

 private:
  class Rank;
  struct Envelope;
  struct Event;
  Simulation();

  uint64_t Random(uint64_t below);
  /// When something is through that takes so long, or a random time.
  int64_t DueAfter(int64_t ns) {
    if (!options_.times) ns = static_cast<int64_t>(Random(static_cast<uint64_t>(options_.most_delay_ns) + 1));
    return clock_.MonotonicNs() + ns;
  }
  int64_t DueAfterMessage() { return DueAfter(options_.times ? options_.times->message_ns : 0); }
  /// The thread that serves the stream of a rank and lane, among those of all ranks.
  size_t ThreadOf(uint32_t rank, uint32_t lane, uint32_t stream) const;
  /// The rank and lane that the messages of a channel are for.
  Rank& ReceiverOf(size_t channel) const;
  Rank& RankAt(uint32_t rank, uint32_t lane) const;
  void Enqueue(uint32_t lane, size_t from, size_t to, const Message& message);
  bool Step();
  Status CheckStep(const Actor& actor, const PlanInstance& instance) const;
  Status Finish();
  Status FinishLane(uint32_t lane);

  /// One of the first stream for each lane, and one of each other stream.
  size_t ThreadsOfRank() const { return size_t{lanes_} + streams_ - 1; }

  uint32_t lanes_ = 1;
  uint32_t streams_ = 1;  ///< Of the plans.
  uint32_t ranks_of_lane_ = 1;
  std::vector<std::unique_ptr<Rank>> ranks_;  ///< [lane * ranks + rank]
  SimulationOptions options_;
  VirtualClock clock_;
  uint64_t random_state_ = 0;
  int64_t steps_ = 0;
  Status broken_;  ///< First invariant that did not hold.
  /// [(lane * threads + from thread) * threads + to thread], a queue each.
  std::vector<std::vector<Envelope>> channels_;
  std::vector<size_t> heads_;            ///< First envelope of each channel that is not delivered.
  std::vector<size_t> active_channels_;  ///< Those with something in them.
  std::vector<int64_t> busy_until_ns_;   ///< By thread.
  std::vector<Event> events_;            ///< Starts, pulls, launches and errors on the way.
};

}  // namespace heddle::actor
