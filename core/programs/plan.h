// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"
#include "core/programs/phase.h"
#include "core/programs/stream.h"

namespace heddle {

/// Actor id: rank 16 | device type 5 | device index 7 | stream 15 | task 21, from the top (runtime reference
/// 2.1). The stream is a place in Plan::streams, and the device that stream's.
struct TaskId {
  uint64_t bits = 0;
  /// On the first CPU.
  static constexpr TaskId Make(uint32_t rank, uint32_t stream, uint32_t index) {
    return Make(rank, {}, stream, index);
  }
  static constexpr TaskId Make(uint32_t rank, Device device, uint32_t stream, uint32_t index) {
    return {uint64_t{rank} << 48 | uint64_t{static_cast<uint8_t>(device.type)} << 43 |
            uint64_t{device.index} << 36 | uint64_t{stream} << 21 | index};
  }
  uint32_t rank() const { return static_cast<uint32_t>(bits >> 48); }
  Device device() const {
    return {static_cast<DeviceType>(bits >> 43 & (kMostDeviceTypes - 1)),
            static_cast<uint32_t>(bits >> 36) & (kMostDevices - 1)};
  }
  uint32_t stream() const { return static_cast<uint32_t>(bits >> 21) & (kMostStreams - 1); }
  uint32_t index() const { return static_cast<uint32_t>(bits) & 0x1fffff; }
  bool operator==(const TaskId&) const = default;
  auto operator<=>(const TaskId&) const = default;
};

/// What an actor does with its registers (runtime reference 2.6).
enum class TaskKind : uint8_t {
  kCompute,     ///< all inputs -> kernel -> all outputs
  kSource,      ///< makes `count` pieces from nothing: a live-in variable, or an operator without inputs
  kSink,        ///< consumes: a live-out variable, a side effect
  kCopy,        ///< pulls a register of another rank into a local one
  kRepeat,      ///< 1 input per `rate` acts
  kAccumulate,  ///< 1 output per `rate` acts
  kPack,        ///< `rate` inputs -> 1 output
  kUnpack,      ///< 1 input -> `rate` outputs
};
std::string_view Name(TaskKind kind);

using RegisterId = int32_t;

/// One physical instance of an operator on one rank.
struct Task {
  TaskId id;
  TaskKind kind = TaskKind::kCompute;
  NodeId node = kNoNode;  ///< The graph node it is an instance of, for messages and statistics.
  Phase phase = Phase::kWhole;
  std::vector<RegisterId>
      consumed;  ///< In the order of the node's inputs; -1 for an optional input left out.
  /// The data registers, one for each result in the order of the node's results, whether anything reads it or
  /// not (of a task that finishes reductions: for each of those); then the control registers. A sink has none
  /// of data.
  std::vector<RegisterId> produced;
  std::vector<RegisterId> control_in;
  int32_t stage = 0;        ///< Of Phase::kStage.
  Axis axis = Axis::kRows;  ///< The dimension that is split: the next three count rows, or else columns. Of
                            ///< Phase::kGather, along which the inputs are joined.
  int64_t row_begin = 0;    ///< Rows of the split dimension that this task computes,
  int64_t row_end = 0;      ///< [row_begin, row_end) of total_rows.
  int64_t total_rows = 0;
  int64_t panel_rows = 0;  ///< Rows of an act: the a-th computes those from row_begin + a * panel_rows on,
                           ///< the last one what is left. 0: every act computes all.
  int64_t count = 1;       ///< Acts of a source per run.
  int64_t rate = 1;        ///< Of the multi-rate kinds.
  int64_t cost_ns = 0;     ///< About how long an act takes, from shapes alone; kUnboundedCost where it waits
                           ///< for the world outside (files). 0: next to nothing, or not known.
};
constexpr int64_t kUnboundedCost = -1;

/// A typed memory slot group with reference counters: one producer, some consumers (runtime reference 2.2).
struct Register {
  RegisterId id = 0;
  TaskId producer;
  std::vector<TaskId> consumers;
  int32_t slots = 1;
  bool control = false;  ///< Zero bytes; carries order only.
  int64_t bytes = 0;  ///< Upper bound of one slot; 0 for scalars and control. The entries of a CSR matrix are
                      ///< not in it: they are counted when they are allocated.
  ValueInfo info;     ///< Of the local piece (rows of this rank).
  Device device;      ///< In whose memory its slots are: that of the producer, but for copies from a device.
};

/// How the ranks share out an operator that they compute in stages (ops/base/stages.h).
struct StagedNode {
  NodeId node = kNoNode;
  int32_t form = 0;   ///< Which of the ways of its operator.
  Split rows;         ///< Of the inputs that are read in parts: by rows, or by columns.
  Split result_rows;  ///< Of the results; without cuts where only the run tells them, or each rank has all.
};

/// A variable as the plan finds it or leaves it.
struct Binding {
  std::string variable;
  Distribution distribution;  ///< Of a live-out that is split without cuts, the run tells the cuts.
  ValueInfo info;             ///< Of the whole value; kUnknown rows/columns are filled in by the run.
  NodeId node = kNoNode;
  Device device;  ///< In whose memory the value is.
};

/// All tasks and registers of one block for all ranks. Plain data; a rank constructs only the actors of its
/// own tasks.
struct Plan {
  /// What a plan leaves of the memory of its device to variables which it does not read. It says so itself:
  /// ranks whose machines have other devices, or none, make room for the same plan alike.
  struct DeviceRoom {
    int64_t bytes = INT64_MAX;    ///< Of its memory; INT64_MAX: the session has no device.
    bool is_host = false;         ///< Its memory is that of the process; then
    int64_t of_host = INT64_MAX;  ///< of that of the process, with what variables on the host take of it.
  };

  uint64_t key = 0;  ///< Hash of block, shapes, formats, distributions, ranks, options.
  int32_t ranks = 1;
  std::vector<StreamDescription> streams = StandardStreams();  ///< Of every rank.
  Graph graph;                      ///< What the tasks' nodes refer to: shapes known, formats fixed.
  std::vector<StagedNode> staged;   ///< In the order of their nodes.
  std::vector<NodeId> whole;        ///< Nodes that one rank computes although an operand is split over all.
  std::vector<Task> tasks;          ///< Sorted by (rank, execution order).
  std::vector<Register> registers;  ///< registers[i].id == i
  std::vector<Binding> live_in;
  std::vector<Binding> live_out;
  std::vector<int64_t> peak_bytes;  ///< Per rank: what its registers take at most, whatever the interleaving
                                    ///< of acts (I8); checked before the plan runs.
  std::vector<int64_t> pool_bytes;  ///< Per rank: the same as the pool of blocks rounds sizes up.
  DeviceRoom device_room;

  std::string ToText() const;
  static Result<Plan> Parse(std::string_view text);
};

/// The plan-wide invariants: ids dense, one producer each, consumers mirror tasks' lists, every cross-rank
/// edge ends in a kCopy task. An error here is our bug (kInternal). Liveness is scheduler/liveness.h.
Status Verify(const Plan& plan);

}  // namespace heddle
