// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/device_act.h"

#include <atomic>
#include <optional>
#include <semaphore>
#include <utility>
#include <vector>

#include "core/environment/log.h"
#include "core/memory/counted_heap.h"
#include "ops/cells/storage.h"
#include "ops/device/device_matrix.h"
#include "ops/device/run/run_on_device.h"

namespace heddle::ops {
namespace {

void WarnOfHost(Device device, const Status& why) {
  static std::atomic<bool> has_warned = false;
  if (why.code() == StatusCode::kUnimplemented || has_warned.exchange(true)) return;
  HEDDLE_LOG(kWarning, "the processor computes in place of a device",
             {"device", fmt::format("{}:{}", Name(device.type), device.index)}, {"why", why});
}

// Whether the device fails, or leaves the call; not the operator.
bool IsOfDevice(const Status& status) {
  return status.code() == StatusCode::kUnimplemented || status.code() == StatusCode::kResourceExhausted ||
         status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kInternal;
}

// What has been read of a matrix on a device, stored as values of that format are.
Result<Matrix> StoredAs(const Matrix& cells, Format format) {
  return format == Format::kSparse && !cells.IsSparse() ? AsSparse(cells) : WithoutZeros(cells);
}

bool IsOnDevice(const Value* value) {
  return value != nullptr && value->IsMatrix() && value->matrix().IsOnDevice();
}

class OperatorAct : public DeviceAct {
 public:
  OperatorAct(const Surroundings& surroundings, const KernelSource& host, const KernelCall& call)
      : DeviceAct(surroundings), host_(host), call_(call) {}

 protected:
  Status Advance() override {
    switch (step_) {
      case OfOperator::kQueue: return Queue();
      case OfOperator::kQueueMore: return QueueMore();
      case OfOperator::kFinish: return FinishCall();
      case OfOperator::kRead: return ReadResults();
      case OfOperator::kStore: return StoreResults();
      case OfOperator::kFetch: return Fetch();
      case OfOperator::kHost: return RunOnHost();
    }
    return Internal("an act on a device has no step");
  }

 private:
  enum class OfOperator : uint8_t { kQueue, kQueueMore, kFinish, kRead, kStore, kFetch, kHost };

  Status Queue() {
    if (!commands().ok()) return LeaveToHost(commands());  // Those of acts before, which it waited for.
    for (const Value* const input : call_.inputs)
      if (input != nullptr && input->IsPanels()) return LeaveToHost(Unimplemented("on a device: row panels"));
    const Result<DeviceStreams::Stream> stream = Stream();
    if (!stream.ok()) return LeaveToHost(stream.status());
    Result<std::unique_ptr<QueuedCall>> queued =
        DeviceOperators::Of(*stream->device).Queue(call_, *stream->queue, given_.results);
    if (!queued.ok()) return Refused(queued.status());
    queued_ = *std::move(queued);
    return HasQueued(*stream->queue);
  }

  // The commands so far are done.
  Status QueueMore() {
    if (!commands().ok()) return LeaveToHost(commands());
    const Result<DeviceStreams::Stream> stream = Stream();
    if (!stream.ok()) return LeaveToHost(stream.status());
    const Status status = queued_->QueueMore();
    if (status.ok()) return HasQueued(*stream->queue);
    HoldUntilDone(*stream->queue, std::shared_ptr<QueuedCall>(std::move(queued_)));
    return Refused(status);
  }

  Status Refused(const Status& why) {
    ForgetResults();  // What has been made of them holds memory there.
    step_ = OfOperator::kQueue;
    if (WaitsForMemory(why)) return OkStatus();
    return IsOfDevice(why) ? LeaveToHost(why) : why;
  }

