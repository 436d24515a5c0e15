// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/device_tasks.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/environment/log.h"
#include "ops/cells/storage.h"
#include "ops/device/device.h"
#include "ops/device/device_matrix.h"
#include "ops/device/run/run_on_device.h"

namespace heddle::ops {
namespace {

// nullptr: this process does not have it.
ComputeDevice* Find(Device device, const KernelContext& context) {
  if (context.devices == nullptr) return nullptr;
  const std::vector<ComputeDevice*> devices = context.devices->devices();
  return device.index < devices.size() ? devices[device.index] : nullptr;
}

void WarnOfHost(const ComputeDevice& device, const Status& why) {
  static std::atomic<bool> has_warned = false;
  if (why.code() == StatusCode::kUnimplemented || has_warned.exchange(true)) return;
  HEDDLE_LOG(kWarning, "the processor computes in place of a device", {"device", device.description().name},
             {"why", why});
}

// Whether the device fails, or leaves the call; not the operator.
bool IsOfDevice(const Status& status) {
  return status.code() == StatusCode::kUnimplemented || status.code() == StatusCode::kResourceExhausted ||
         status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kInternal;
}

Status RunOnDevice(ComputeDevice& device, const KernelCall& call, std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device.MakeQueue());
  return DeviceOperators::Of(device).Run(call, *queue, results);
}

Result<Matrix> CopyThere(const Matrix& matrix, ComputeDevice& device) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device.MakeQueue());
  HEDDLE_ASSIGN_OR_RETURN(Matrix there, ToDevice(matrix, device, *queue));
  HEDDLE_RETURN_IF_ERROR(queue->Finish());
  return there;
}

}  // namespace

Status RunOnDeviceOrHost(Device device, const KernelSource& host, const KernelCall& call,
                         std::span<Value> results) {
  const bool reads_handle = std::any_of(call.inputs.begin(), call.inputs.end(), [](const Value* input) {
    return input != nullptr && input->IsPanels();
  });
  if (ComputeDevice* const found = Find(device, call.context); found != nullptr && !reads_handle) {
    const Status status = RunOnDevice(*found, call, results);
    if (status.ok() || !IsOfDevice(status)) return status;
    WarnOfHost(*found, status);
  }
  std::vector<Value> held;
  held.reserve(call.inputs.size());
  std::vector<const Value*> inputs;
  for (const Value* const input : call.inputs) {
    inputs.push_back(input);
    if (input == nullptr || !input->IsMatrix() || !input->matrix().IsOnDevice()) continue;
    HEDDLE_ASSIGN_OR_RETURN(held.emplace_back(), Decoded(*input));
    inputs.back() = &held.back();
  }
  KernelCall on_host = call;
  on_host.inputs = inputs;
  on_host.last_read = nullptr;
  return host.Run(on_host, results);
}

Result<Value> ToDeviceMemory(Device device, const Value& value, const KernelContext& context) {
  ComputeDevice* const found = Find(device, context);
  // Compressed and CSR matrices are copied by the operator that reads them.
  if (found == nullptr || !value.IsMatrix() || !value.matrix().IsDense()) return value;
  Result<Matrix> there = CopyThere(value.matrix(), *found);
  if (there.ok()) return Value(*std::move(there));
  WarnOfHost(*found, there.status());
  return value;
}

Result<Value> ToHostMemory(const Value& value, Format format) {
  if (!value.IsMatrix() || !value.matrix().IsOnDevice()) return value;
  HEDDLE_ASSIGN_OR_RETURN(Value cells, Decoded(value));
  if (format != Format::kSparse) return cells;
  HEDDLE_ASSIGN_OR_RETURN(Matrix entries, AsSparse(cells.matrix()));
  return Value(std::move(entries));
}

}  // namespace heddle::ops
