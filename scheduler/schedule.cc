// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/values/sizes.h"
#include "scheduler/devices/choose_device.h"
#include "scheduler/devices/scratch_on_device.h"
#include "scheduler/estimate.h"
#include "scheduler/liveness.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/nodes_in_panels.h"
#include "scheduler/panel_entries.h"
#include "scheduler/panel_lists.h"
#include "scheduler/panel_plan.h"
#include "scheduler/passes/panel_copies.h"
#include "scheduler/place.h"
#include "scheduler/plan_builder.h"
#include "scheduler/plan_memory.h"

namespace heddle::scheduler {
namespace {

// Whether several ranks have rows of the value; of one whose cuts nobody knows yet they may.
bool IsSpread(const Distribution& where, int32_t ranks) {
  if (!where.IsSplit() || where.split.cuts.empty()) return where.IsSplit();
  int32_t holders = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) holders += where.split.End(rank) > where.split.Begin(rank);
  return holders > 1;
}

// Nodes that one rank computes although an operand is split over several.
std::vector<NodeId> WholeAlthoughSplit(const Graph& graph, const std::vector<Placement>& placements,
                                       int32_t ranks) {
  std::vector<NodeId> whole;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const Placement& placement = placements[static_cast<size_t>(id)];
    if (placement.split || !placement.result.IsOne() || node.Is("assign") || node.Is("result")) continue;
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
          return input != kNoNode && IsSpread(placements[static_cast<size_t>(input)].result, ranks);
        }))
      whole.push_back(id);
  }
  return whole;
}

// What the plan takes at most of the memory of the device, of the rank with the most: values, and what its
// operators work with.
int64_t BytesOnDevice(const Plan& plan, const DeviceOptions& options) {
  ops::DeviceDescription device = options.description;
  device.device = options.device;
  return SaturatingSum(PeakOnDevice(plan, device.device), ScratchOnDevice(plan, device));
}

// Slots, places in memory and what they need in all. What is on a device whose memory is the host's is there,
// too.
Status Complete(Plan* plan, const ScheduleOptions& options) {
  HEDDLE_RETURN_IF_ERROR(AssignSlots(plan));
  PlanMemory(plan);
  if (options.device && options.device->description.is_host) {
    const int64_t bytes = BytesOnDevice(*plan, *options.device);
    for (auto* const of_ranks : {&plan->peak_bytes, &plan->pool_bytes})
      for (int64_t& of_rank : *of_ranks) of_rank = SaturatingSum(of_rank, bytes);
  }
  for (int32_t rank = 0; rank < plan->ranks && options.in_panels; ++rank) {
    int64_t& peak = plan->peak_bytes[static_cast<size_t>(rank)];
    peak = SaturatingSum(peak, InTransitOn(*plan, rank).of_panels);
  }
  HEDDLE_DEBUG_CHECK(CheckLive(*plan).ok(), "guard edges follow plan order, so the plan stays live");
  return CheckMemory(*plan, options.memory_bytes);
}

// Whether every rank has room for the values of the plan and for what is in transit beside them; with
// `for_kernels` also for what kernels work with.
bool HasRoom(const Plan& plan, int64_t memory_bytes, bool for_kernels) {
  for (int32_t rank = 0; rank < plan.ranks; ++rank) {
    // What further threads hold leaves less room for panels that are kept.
    const MemoryOfPlan memory = MemoryOn(plan, rank, /*threads=*/1);
    const int64_t left = for_kernels ? BytesForKernels(memory_bytes, memory.working) : 0;
    if (SaturatingSum(memory.values, memory.in_transit) > memory_bytes - left) return false;
  }
  return true;
}

// Whether the device has room for what the plan has there, and what its operators work with.
Status CheckDevice(const Plan& plan, const ScheduleOptions& options) {
  if (!options.device || options.device->memory_bytes == 0) return OkStatus();
  const int64_t bytes = BytesOnDevice(plan, *options.device), most = options.device->memory_bytes;
  return bytes <= most ? OkStatus()
                       : ResourceExhausted("a plan needs {} bytes of a device, which has {}", bytes, most);
}

// How values pass in panels that are as high as they may be.
PanelOptions HighestPanels(const ScheduleOptions& options) {
  // A good part of the panels of a pass is still in a cache when the next of its tasks reads them.
  constexpr int64_t kMostPassBytes = int64_t{32} << 20;
  constexpr int64_t kPartsOfMemory = 4, kPartsOfWhole = 32, kPanelsOfStage = 4;
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : int64_t{1} << 40;
  PanelOptions panels{.panelled = options.panelled,
                      .least_bytes = LeastPanelledBytes(memory),
                      .pass_bytes = std::min(kMostPassBytes, memory / kPartsOfMemory),
                      .stage_bytes = memory / kPartsOfMemory,
                      .whole_bytes = memory / kPartsOfWhole};
  if (options.panel_bytes > 0)
    panels = {.panelled = options.panelled,
              .least_bytes = 0,
              .pass_bytes = options.panel_bytes,
              .stage_bytes = kPanelsOfStage * options.panel_bytes,
              .whole_bytes = 0};
  if (options.device && options.device->memory_bytes > 0) {
    panels.least_bytes = std::min(panels.least_bytes, options.device->memory_bytes / kPartsOfWhole);
    panels.pass_bytes = std::min(panels.pass_bytes, options.device->memory_bytes / kPartsOfMemory);
  }
  panels.most_entries = options.most_entries;
  if (!options.leaves_panels) panels.whole_bytes = std::numeric_limits<int64_t>::max();
  return panels;
}