  Status HasQueued(DeviceQueue& queue) {
    if (queued_->HasMore()) {
      step_ = OfOperator::kQueueMore;
      WaitThen(queue, Place::kQueueing);
      return OkStatus();
    }
    step_ = OfOperator::kFinish;
    if (queued_->HasRest() || given_.ends_with_its_commands || MustRead()) {
      WaitThen(queue, queued_->HasRest() && queued_->IsLong() ? Place::kProcessor : Place::kHere);
      return OkStatus();
    }
    const Result<std::shared_ptr<DeviceMark>> mark = queue.Mark();
    if (!mark.ok()) return LeaveToHost(mark.status());
    for (const Value& result : given_.results)
      if (IsOnDevice(&result)) CellsOf(result.matrix()).WrittenIn(queue, *mark);
    Done();
    return OkStatus();
  }

  Status FinishCall() {
    if (!commands().ok()) return LeaveToHost(commands());
    const Status status = queued_->HasRest() ? queued_->Finish(given_.results) : OkStatus();
    if (!status.ok()) return IsOfDevice(status) ? LeaveToHost(status) : status;
    if (!MustRead()) {
      Done();
      return OkStatus();
    }
    step_ = OfOperator::kRead;
    GoOn(Place::kQueueing);
    return OkStatus();
  }

  bool MustRead(size_t i) const { return IsOnDevice(&given_.results[i]) && given_.on_host[i]; }
  bool MustRead() const {
    for (size_t i = 0; i < given_.results.size(); ++i)
      if (MustRead(i)) return true;
    return false;
  }

  // Results that are to be in the memory of the host.
  Status ReadResults() {
    fetched_.assign(given_.results.size(), Value());
    DeviceQueue* queue = nullptr;
    for (size_t i = 0; i < given_.results.size(); ++i) {
      if (!MustRead(i)) continue;
      const Status status = Read(given_.results[i].matrix(), &queue, &fetched_[i]);
      if (status.ok()) continue;
      if (queue != nullptr) HoldUntilDone(*queue, fetched_);
      return IsOfDevice(status) ? LeaveToHost(status) : status;
    }
    step_ = OfOperator::kStore;
    WaitThen(*queue, Place::kProcessor);
    return OkStatus();
  }

  Status StoreResults() {
    if (!commands().ok()) return LeaveToHost(commands());
    for (size_t i = 0; i < given_.results.size(); ++i) {
      if (!MustRead(i)) continue;
      const Value read = std::exchange(fetched_[i], Value());
      HEDDLE_ASSIGN_OR_RETURN(Matrix stored, StoredAs(read.matrix(), ResultsOf(call_.node)[i].format));
      given_.results[i] = Value(std::move(stored));
    }
    Done();
    return OkStatus();
  }

  Status LeaveToHost(const Status& why) {
    WarnOfHost(given_.device, why);
    if (why.code() == StatusCode::kUnavailable || !commands().ok())
      given_.streams.GiveUp(given_.device, why);
    ForgetResults();
    queued_.reset();
    step_ = OfOperator::kFetch;
    GoOn(Place::kQueueing);
    return OkStatus();
  }

  void ForgetResults() {
    for (Value& result : given_.results) result = Value();
  }

  // Inputs in the memory of the host.
  Status Fetch() {
    fetched_.assign(call_.inputs.size(), Value());
    step_ = OfOperator::kHost;
    GoOn(Place::kProcessor);
    DeviceQueue* queue = nullptr;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      if (!IsOnDevice(call_.inputs[i])) continue;
      const Matrix& there = call_.inputs[i]->matrix();
      if (std::optional<Matrix> original = OriginalOf(there)) {
        fetched_[i] = Value(*std::move(original));
        continue;
      }
      const Status status = Read(there, &queue, &fetched_[i]);
      if (status.ok()) continue;
      if (queue != nullptr) HoldUntilDone(*queue, fetched_);
      return status.code() == StatusCode::kUnavailable ? CellsOf(there).Lost(status) : status;
    }
    if (queue != nullptr) WaitThen(*queue, Place::kProcessor);
    return OkStatus();
  }

