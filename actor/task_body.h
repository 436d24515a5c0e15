// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actor/plan_instance.h"
#include "actor/runtime.h"
#include "core/programs/plan.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"
#include "ops/device/run/device_act.h"
#include "ops/io/formats/write_stages.h"
#include "ops/panels/kept_parts.h"
#include "ops/panels/panel_store.h"
#include "ops/reduction/joined_lists.h"

namespace heddle::actor {

/// What the tasks of one rank of a plan compute; whoever runs the actors calls it once an act. Acts of
/// different tasks may run at the same time on different threads, acts of one task never do.
class TaskBody {
 public:
  virtual ~TaskBody() = default;
  /// `number` is the actor's; `inputs` and `act` as in ActorHost::Perform. `results`: one for each data
  /// register of the task, at least one; that of a sink is ignored.
  virtual Status Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                         std::span<Value> results) = 0;
  /// The same of a task of a device's stream, for whoever takes its steps; `inputs` and `results` outlive the
  /// act. nullptr: of this task there are none, Perform does all of it.
  virtual std::unique_ptr<ops::DeviceAct> BeginOnDevice(size_t /*number*/,
                                                        std::span<const Value* const> /*inputs*/,
                                                        int64_t /*act*/, std::span<Value> /*results*/,
                                                        ops::DeviceStreams& /*streams*/,
                                                        bool /*ends_with_its_commands*/) {
    return nullptr;
  }
};

/// The body of real plans: operators through a KernelSource, and what the runtime itself knows how to do.
///
///   variable (source)        publishes the live-in, or its copy on a device (NameOnDevice); phase "slice":
///                            its rows [row_begin, row_end)
///   literal (source)         publishes the scalar
///   phase "slice"            rows (columns, as the task's axis says) [row_begin, row_end) of the input; of
///                            panels, all inputs together, a view of them (ops/panels/view_panels.h)
///   phase "gather"           rows, or columns, of all inputs, in order (kPack and kAccumulate: of their
///                            pieces); of an "rbind", or "cbind", in the format of its node
///   phase "shape"            1x3 (rows, columns, 0) of a matrix or of a frame whose types the node tells,
///   the
///                            text of the info of another frame; as a sink, of one rank or of all below each
///                            other: RunResult.sizes of the node's variable
///   assign (sink)            keeps the input as live-out of the node's variable
///   kCopy, kRepeat, assign   hand on their input
///   kUnpack                  hands on the next of `rate` equal row ranges; of a task with panel_rows: the
///                            next panel, or, in another phase than "slice", the kernel makes it; of what
///                            stages in panels exchange (ops/panels/kept_parts.h) the next part
///   phase "ready"            nothing; of a write that another rank does, keeps the rows of its file that
///                            values of this one are handles to
///   phase "stage"            kAccumulate: the lists of tree nodes of all acts, joined on the way
///   write (kAccumulate)      appends the panels of all acts to its file, which appears at the last of them
///   phase "panels"           kAccumulate: the panels of all acts as one handle, without panel_rows the parts
///                            that stages in panels exchange; of a node with stages: all of
///                            them, panel by panel (ops/panels/staged_run.h); of ranges, rbind and products
///                            the kernel, which reads panels and makes panels; else a handle to rows that the
///                            kernel of the node makes when they are read
///   phase "stage"            kCompute, of a node with more parts than ranks: the stage, panel by panel
///   phase "transfer"         the matrix in the memory of the device of its stream, or (kCopyOut) of the host
///   all else                 the kernel of the node, in the task's phase
class KernelBody : public TaskBody {
 public:
  /// Everything outlives the body; the plan's graph is where nodes and their input infos come from.
  KernelBody(const PlanInstance& instance, const ops::KernelSource& kernels, ops::KernelContext& context);