// The highest panels with which the plan fits and leaves room, down to a granule. Else the highest with which
// it fits, with what is in transit if any do. `copies_are_tasks`: of panels that operators on a device read
// and make (CopyPanels); else these copy them within their acts, and need less memory there.
Result<Plan> CompleteInPanels(const Plan& plan, const ScheduleOptions& options, bool copies_are_tasks) {
  constexpr int64_t kLeastPassBytes = int64_t{1} << 20;
  PanelOptions panels = HighestPanels(options);
  std::optional<Plan> tight;
  for (;; panels.pass_bytes /= 2, panels.stage_bytes /= 2) {
    Plan tried = InPanels(plan, panels);
    if (copies_are_tasks) CopyPanels(&tried, options.device->device);
    Status status = Complete(&tried, options);
    // Passes and guards are put in the order of one rank each: that the ranks can follow it together is
    // looked at.
    if (status.ok()) status = CheckLive(tried);
    if (status.ok() && copies_are_tasks) status = CheckDevice(tried, options);
    const bool is_enough = options.panel_bytes > 0 || options.memory_bytes == 0;
    if (status.ok() && (is_enough || HasRoom(tried, options.memory_bytes, /*for_kernels=*/true)))
      return tried;
    if (status.ok() && (!tight || !HasRoom(*tight, options.memory_bytes, /*for_kernels=*/false)))
      tight = std::move(tried);
    if (!status.ok() && status.code() != StatusCode::kResourceExhausted) return status;
    if (panels.pass_bytes > kLeastPassBytes) continue;
    if (tight) return *std::move(tight);
    return status;
  }
}

OnDevice PlaceOnDevice(const Graph& graph, const std::vector<Placement>& placements,
                       const ScheduleOptions& options) {
  const std::vector<double> host_ns = NodesNs(graph, options.constants);
  std::optional<std::vector<NodeInPanels>> in_panels;
  if (options.in_panels) {
    Plan on_host = PlanBuilder(graph, placements, options.ranks).Build();
    CountLists(&on_host);
    in_panels = NodesInPanels(on_host, HighestPanels(options));
  }
  return {.device = options.device->device,
          .nodes = ChooseDevice(graph, host_ns, options.ranks, in_panels ? &*in_panels : nullptr,
                                *options.device),
          .residences = options.device->residences,
          .keeps_values = !options.in_panels};
}

}  // namespace

int64_t LeastPanelledBytes(int64_t memory_bytes) {
  constexpr int64_t kPartsOfMemory = 32;
  return memory_bytes / kPartsOfMemory;
}

namespace {

// What the memory of the device has no room for goes through it in panels; all values are whole on the host.
Result<Plan> ThroughDevice(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                           ScheduleOptions options) {
  options.in_panels = true;
  options.leaves_panels = false;
  return Schedule(graph, live_in, options);
}

}  // namespace

Result<Plan> Schedule(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                      const ScheduleOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Placement> placements, Place(graph, live_in, options));
  std::optional<OnDevice> on_device;
  if (options.device) on_device = PlaceOnDevice(graph, placements, options);
  Plan plan = PlanBuilder(graph, placements, options.ranks, std::move(on_device)).Build();
  plan.whole = WholeAlthoughSplit(graph, placements, options.ranks);
  CountLists(&plan);
  if (options.device) CountEntriesOnDevices(&plan, options.most_entries);
  for (Task& task : plan.tasks) task.cost_ns = EstimateNs(plan.graph, task, options.constants);
  if (options.in_panels) {
    Result<Plan> in_panels = CompleteInPanels(plan, options, options.device.has_value());
    // What acts copy where the memory of the device is the host's is in no plan, and takes its room all the
    // same.
    const bool may_copy_in_acts = options.device && !options.device->description.is_host;
    if (may_copy_in_acts && in_panels.status().code() == StatusCode::kResourceExhausted)
      in_panels = CompleteInPanels(plan, options, /*copies_are_tasks=*/false);
    HEDDLE_ASSIGN_OR_RETURN(plan, std::move(in_panels));
  } else {
    HEDDLE_RETURN_IF_ERROR(Complete(&plan, options));
    if (!CheckDevice(plan, options).ok()) return ThroughDevice(graph, live_in, options);
  }
  HEDDLE_RETURN_IF_ERROR(Verify(plan));
  return plan;
}

}  // namespace heddle::scheduler
