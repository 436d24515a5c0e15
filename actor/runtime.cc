// SPDX-License-Identifier: Apache-2.0
#include "actor/runtime.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "actor/lane.h"
#include "actor/run_number.h"
#include "core/memory/memory_budget.h"

namespace heddle::actor {
namespace {

// Leads everything that is said of a run to its lane.
class RuntimeImpl : public Runtime, public RunControl {
 public:
  RuntimeImpl(const RuntimeOptions& options, const ops::KernelSource& kernels, ops::KernelContext& context,
              Link* link)
      : options_(options),
        admission_(options.budget != nullptr ? *options.budget : MemoryBudget::Process()),
        early_room_(options.most_early_messages),
        surroundings_{options_, kernels, link, *this, admission_, early_room_, streams_, threads_} {
    LaneAt(0).Open(options_.threads, context);
    for (size_t i = 1; i < streams_.size(); ++i) {
      threads_.push_back(std::make_unique<Dispatcher>(options_.rank, *this, link));
      threads_.back()->set_thread_name(streams_[i].name);
      if (link == nullptr) continue;
      const int threads = streams_[i].kind == StreamKind::kNetwork ? 1 : options_.threads;
      threads_.back()->StartThread(threads, options_.set_denormals);
    }
  }

  ~RuntimeImpl() override {
    for (const std::unique_ptr<Dispatcher>& thread : threads_) thread->StopThread();
  }

  Result<RunResult> Run(std::shared_ptr<const Plan> plan, uint32_t run,
                        std::map<std::string, Value> live_in) override {
    return LaneAt(LaneOf(run)).Run(std::move(plan), run, std::move(live_in));
  }

  bool HasFailedElsewhere(uint32_t lane) override { return LaneAt(lane).has_failed_elsewhere(); }

  void Leave(uint32_t run, uint32_t ranks, const Status& why) override {
    LaneAt(LaneOf(run)).Leave(run, ranks, why);
  }

  void OpenLane(uint32_t lane, int threads, const ops::KernelContext& context) override {
    HEDDLE_CHECK(lane > 0 && lane < kLanes, "lane 0 is open from the beginning");
    LaneAt(lane).OpenWithCopy(threads, context);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!cancelled_.ok()) LaneAt(lane).Cancel(cancelled_);
  }

  void CancelLane(uint32_t lane, Status why) override { LaneAt(lane).Cancel(why); }

  void Cancel(Status why) override {
    if (why.ok()) why = Cancelled("cancelled");
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!cancelled_.ok()) return;
      cancelled_ = why;
    }
    for (std::atomic<Lane*>& lane : lanes_)
      if (Lane* known = lane.load()) known->Cancel(why);
  }

  void OnMessage(const Message& message) override {
    const bool is_known = message.type == MessageType::kIdle ||
                          (CrossesRanks(message.type) && message.destination.rank() == options_.rank);
    if (is_known) LaneAt(LaneOf(message.run)).OnMessage(message);
  }
  void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    LaneAt(LaneOf(run)).OnError(rank, run, node, status);
  }
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) override {
    return LaneAt(LaneOf(run)).Published(run, register_id, slot);
  }

  ActiveRun* Active(uint32_t run) override { return LaneAt(LaneOf(run)).Active(run); }
  void ActorFailed(uint32_t run, NodeId node, Status status) override {
    LaneAt(LaneOf(run)).ActorFailed(run, node, std::move(status));
  }
  void StreamDone(ActiveRun& active) override {
    Dispatcher* const caller = active.caller;
    if (active.dispatchers_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
      caller->Post({.type = MessageType::kWake});
  }
  void Expose(uint32_t run, RegisterId register_id, uint8_t slot, const Value& value) override {
    LaneAt(LaneOf(run)).Expose(register_id, slot, value);
  }
  void Withdraw(uint32_t run, RegisterId register_id, uint8_t slot) override {
    LaneAt(LaneOf(run)).Withdraw(register_id, slot);
  }
  void AddWaits(uint32_t run, std::vector<std::string> lines) override {
    LaneAt(LaneOf(run)).AddWaits(std::move(lines));
  }

 private:
  Lane& LaneAt(uint32_t number) {
    std::atomic<Lane*>& place = lanes_[number];
    if (Lane* lane = place.load(std::memory_order_acquire)) return *lane;
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    if (Lane* lane = place.load(std::memory_order_acquire)) return *lane;
    owned_lanes_.push_back(std::make_unique<Lane>(number, surroundings_));
    place.store(owned_lanes_.back().get(), std::memory_order_release);
    return *owned_lanes_.back();
  }

  const RuntimeOptions options_;
  RunAdmission admission_;
  std::atomic<int64_t> early_room_;
  const std::vector<StreamDescription> streams_ = StandardStreams();
  std::vector<std::unique_ptr<Dispatcher>> threads_;  ///< Of all streams but the first, in order.
  const LaneSurroundings surroundings_;
  std::mutex lanes_mutex_;
  std::vector<std::unique_ptr<Lane>> owned_lanes_;
  std::array<std::atomic<Lane*>, kLanes> lanes_{};
  std::mutex mutex_;
  Status cancelled_;  // Under mutex_.
};

}  // namespace

std::unique_ptr<Runtime> Runtime::Create(const RuntimeOptions& options, const ops::KernelSource& kernels,
                                         ops::KernelContext& context, Link* link) {
  return std::make_unique<RuntimeImpl>(options, kernels, context, link);
}

}  // namespace heddle::actor