  /// Binds the live-ins of the next run, and keeps no other reference to them. kInternal when one that this
  /// rank's tasks need is missing.
  Status Begin(std::map<std::string, Value> live_in);
  Status Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                 std::span<Value> results) override;
  std::unique_ptr<ops::DeviceAct> BeginOnDevice(size_t number, std::span<const Value* const> inputs,
                                                int64_t act, std::span<Value> results,
                                                ops::DeviceStreams& streams,
                                                bool ends_with_its_commands) override;

  /// What the sinks of this run kept, moved out. Only while no task runs.
  void TakeResults(std::map<std::string, Value>* live_out, std::map<std::string, FoundSize>* sizes);

 private:
  enum class Work : uint8_t {
    kVariable,
    kLiteral,
    kSlice,
    kGather,
    kShape,
    kKeep,
    kForward,
    kKeepRows,
    kUnpack,
    kCollect,
    kCollectParts,
    kJoinLists,
    kAppend,
    kLazy,
    kStages,
    kStageInPanels,
    kTransfer,
    kKernel
  };
  struct Prepared {
    const Task* task = nullptr;
    const Node* node = nullptr;
    const ops::Operator* op = nullptr;  ///< Of the node, kKernel, kJoinLists; nullptr: the catalog has none.
    Work work = Work::kKernel;
    std::string_view user = "a copy";       ///< What asks for memory, for messages: of a node its operator.
    std::string variable;  ///< Of kVariable and kKeep: what the run calls the value (Runtime::Run).
    std::vector<ValueInfo> input_infos;
    bool reads_last = false;             ///< kKernel: nobody reads its first input after this task.
    const StagedNode* staged = nullptr;  ///< Of Phase::kStage and kStages; with
    const ops::StagedForm* form = nullptr;
    bool has_before = false;   ///< Its last input is StageCall::before.
    bool makes_values = true;  ///< Of Phase::kStage: false where no rank gets anything of it.
    Value held;                ///< kVariable, kLiteral: what is published; kKeep: what was received.
    std::unique_ptr<ops::PanelStore::Collector> collector;  ///< kCollect.
    std::unique_ptr<ops::PartsCollector> parts;             ///< kCollectParts.
    std::unique_ptr<ops::JoinedLists> lists;                ///< kJoinLists.
    std::unique_ptr<ops::AppendedWrite> write;              ///< kAppend.
  };
  static Work WorkOf(const Task& task, const Node* node);
  Status Act(Prepared& prepared, std::span<const Value* const> inputs, int64_t act,
             std::span<Value> results) const;
  Status ActOnDevice(size_t number, std::span<const Value* const> inputs, int64_t act,
                     std::span<Value> results);
  /// All but kernels and transfers.
  Result<Value> Move(Prepared& prepared, std::span<const Value* const> inputs, int64_t act) const;
  Status RunKernel(const Prepared& prepared, std::span<const Value* const> inputs, int64_t act,
                   std::span<Value> results) const;
  ops::KernelCall CallOf(const Prepared& prepared, std::span<const Value* const> inputs, int64_t act,
                         const ops::StagePlace* stage) const;
  Result<Value> ViewPanels(const Prepared& prepared, std::span<const Value* const> inputs) const;
  /// A handle to the rows that the kernel makes when they are read. Reading them fails with kDataLoss when
  /// what they come from has changed since.
  Result<Value> MakeLazy(const Prepared& prepared, std::span<const Value* const> inputs) const;
  /// All stages of an operator that reads panels, or one.
  Status RunStages(const Prepared& prepared, std::span<const Value* const> inputs,
                   std::span<Value> results) const;
  Result<Value> Collect(Prepared& prepared, const Value& rows, int64_t act) const;
  Result<Value> CollectParts(Prepared& prepared, const Value& part, int64_t act) const;
  Result<Value> Append(Prepared& prepared, std::span<const Value* const> inputs, int64_t act) const;
  Result<Value> JoinLists(Prepared& prepared, const Value& list, int64_t act) const;

  const std::shared_ptr<const Plan> plan_;  // Rows are made after the run, too.
  const ops::KernelSource& kernels_;
  ops::KernelContext& context_;
  std::vector<Prepared> tasks_;
  std::vector<Prepared*> variables_;  ///< Those with kVariable.
  std::vector<Prepared*> sinks_;      ///< Those with kKeep.
};

}  // namespace heddle::actor
