// SPDX-License-Identifier: Apache-2.0
#include "actor/device_launches.h"

#include <algorithm>
#include <utility>

#include "actor/launch/device_worker.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"

namespace heddle::actor {

bool DeviceLaunches::Begin(ActiveRun& active, size_t number, std::span<const Value* const> inputs,
                           int64_t act, ActResult* result, const Message& done) {
  if (streams_ == nullptr) return false;
  const bool is_timed = active.recorder != nullptr || active.times_acts;
  std::unique_ptr<ops::DeviceAct> on_device =
      active.body->BeginOnDevice(number, inputs, act, result->values, *streams_, is_timed);
  if (on_device == nullptr) return false;
  std::unique_ptr<Launched>& launched = launched_[number];
  launched = std::make_unique<Launched>(Launched{.active = active,
                                                 .number = number,
                                                 .result = result,
                                                 .done = done,
                                                 .act = std::move(on_device)});
  if (is_timed) launched->clock = active.recorder != nullptr ? &active.recorder->clock() : &SystemClock();
  if (active.progress != nullptr) active.progress->BeginAct((*active.lines)[number]);
  TakeStep(*launched);
  return true;
}

void DeviceLaunches::TakeStep(Launched& launched) {
  // When the message is there, the act may be over and gone.
  const auto ready = [&launched, mailbox = mailbox_, done = launched.done] {
    if (launched.clock != nullptr) launched.end_ns = launched.clock->MonotonicNs();
    mailbox->Post(done);
  };
  const auto step = [&launched, ready] {
    if (launched.clock != nullptr && launched.begin_ns == 0)
      launched.begin_ns = launched.clock->MonotonicNs();
    if (!launched.active.aborting.load(std::memory_order_relaxed)) return launched.act->Step(ready);
    launched.act->End(Cancelled("the run has ended"));
    ready();
  };
  switch (launched.act->next()) {
    case ops::DeviceAct::Place::kQueueing: return queueing_->Launch(step);
    case ops::DeviceAct::Place::kProcessor:
      launched.is_on_processor = true;
      ++on_processor_;
      return processor_->Launch(step);
    case ops::DeviceAct::Place::kHere:
    case ops::DeviceAct::Place::kDone: return step();
  }
}

bool DeviceLaunches::Continue(size_t number) {
  const auto found = launched_.find(number);
  if (found == launched_.end()) return true;
  Launched& launched = *found->second;
  if (std::exchange(launched.is_on_processor, false)) --on_processor_;
  if (launched.act->next() != ops::DeviceAct::Place::kDone) {
    TakeStep(launched);
    return false;
  }
  launched.result->status = launched.act->status();
  Note(launched);
  launched_.erase(found);
  return true;
}

void DeviceLaunches::Note(const Launched& launched) {
  ActiveRun& active = launched.active;
  if (launched.clock != nullptr) {
    const PlanInstance& instance = *active.instance;
    const std::string& name =
        instance.plan().streams[instance.actors()[launched.number].task().id.stream()].name;
    int64_t& last_ns = ends_ns_[name];
    // It has been queued behind the one before, and computed when that was done.
    const int64_t begin_ns = std::min(std::max(launched.begin_ns, last_ns), launched.end_ns);
    last_ns = launched.end_ns;
    if (active.times_acts) (*active.statistics)[launched.number].kernel_ns += launched.end_ns - begin_ns;
    if (active.recorder != nullptr)
      active.recorder->Add(lane_name_.empty() ? name : fmt::format("{} {}", lane_name_, name),
                           (*active.sites)[launched.number], begin_ns, launched.end_ns,
                           launched.result->values[0].shape().rows);
  }
  NoteRows(active, launched.number, *launched.result);
}

void NoteRows(ActiveRun& active, size_t number, const ActResult& result) {
  if (!result.status.ok()) return;
  const int64_t rows = result.values[0].shape().rows;
  (*active.statistics)[number].rows += rows;
  if (active.progress != nullptr)
    active.progress->AddAct(rows, active.instance->actors()[number].task().cost_ns);
}

}  // namespace heddle::actor
