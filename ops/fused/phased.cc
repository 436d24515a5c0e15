// SPDX-License-Identifier: Apache-2.0
// The operator "phased": several operators that run as one, phase by phase (docs/stitching.md, "Phases"). It
// costs one task, whatever is in it, and what only its operators read never leaves it. A phase ends where its
// parallel loops end, so no thread waits for another one inside of a loop.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <mutex>
#include <utility>

#include "core/environment/clock.h"
#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "ops/base/graph_run.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/cells/stored_inputs.h"
#include "ops/fused/by_operators.h"
#include "ops/fused/fused.h"

namespace heddle::ops {
namespace {

// An operator that takes one thread no longer than this has one thread, and the operators of its phase have
// the others.
constexpr double kThreadedNs = 16'000;
// Operators of one phase that take one thread no longer together are done before other threads would have
// begun.
constexpr double kSerialNs = 4'000;

struct PhaseSteps {
  std::vector<OperatorStep> wide;   // Each runs on all threads, one after the other.
  std::vector<OperatorStep> small;  // Each runs on one thread, several at a time.
  double small_ns = 0;              // Of all small steps, by one thread.
  std::vector<NodeId> frees;        // Values that no later phase reads.
};

struct PhasedProgram {
  PhasedOperator phased;
  std::vector<PhaseSteps> phases;
  std::vector<int> inputs;  // By node: the input that a variable stands for, or -1.
  GraphLayout layout;
  double working_bytes = 0;  // The most that inner values and the operators of a phase hold at one time.
  std::string label;         // "phased of 7 train.dml:12:9"
  int64_t bytes = 0;         // Read and written by the operators that are not fused.
};

size_t Index(NodeId id) { return static_cast<size_t>(id); }

double BytesOf(const Node& node) {
  double bytes = 0;
  for (const ValueInfo& result : ResultsOf(node)) bytes += static_cast<double>(KnownBytes(result));
  return bytes;
}

// The node that computes a value: for a node "result" its tuple, else the node itself.
NodeId MakerOf(const Graph& body, NodeId id) { return body[id].Is("result") ? body[id].inputs[0] : id; }

class PhasedCompiler {
 public:
  explicit PhasedCompiler(PhasedOperator phased) { program_.phased = std::move(phased); }

  Result<PhasedProgram> Run() {
    HEDDLE_RETURN_IF_ERROR(Verify(program_.phased));
    phase_of_ = PhasesOf(body());
    program_.phases.resize(static_cast<size_t>(*std::max_element(phase_of_.begin(), phase_of_.end())) + 1);
    program_.inputs.assign(body().nodes.size(), -1);
    FindReaders();
    for (NodeId id = 0; id < body().size(); ++id) {
      if (body()[id].Is("variable")) {
        const std::string& name = body()[id].Text("name");
        std::from_chars(name.data(), name.data() + name.size(), program_.inputs[Index(id)]);
      }
      if (phase_of_[Index(id)] >= 0) HEDDLE_RETURN_IF_ERROR(AddStep(id));
    }
    program_.layout = GraphLayout(body());
    CountBytes();
    SetLabel();
    return std::move(program_);
  }

 private:
  const Graph& body() const { return program_.phased.body; }

  void FindReaders() {
    last_phase_.assign(body().nodes.size(), -1);
    readers_in_last_.assign(body().nodes.size(), 0);
    for (NodeId id = 0; id < body().size(); ++id) {
      if (phase_of_[Index(id)] < 0) continue;
      for (const NodeId input : body()[id].inputs) {
        if (input == kNoNode) continue;
        const size_t maker = Index(MakerOf(body(), input));
        if (phase_of_[Index(id)] > last_phase_[maker]) readers_in_last_[maker] = 0;
        last_phase_[maker] = std::max(last_phase_[maker], phase_of_[Index(id)]);
        readers_in_last_[maker] += last_phase_[maker] == phase_of_[Index(id)] ? 1 : 0;
      }
    }
    is_root_.assign(body().nodes.size(), false);
    for (const NodeId root : program_.phased.roots) is_root_[Index(MakerOf(body(), root))] = true;
  }