  Status Read(const Matrix& there, DeviceQueue** queue, Value* to) {
    HEDDLE_ASSIGN_OR_RETURN(const DeviceStreams::Stream stream, Stream());
    *queue = stream.queue;
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ReadToHost(there, *stream.queue));
    *to = Value(std::move(cells));
    return OkStatus();
  }

  Status RunOnHost() {
    std::vector<const Value*> inputs;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const bool is_there = IsOnDevice(call_.inputs[i]);
      if (is_there && !commands().ok() && !OriginalOf(call_.inputs[i]->matrix())) {
        given_.streams.GiveUp(given_.device, commands());
        return CellsOf(call_.inputs[i]->matrix()).Lost(commands());
      }
      if (is_there) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix cells, WithoutZeros(fetched_[i].matrix()));
        fetched_[i] = Value(std::move(cells));
      }
      inputs.push_back(is_there ? &fetched_[i] : call_.inputs[i]);
    }
    KernelCall on_host = call_;
    on_host.inputs = inputs;
    on_host.last_read = nullptr;
    Done();
    return host_.Run(on_host, given_.results);
  }

  const KernelSource& host_;
  const KernelCall call_;
  OfOperator step_ = OfOperator::kQueue;
  std::unique_ptr<QueuedCall> queued_;
  std::vector<Value> fetched_;  // In the memory of the host: results, or inputs, that are on the device.
};

class CopyInAct : public DeviceAct {
 public:
  CopyInAct(const Surroundings& surroundings, const Value& value, Format format)
      : DeviceAct(surroundings), value_(value), format_(format) {}

 protected:
  Status Advance() override {
    if (!commands().ok()) return Stay(commands());
    if (!there_.IsScalar()) {
      given_.results[0] = std::exchange(there_, Value());
      Done();
      return OkStatus();
    }
    // Compressed matrices are copied by the operator that reads them.
    if (!value_.IsMatrix() || !(value_.matrix().IsDense() || value_.matrix().IsSparse()))
      return Stay(Unimplemented("on a device: what is no dense or CSR matrix"));
    const Result<DeviceStreams::Stream> stream = Stream();
    if (!stream.ok()) return Stay(stream.status());
    const bool is_sparse = format_ == Format::kSparse;
    // A variable of the script lives on while its block runs. The commands of the copy hold the cells, too.
    const bool is_held = value_.matrix().IsSparse() == is_sparse && !value_.matrix().HoldsCellsAlone();
    Result<Matrix> cells = is_sparse ? EntriesToDevice(value_.matrix(), *stream->device, *stream->queue)
                                     : ToDevice(value_.matrix(), *stream->device, *stream->queue);
    if (!cells.ok()) return WaitsForMemory(cells.status()) ? OkStatus() : Stay(cells.status());
    if (is_held) CellsOf(*cells).KeepOriginal(value_.matrix());
    there_ = Value(*std::move(cells));
    WaitThen(*stream->queue, Place::kHere);
    return OkStatus();
  }

 private:
  Status Stay(const Status& why) {
    WarnOfHost(given_.device, why);
    if (why.code() == StatusCode::kUnavailable || !commands().ok())
      given_.streams.GiveUp(given_.device, why);
    given_.results[0] = value_;
    Done();
    return OkStatus();
  }

  const Value& value_;
  const Format format_;
  Value there_;
};

class CopyOutAct : public DeviceAct {
 public:
  CopyOutAct(const Surroundings& surroundings, const Value& value, Format format)
      : DeviceAct(surroundings), value_(value), format_(format) {}

 protected:
  Status Advance() override {
    if (!IsOnDevice(&value_)) {
      given_.results[0] = value_;
      Done();
      return OkStatus();
    }
    if (is_read_) return Store();
    if (std::optional<Matrix> original = OriginalOf(value_.matrix())) {
      cells_ = *std::move(original);
      is_read_ = true;
      GoOn(PlaceOfStore());
      return OkStatus();
    }
    const Result<DeviceStreams::Stream> stream = Stream();
    if (!stream.ok()) return Lost(stream.status());
    Result<Matrix> cells = ReadToHost(value_.matrix(), *stream->queue);
    if (!cells.ok()) return Lost(cells.status());
    cells_ = *std::move(cells);
    is_read_ = true;
    WaitThen(*stream->queue, PlaceOfStore());
    return OkStatus();
  }

