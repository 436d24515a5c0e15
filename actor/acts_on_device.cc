// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "actor/task_body.h"
#include "ops/device/run/device_act.h"

namespace heddle::actor {

Status KernelBody::ActOnDevice(size_t number, std::span<const Value* const> inputs, int64_t act,
                               std::span<Value> results) {
  ops::DeviceStreams streams;
  const std::unique_ptr<ops::DeviceAct> on_device =
      BeginOnDevice(number, inputs, act, results, streams, /*ends_with_its_commands=*/true);
  if (on_device == nullptr)
    return Internal("task {} has no work on a device", tasks_[number].task->id.index());
  return ops::TakeAllSteps(*on_device);
}

std::unique_ptr<ops::DeviceAct> KernelBody::BeginOnDevice(size_t number,
                                                          std::span<const Value* const> inputs, int64_t act,
                                                          std::span<Value> results,
                                                          ops::DeviceStreams& streams,
                                                          bool ends_with_its_commands) {
  const Prepared& prepared = tasks_[number];
  const Task& task = *prepared.task;
  std::vector<bool> on_host;
  for (const RegisterId id : task.produced)
    on_host.push_back(plan_->registers[static_cast<size_t>(id)].device.IsHost());
  on_host.resize(std::max(on_host.size(), results.size()), true);
  // The plan counts the slots of a pass on the device, which acts that are only queued would exceed.
  const ops::DeviceAct::Surroundings surroundings{.device = task.id.device(),
                                                  .stream = plan_->streams[task.id.stream()].kind,
                                                  .streams = streams,
                                                  .context = context_,
                                                  .user = prepared.user,
                                                  .position = prepared.node != nullptr
                                                                  ? prepared.node->position
                                                                  : SourcePosition(),
                                                  .results = results,
                                                  .on_host = std::move(on_host),
                                                  .ends_with_its_commands =
                                                      ends_with_its_commands || task.panel_rows > 0};
  if (prepared.work == Work::kKernel && task.phase != Phase::kStage && prepared.node != nullptr)
    return ops::ActOfOperator(surroundings, kernels_, CallOf(prepared, inputs, act, nullptr));
  if (prepared.work != Work::kTransfer || inputs.empty() || inputs[0] == nullptr) return nullptr;
  const Format format = plan_->registers[static_cast<size_t>(task.produced[0])].info.format;
  if (surroundings.stream == StreamKind::kCopyIn) return ops::ActOfCopyIn(surroundings, *inputs[0], format);
  return ops::ActOfCopyOut(surroundings, *inputs[0], format);
}

}  // namespace heddle::actor