  Status AddStep(NodeId id) {
    const Node& node = body()[id];
    OperatorStep step{.node = id, .op = FindOperator(node.op)};
    if (step.op == nullptr) return Internal("no operator {} in an operator of phases", node.op);
    SetSizes(body(), &step);
    if (!node.inputs.empty() && node.inputs[0] != kNoNode) {
      const size_t first = Index(node.inputs[0]);
      step.reads_last = phase_of_[first] >= 0 && !is_root_[first] && readers_in_last_[first] == 1 &&
                        last_phase_[first] == phase_of_[Index(id)];
    }
    const double ns = NanosecondsOf(CostOf(node, step.input_infos), BuiltInConstants(1));
    if (!IsFused(node) && !node.info.IsScalar()) {
      program_.bytes += static_cast<int64_t>(BytesOf(node));
      for (const ValueInfo& input : step.input_infos) program_.bytes += KnownBytes(input);
    }
    PhaseSteps& phase = program_.phases[Index(phase_of_[Index(id)])];
    if (ns < kThreadedNs) {
      phase.small.push_back(std::move(step));
      phase.small_ns += ns;
    } else {
      phase.wide.push_back(std::move(step));
    }
    if (!is_root_[Index(id)])
      program_.phases[Index(std::max(last_phase_[Index(id)], phase_of_[Index(id)]))].frees.push_back(id);
    return OkStatus();
  }

  void CountBytes() {
    double held = 0;
    for (const PhaseSteps& phase : program_.phases) {
      double most = 0, of_small = 0;
      for (const OperatorStep& step : phase.wide) {
        most = std::max(most, WorkingBytesOf(body()[step.node], step.input_infos));
        held += is_root_[Index(step.node)] ? 0 : BytesOf(body()[step.node]);
      }
      for (const OperatorStep& step : phase.small) {
        of_small += WorkingBytesOf(body()[step.node], step.input_infos);
        held += is_root_[Index(step.node)] ? 0 : BytesOf(body()[step.node]);
      }
      program_.working_bytes = std::max(program_.working_bytes, held + std::max(most, of_small));
      for (const NodeId id : phase.frees) held -= BytesOf(body()[id]);
    }
  }

  void SetLabel() {
    size_t operators = 0;
    for (const PhaseSteps& phase : program_.phases) operators += phase.wide.size() + phase.small.size();
    program_.label = "phased of " + std::to_string(operators);
    if (const SourcePosition& position = body()[program_.phased.roots[0]].position; position.IsKnown())
      program_.label += " " + ShortPlace(position);
  }

  PhasedProgram program_;
  std::vector<int> phase_of_, last_phase_;  // By node: its phase; the phase of its last reader.
  std::vector<int> readers_in_last_;        // By node: readers in that last phase.
  std::vector<bool> is_root_;
};

// For all executors of the process: a program is a function of its operators alone.
Result<std::shared_ptr<const PhasedProgram>> ProgramOf(const Node& node) {
  static constexpr size_t kMostPrograms = 1024;
  static std::mutex mutex;
  static ByOperators<PhasedOperator, const PhasedProgram> programs(kMostPrograms);
  {
    const std::lock_guard lock(mutex);
    if (std::shared_ptr<const PhasedProgram> found = programs.Find(node.phased)) return found;
  }
  HEDDLE_ASSIGN_OR_RETURN(PhasedProgram compiled, PhasedCompiler(*node.phased).Run());
  auto program = std::make_shared<const PhasedProgram>(std::move(compiled));
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<const PhasedProgram> found = programs.Find(node.phased)) return found;
  programs.Add(node.phased, program, [](const PhasedProgram&) {});
  return std::shared_ptr<const PhasedProgram>(std::move(program));
}

// One call.
class PhasedRun {
 public:
  PhasedRun(const PhasedProgram& program, const KernelCall& call)
      : program_(program), call_(call), values_(body(), program.layout) {
    for (NodeId id = 0; id < body().size(); ++id) {
      if (const int input = program.inputs[Index(id)]; input >= 0)
        values_.Refer(id, call.inputs[Index(input)]);
      else if (body()[id].Is("literal"))
        values_.Own(id)[0] = *body()[id].FindAttribute("value");
    }
  }

