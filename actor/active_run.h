// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "actor/launch/launch_estimate.h"
#include "actor/plan_instance.h"
#include "actor/runtime.h"
#include "actor/task_body.h"

namespace heddle {
class ProgressBoard;
class Recorder;
}  // namespace heddle

namespace heddle::actor {

class Dispatcher;

/// A run that is in flight on a rank, as its dispatchers see it.
struct ActiveRun {
  uint32_t run = 0;
  PlanInstance* instance = nullptr;
  TaskBody* body = nullptr;
  bool times_acts = false;  ///< RuntimeOptions::times_acts
  /// By actor number; each entry of both is touched only by the thread that runs an act of the actor.
  std::vector<TaskStatistics>* statistics = nullptr;
  std::vector<LaunchEstimate>* estimates = nullptr;
  Recorder* recorder = nullptr;                  ///< RuntimeOptions::recorder,
  const std::vector<uint32_t>* sites = nullptr;  ///< and the sites there, by actor number.
  ProgressBoard* progress = nullptr;             ///< RuntimeOptions::progress,
  const std::vector<int32_t>* lines = nullptr;   ///< and what it shows, by actor number.
  Dispatcher* caller = nullptr;                  ///< That of the thread which waits for the end of the run.
  std::vector<Dispatcher*> serving;      ///< By stream of the plan: who runs its actors; null: it has none.
  std::atomic<int> dispatchers_left{0};  ///< Those whose actors are not all done.
  std::atomic<bool> aborting{false};
};

/// What a dispatcher needs of its runtime. Thread-safe.
class RunControl {
 public:
  virtual ~RunControl() = default;
  /// The run of that number while it is in flight, else nullptr. Stays valid until the caller has reported
  /// StreamDone.
  virtual ActiveRun* Active(uint32_t run) = 0;
  virtual void ActorFailed(uint32_t run, NodeId node, Status status) = 0;
  /// All actors of one dispatcher are done; it does not touch `active` after this.
  virtual void StreamDone(ActiveRun& active) = 0;
  virtual void Expose(uint32_t run, RegisterId register_id, uint8_t slot, const Value& value) = 0;
  virtual void Withdraw(uint32_t run, RegisterId register_id, uint8_t slot) = 0;
  /// What actors waited for when a stalled run was ended.
  virtual void AddWaits(uint32_t run, std::vector<std::string> lines) = 0;
};

}  // namespace heddle::actor