 private:
  Place PlaceOfStore() const { return format_ == Format::kSparse ? Place::kProcessor : Place::kHere; }
  Status Store() {
    if (!commands().ok()) {
      given_.streams.GiveUp(given_.device, commands());
      return Lost(Unavailable("{}", commands().message()));
    }
    HEDDLE_ASSIGN_OR_RETURN(cells_, StoredAs(cells_, format_));
    given_.results[0] = Value(std::move(cells_));
    Done();
    return OkStatus();
  }
  Status Lost(const Status& why) const {
    return why.code() == StatusCode::kUnavailable ? CellsOf(value_.matrix()).Lost(why) : why;
  }

  const Value& value_;
  const Format format_;
  Matrix cells_;
  bool is_read_ = false;
};

}  // namespace

void DeviceAct::Step(const std::function<void()>& ready) {
  waits_for_ = nullptr;
  // An allocation that is refused would leave the step by an exception, and free memory of the host under
  // commands that are queued. What a step at the queue needs beside matrices is little.
  const HeapMode mode = next_ == Place::kQueueing ? HeapMode::kCounts : HeapMode::kRefuses;
  Status status = WithinMemory(given_.user, [&] {
    const HeapModeScope scope(mode);
    return Advance();
  });
  if (!status.ok()) {
    End(std::move(status));
    return ready();
  }
  commands_ = Status();
  if (waits_for_ == nullptr) return ready();
  const Status waiting = waits_for_->WhenDone([this, ready](const Status& ended) {
    commands_ = ended;
    ready();
  });
  if (waiting.ok()) return;
  static_cast<void>(waits_for_->Finish());
  commands_ = waiting;
  ready();
}

void DeviceAct::End(Status why) {
  status_ = why.At(given_.position);
  next_ = Place::kDone;
}

Result<DeviceStreams::Stream> DeviceAct::Stream() {
  return given_.streams.Find(given_.device, given_.stream, given_.context.devices);
}

bool DeviceAct::WaitsForMemory(const Status& status) {
  // Those that compute; then its own, of which some were queued before others found no memory.
  const StreamKind streams[] = {StreamKind::kCompute, given_.stream};
  const size_t most = given_.stream == StreamKind::kCompute ? 1 : 2;
  if (status.code() != StatusCode::kResourceExhausted || waits_ == most) return false;
  const Result<DeviceStreams::Stream> busy =
      given_.streams.Find(given_.device, streams[waits_], given_.context.devices);
  if (!busy.ok()) return false;
  ++waits_;
  WaitThen(*busy->queue, Place::kQueueing);
  return true;
}

std::unique_ptr<DeviceAct> ActOfOperator(const DeviceAct::Surroundings& surroundings,
                                         const KernelSource& host, const KernelCall& call) {
  return std::make_unique<OperatorAct>(surroundings, host, call);
}

std::unique_ptr<DeviceAct> ActOfCopyIn(const DeviceAct::Surroundings& surroundings, const Value& value,
                                       Format format) {
  return std::make_unique<CopyInAct>(surroundings, value, format);
}

std::unique_ptr<DeviceAct> ActOfCopyOut(const DeviceAct::Surroundings& surroundings, const Value& value,
                                        Format format) {
  return std::make_unique<CopyOutAct>(surroundings, value, format);
}

Status TakeAllSteps(DeviceAct& act) {
  while (act.next() != DeviceAct::Place::kDone) {
    // Whoever releases it may still be in there when the wait is over.
    const auto step = std::make_shared<std::binary_semaphore>(0);
    act.Step([step] { step->release(); });
    step->acquire();
  }
  return act.status();
}

}  // namespace heddle::ops
