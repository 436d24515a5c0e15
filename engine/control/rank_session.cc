// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <functional>

#include "compiler/codegen/codegen.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "engine/blocks/block_runner.h"
#include "engine/checkpoints/checkpoint_file.h"
#include "engine/control/control_program.h"
#include "engine/control/shared_iterations.h"
#include "engine/session/control_channel.h"
#include "engine/session/planning.h"
#include "engine/session/session.h"
#include "engine/variables/random_seeds.h"
#include "ops/compressed/compression_records.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/fused/fused.h"
#include "ops/panels/panel_store.h"
#include "scheduler/devices/device_options.h"

namespace heddle::engine {
namespace {

ops::KernelContext MakeContext(const SessionOptions& options, const SessionEnvironment& environment,
                               const std::atomic<bool>& cancelled) {
  ops::KernelContext context;
  context.files = environment.files;
  context.clock = environment.clock != nullptr ? environment.clock : &SystemClock();
  context.print = environment.print;
  context.cancelled = &cancelled;
  context.times_operators = options.times_operators;
  context.threads = options.threads;
  context.rank = options.rank;
  if (const std::optional<scheduler::DeviceOptions> devices = scheduler::ParseDevices(options.devices)) {
    const Result<ops::DeviceSet*> set = ops::DevicesWith(devices->device);
    if (set.ok())
      context.devices = *set;
    else
      HEDDLE_LOG(kWarning, "the processor computes in place of a device", {"device", options.devices},
                 {"why", set.status()});
  }
  return context;
}

// Joins what one rank runs a program with: control program, blocks, iterations, machine code.
class RankSession : public Session {
 public:
  RankSession(const SessionOptions& options, Program program, const SessionEnvironment& environment)
      : options_(options),
        environment_(environment),
        program_(std::move(program)),
        context_(MakeContext(options_, environment_, cancelled_)),
        code_(codegen::GeneratedRegions()),
        fused_(code_, options_.fusion_strict,
               [](const Status& why) {
                 HEDDLE_LOG(kWarning, "fused operators run without machine code", {"why", why});
               }),
        runtime_(program_, options_, environment_, context_),
        blocks_(options_, environment_, context_, runtime_, RandomSeeds(options_.seed)) {
    context_.fused = &fused_;
    context_.panels = environment_.panels != nullptr ? environment_.panels : panels_.get();
    RandomSeeds::Connect(&program_);
    // What it takes of the program and the context is there by now.
    iterations_ = std::make_unique<SharedIterations>(program_, options_, environment_, context_, runtime_,
                                                     blocks_, cancelled_);
  }

  void SetLinks(const ops::LinkRates& links) override { options_.constants.links = links; }
  Status Run() override {
    return Run([this](ControlProgram& control) { return RunFromVariables(&control); });
  }
  Status Resume(const std::string& checkpoint, int ranks_before, CheckpointStore& store) override {
    return Run([&](ControlProgram& control) -> Status {
      // Before the first plan nobody knows how much panels may take beside the other values.
      if (MemoryOf(options_) > 0 || options_.panel_bytes > 0)
        HEDDLE_RETURN_IF_ERROR(context_.panels->SetRoom(0));
      HEDDLE_ASSIGN_OR_RETURN(ControlState state, ReadCheckpoint(checkpoint, ranks_before, options_.rank,
                                                                 options_.ranks, store, *context_.panels));
      HEDDLE_RETURN_IF_ERROR(control.Restore(std::move(state), ranks_before));
      has_resumed_ = true;
      return control.GoOn();
    });
  }
  bool has_resumed() const override { return has_resumed_; }

  void Cancel(Status why) override {
    {
      std::lock_guard lock(mutex_);
      if (why_.ok()) why_ = why;
    }
    cancelled_.store(true);
    runtime_.Cancel(why);
    iterations_->Cancel(why);
    if (environment_.control != nullptr) environment_.control->Interrupt(why);
  }

  actor::LinkHandler* handler() override { return &runtime_.runtime(); }
  bool own_cause() const override { return own_cause_; }
  const SessionStatistics& statistics() const override { return blocks_.statistics(); }

  RankRecord record() const override {
    RankRecord record;
    record.rank = options_.rank;
    record.begin_ns = begin_ns_;
    record.limit_bytes = MemoryBudget::Process().limit();
    if (environment_.recorder == nullptr) return record;
    record.sites = environment_.recorder->Sites();
    record.threads = environment_.recorder->Threads();
    runtime_.plan_records().Fill(&record);
    return record;
  }

 private:
  // Reads of panels end when the run is cancelled, wherever they are asked for.
  class HeardByPanels {
   public:
    HeardByPanels(ops::PanelStore& panels, const std::atomic<bool>& cancelled) : panels_(panels) {
      panels_.SetCancelled(&cancelled);
    }
    ~HeardByPanels() { panels_.SetCancelled(nullptr); }
    HeardByPanels(const HeardByPanels&) = delete;
    HeardByPanels& operator=(const HeardByPanels&) = delete;

   private:
    ops::PanelStore& panels_;
  };