  Status Run(std::span<Value> results) {
    for (const PhaseSteps& phase : program_.phases) {
      for (const OperatorStep& step : phase.wide) HEDDLE_RETURN_IF_ERROR(RunStep(step));
      HEDDLE_RETURN_IF_ERROR(RunSmall(phase));
      for (const NodeId id : phase.frees) values_.Reset(id);
    }
    for (size_t i = 0; i < results.size(); ++i) results[i] = *values_.Of(program_.phased.roots[i]);
    return OkStatus();
  }

  /// Of all threads, in operators that are not fused and do not record it themselves; 0 where not timed.
  int64_t nanoseconds() const { return nanoseconds_; }

 private:
  const Graph& body() const { return program_.phased.body; }

  Status RunStep(const OperatorStep& step) {
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    const bool is_timed = call_.context.times_operators && !IsFused(body()[step.node]);
    Clock* const clock = is_timed ? call_.context.clock : nullptr;
    const int64_t start = clock != nullptr ? clock->MonotonicNs() : 0;
    const Status status = values_.Run(step, CatalogKernels(), call_.context);
    if (clock != nullptr) nanoseconds_ += clock->MonotonicNs() - start;
    return status;
  }

  // The first error in their order.
  Status RunSmall(const PhaseSteps& phase) {
    const std::vector<OperatorStep>& steps = phase.small;
    if (steps.size() < 2 || phase.small_ns < kSerialNs) {
      const SerialLoops serial;
      for (const OperatorStep& step : steps) HEDDLE_RETURN_IF_ERROR(RunStep(step));
      return OkStatus();
    }
    std::vector<Status> statuses(steps.size());
    ParallelFor(static_cast<int64_t>(steps.size()), 1, [&](int64_t begin, int64_t end) {
      const SerialLoops serial;
      for (int64_t i = begin; i < end; ++i)
        statuses[static_cast<size_t>(i)] = RunStep(steps[static_cast<size_t>(i)]);
    });
    for (Status& status : statuses) HEDDLE_RETURN_IF_ERROR(std::move(status));
    return OkStatus();
  }

  const PhasedProgram& program_;
  const KernelCall& call_;
  GraphValues values_;
  std::atomic<int64_t> nanoseconds_ = 0;
};

Result<std::vector<ValueInfo>> InferPhased(const InferContext& context) {
  const PhasedOperator& phased = *context.node.phased;
  std::vector<ValueInfo> results;
  for (const NodeId root : phased.roots) results.push_back(phased.body[root].info);
  return results;
}

Cost PhasedCost(const Node& node, std::span<const ValueInfo>) {
  Cost cost;
  const auto program = ProgramOf(node);
  if (!program.ok()) return cost;
  for (const PhaseSteps& phase : (*program)->phases)
    for (const std::vector<OperatorStep>* steps : {&phase.wide, &phase.small})
      for (const OperatorStep& step : *steps) {
        const Cost own = CostOf((*program)->phased.body[step.node], step.input_infos);
        cost.work += own.work;
        cost.bytes += own.bytes;
      }
  return cost;
}

double PhasedWorkingBytes(const Node& node, std::span<const ValueInfo>) {
  const auto program = ProgramOf(node);
  return program.ok() ? (*program)->working_bytes : 0;
}

Status RunPhased(const KernelCall& call, std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const PhasedProgram> program, ProgramOf(call.node));
  PhasedRun run(*program, call);
  HEDDLE_RETURN_IF_ERROR(run.Run(results));
  FusedRuntime& runtime = call.context.fused == nullptr ? InterpretedRuntime() : *call.context.fused;
  runtime.Record(program->label, run.nanoseconds(), program->bytes);
  return OkStatus();
}

}  // namespace

extern constexpr Operator kPhased = {.name = "phased",
                                     .parameters = "x",
                                     .max_inputs = -1,
                                     .results = -1,
                                     .infer_several = InferPhased,
                                     .cost = PhasedCost,
                                     .run_several = RunPhased,
                                     .takes_singles = TakesAnySingles,
                                     .storages = kAnyStorage,
                                     .working_bytes = PhasedWorkingBytes};

}  // namespace heddle::ops