  Status Run(const std::function<Status(ControlProgram& control)>& run) {
    const HeardByPanels heard(*context_.panels, cancelled_);
    begin_ns_ = context_.clock->MonotonicNs();
    Status status = blocks_.AddPlans();
    if (status.ok()) {
      ControlProgram control(program_, options_, blocks_, cancelled_);
      control.set_iterations(iterations_.get());
      control.set_states(environment_.states);
      status = run(control);
      iterations_->Finish();
    }
    if (environment_.progress != nullptr) environment_.progress->Close();
    Finish(context_.clock->MonotonicNs() - begin_ns_);
    if (status.ok()) status = blocks_.plans().Compare(blocks_.guard());
    if (!status.ok()) TellOthers(status);
    std::lock_guard lock(mutex_);
    // Whatever stopped because of a cancellation, the cancellation is the cause.
    if (!status.ok() && !why_.ok()) return why_;
    own_cause_ = !status.ok();
    return status;
  }

  Status RunFromVariables(ControlProgram* control) {
    SessionVariables* const variables = environment_.variables;
    if (variables == nullptr) return control->Run();
    if (variables->seeds) blocks_.seeds().scopes() = {*variables->seeds};
    HEDDLE_RETURN_IF_ERROR(control->Run(variables->frame));
    variables->frame = control->TakeVariables();
    variables->seeds = blocks_.seeds().scopes().front();
    return OkStatus();
  }

  // Another rank may wait for this one in a plan, so they are told that it comes to none any more. Rank 0
  // comes to the failure as well, perhaps later, where every rank has it, or where a plan has failed: it
  // prints first what comes before it in the script, and its report is the one that counts. This rank waits
  // for it, which ends with that report, or with the next decision of a rank 0 that has not failed.
  void TellOthers(const Status& status) {
    blocks_.Leave(status);
    if (options_.ranks == 1 || environment_.control == nullptr) return;
    const bool is_elsewhere = blocks_.plan_end() == BlockRunner::PlanEnd::kFailedElsewhere;
    if (is_elsewhere) return WaitForReport();
    const bool comes_on_rank_0 =
        status.is_on_every_rank() || blocks_.plan_end() == BlockRunner::PlanEnd::kFailed;
    if (comes_on_rank_0 && options_.rank != 0) (void)environment_.control->Receive();
  }

  // Another rank has failed before. Its report, which tells the calls on the way there, ends the waiting of
  // all others; it may wait itself until rank 0 has been there.
  void WaitForReport() {
    if (options_.rank == 0) (void)blocks_.plans().Compare(blocks_.guard());
    while (environment_.control->Receive().ok()) {
    }
  }

  void Finish(int64_t elapsed_ns) {
    SessionStatistics& statistics = blocks_.statistics();
    statistics.rank = options_.rank;
    statistics.ranks = options_.ranks;
    statistics.seed = options_.seed;
    statistics.elapsed_ns = elapsed_ns;
    statistics.constants = ops::OrBuiltIn(options_.constants, options_.threads);
    statistics.plans_ahead = blocks_.plans().precompiled();
    statistics.plans_compiled = blocks_.plans().misses();
    statistics.planning_ns += blocks_.compiler().planning_ns();
    statistics.fusion_ns += blocks_.compiler().fusion_ns();
    statistics.fusion_costed += blocks_.compiler().fusion_costed();
    statistics.plans_reused = blocks_.plans().hits();
    const codegen::CodegenStatistics code = code_->statistics();
    statistics.code_compiled = code.compiled;
    statistics.code_from_disk = code.from_disk;
    statistics.code_ns = static_cast<int64_t>(code.compile_ms * 1e6);
    statistics.fusion_fallbacks = fused_.fallbacks();
    for (const ops::FusedCounts& counts : fused_.Counts()) {
      statistics.fused.push_back(
          {counts.label, counts.calls, counts.nanoseconds, counts.bytes, counts.interpreted});
      statistics.bytes_moved += counts.bytes;
    }
    for (const ops::CompressionRecord& record : ops::CompressionRecords::Process().Take(&fused_))
      statistics.compressions.push_back(ToText(record));
    for (std::string& text : blocks_.recursions().bodies().Texts())
      statistics.recursions.push_back(std::move(text));
    for (const auto& [form, times] : blocks_.recursions().bodies().EvaluationCounts())
      statistics.recursion_forms[form] += times;
    const ops::PanelStatistics panels = context_.panels->Statistics();
    statistics.spilled_bytes = panels.written_bytes;
    statistics.unspilled_bytes = panels.read_bytes;
    statistics.peak_bytes = BlockPool::Process().Statistics().peak_in_use_bytes;
  }

  SessionOptions options_;  // What it is joined of refers to them.
  const SessionEnvironment environment_;
  Program program_;
  std::atomic<bool> cancelled_{false};
  ops::KernelContext context_;
  std::shared_ptr<codegen::GeneratedCode> code_;
  ops::FusedRuntime fused_;
  // Values of variables may be of the store: it outlives them.
  const std::unique_ptr<ops::SpillFiles> spill_files_ = ops::MakeSpillFiles(options_.spill_folder);
  const std::unique_ptr<ops::PanelStore> panels_ = ops::MakePanelStore(*spill_files_);
  SessionRuntime runtime_;
  BlockRunner blocks_;
  std::unique_ptr<SharedIterations> iterations_;
  int64_t begin_ns_ = 0;
  bool own_cause_ = false;
  bool has_resumed_ = false;
  std::mutex mutex_;
  Status why_;  // of the cancellation; under mutex_
};

}  // namespace

std::unique_ptr<Session> Session::Create(const SessionOptions& options, Program program,
                                         const SessionEnvironment& environment) {
  return std::make_unique<RankSession>(options, std::move(program), environment);
}

}  // namespace heddle::engine
