// SPDX-License-Identifier: Apache-2.0
#include "engine/control/parallel_iterations.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "compiler/optimize/split_sums.h"
#include "core/environment/clock.h"
#include "core/environment/progress_board.h"
#include "core/memory/counted_heap.h"
#include "core/memory/heap_of_thread.h"
#include "core/memory/memory_budget.h"
#include "core/programs/for_each_block.h"
#include "engine/variables/merge_variable.h"
#include "ops/base/parallel.h"

namespace heddle::engine {
namespace {

constexpr int kMostWorkers = 64;
// Threads cost about as much as this to start and to end, for each of a worker's rounds when there are few.
constexpr int64_t kShortIterationNs = 20'000;

bool IsNatural(const Variable* variable) {
  if (variable == nullptr || !variable->info.IsScalar()) return false;
  const Scalar& scalar = variable->value.scalar();
  if (scalar.IsString()) return false;
  const double value = scalar.AsDouble();
  return value >= 0 && value == std::trunc(value);
}

// Bytes of a variable of which every worker needs a copy, as it assigns cells of it.
int64_t BytesToCopy(const Variable& variable) {
  switch (variable.info.data_type) {
    case DataType::kMatrix:
    case DataType::kFrame: return variable.value.bytes();
    case DataType::kList: return static_cast<int64_t>(variable.list->size() * sizeof(Variable));
    case DataType::kScalar:
    case DataType::kTuple:
    case DataType::kUnknown: return 0;
  }
  return 0;
}

}  // namespace

bool IsAsChecked(const Block& loop, const LoopRange& range, const VariableTable& frame) {
  const int64_t least = std::min(range.from, range.ValueOf(range.rounds - 1));
  return std::all_of(loop.natural.begin(), loop.natural.end(), [&](const std::string& name) {
    return name == loop.variable ? least >= 0 : IsNatural(frame.Find(name));
  });
}

// A lane of the runtime beside lane 0, kept from loop to loop with the blocks that it knows.
struct ParallelIterations::Lane {
  uint32_t number = 0;
  ops::KernelContext context;
  std::atomic<bool> stop{false};
  std::unique_ptr<BlockRunner> runner;
  std::unique_ptr<ControlProgram> control;
};

// A loop that runs.
struct ParallelIterations::Loop {
  Loop(const Block& of_block, const LoopRange& of_range, size_t of_depth, const Adding& of_adding,
       SumTerms* of_terms, const OrderedOutput::Print& print, int64_t printed_before)
      : block(of_block),
        range(of_range),
        depth(of_depth),
        adding(of_adding),
        terms(of_terms),
        output(print, printed_before) {}

  const Block& block;
  const LoopRange& range;
  const size_t depth;  // Calls around it.
  const Adding& adding;
  SumTerms* const terms;
  OrderedOutput output;
  std::vector<std::unique_ptr<Worker>> workers;
  std::map<std::string, Variable> sums;  // Of the iteration whose turn it is, until it takes them.
  std::atomic<uint64_t> next{0};         // The first iteration that nobody has taken.
  std::mutex mutex;
  uint64_t failed = UINT64_MAX;  // The first iteration that failed, under mutex,
  Status error;                  // and why.
  std::vector<CallSite> open_calls;
  bool alone_may_differ = false;  // One iteration at a time may go well, or fail elsewhere.
};

// One thread of a loop, and what it has of its own.
class ParallelIterations::Worker : public SumTaker {
 public:
  Worker(Lane* lane, Loop* loop) : lane_(*lane), loop_(*loop) {}

  Lane& lane() const { return lane_; }
  VariableTable& frame() { return frame_; }
  // The one that it is at.
  std::atomic<uint64_t>& iteration() { return iteration_; }
  uint64_t at() const { return iteration_.load(); }
  // The one that it ended with.
  uint64_t last() const { return last_; }
  int64_t busy_ns = 0;

  Result<bool> Run(const Block& block, VariableTable* frame) override {
    const auto found = loop_.adding.find(&block);
    if (found == loop_.adding.end()) return false;
    if (loop_.terms != nullptr) {
      HEDDLE_RETURN_IF_ERROR(
          WithinMemory("terms of a sum", [&] { return Keep(block, found->second, *frame); }));
      return true;
    }
    if (!has_turn_) {
      if (!loop_.output.AwaitTurn(iteration_.load(), lane_.stop)) return Cancelled("the job was cancelled");
      has_turn_ = true;
      for (auto& [name, sum] : loop_.sums) frame->Set(name, std::move(sum));
    }
    HEDDLE_RETURN_IF_ERROR(lane_.runner->Run(block.id, block.graph, frame));
    return true;
  }

  // Hands sums on and lets the next iteration have its turn.
  void End(uint64_t iteration) {
    if (has_turn_) {
      for (auto& [name, sum] : loop_.sums)
        if (Result<Variable> taken = frame_.Take(name); taken.ok()) sum = *std::move(taken);
      has_turn_ = false;
    }
    last_ = iteration;
    loop_.output.End(iteration);
  }

 private:
  Status Keep(const Block& block, const std::vector<std::string>& names, const VariableTable& frame) {
    HEDDLE_RETURN_IF_ERROR(lane_.runner->Settle());
    SumTerm term{.iteration = loop_.range.NumberOf(at()), .block = block.id};
    for (const std::string& name : names) {
      const Variable* const variable = frame.Find(name);
      if (variable == nullptr || variable->list != nullptr)
        return FailedPrecondition("a term of a sum has no value, or is a list").At(block.position);
      // Terms are of the host's memory: they may travel to other ranks, and wait for long.
      Variable term_value = *variable;
      HEDDLE_RETURN_IF_ERROR(BringToHost(&term_value));
      term.values.emplace(name, std::move(term_value));
    }
    loop_.terms->Add(std::move(term));
    return OkStatus();
  }

  Lane& lane_;
  Loop& loop_;
  VariableTable frame_;
  std::atomic<uint64_t> iteration_{UINT64_MAX};
  uint64_t last_ = UINT64_MAX;
  bool has_turn_ = false;  // and the sums.
};

ParallelIterations::ParallelIterations(const Program& program, const SessionOptions& options,
                                       const SessionEnvironment& environment,
                                       const ops::KernelContext& context, SessionRuntime& shared,
                                       BlockRunner& blocks, const std::atomic<bool>& cancelled)
    : program_(program),
      options_(options),
      environment_(environment),
      context_(context),
      shared_(shared),
      blocks_(blocks),
      cancelled_(cancelled) {}

ParallelIterations::~ParallelIterations() = default;

void ParallelIterations::Finish() {
  for (const auto& lane : lanes_) blocks_.Absorb(*lane->runner);
}

int ParallelIterations::WorkersFor(const Block& loop, uint64_t rounds, const VariableTable& frame) const {
  int64_t workers = std::min<int64_t>(options_.threads, kMostWorkers);
  if (rounds < kMostWorkers) workers = std::min(workers, static_cast<int64_t>(rounds));
  if (loop.most_workers > 0) workers = std::min<int64_t>(workers, loop.most_workers);
  int64_t bytes = 0;
  for (const std::string& name : loop.merged)
    if (const Variable* variable = frame.Find(name)) bytes += BytesToCopy(*variable);
  if (bytes > 0) {
    const MemoryBudget& budget = MemoryBudget::Process();
    workers = std::min(workers, std::max<int64_t>(budget.limit() - budget.used(), 0) / 2 / bytes);
  }
  return static_cast<int>(std::max<int64_t>(workers, 1));
}

bool ParallelIterations::Pays(const Block& loop, const LoopRange& range, const VariableTable& frame) const {
  if (!loop.independent || WorkersFor(loop, range.rounds, frame) < 2) return false;
  const auto measured = iteration_ns_.find(&loop);
  return (measured == iteration_ns_.end() || measured->second >= kShortIterationNs) &&
         IsAsChecked(loop, range, frame);
}

const ParallelIterations::Adding& ParallelIterations::AddingOf(const Block& loop) {
  const auto [found, is_new] = adding_.try_emplace(&loop);
  if (!is_new || loop.sums.empty()) return found->second;
  ForEachBlock(loop.body, [&adding = found->second, &loop](const Block& block) {
    if (block.kind != Block::Kind::kBasic || !compiler::TouchesSums(block.graph, loop.sums)) return;
    std::vector<std::string>& names = adding[&block];
    for (const Node& node : block.graph.nodes) {
      if (!node.Is("variable")) continue;
      const std::string& name = node.Text("name");
      if (std::find(loop.sums.begin(), loop.sums.end(), name) == loop.sums.end()) names.push_back(name);
    }
  });
  return found->second;
}

void ParallelIterations::OpenLanes(int count, Loop* loop) {
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(i) + 1;
    if (lanes_.size() < number) {
      Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>());
      lane.number = number;
      lane.context = context_;
      lane.runner = std::make_unique<BlockRunner>(options_, environment_, lane.context, shared_,
                                                  RandomSeeds(options_.seed), number);
      lane.control =
          std::make_unique<ControlProgram>(program_, options_, *lane.runner, cancelled_, &lane.stop);
    }
    Lane& lane = *lanes_[static_cast<size_t>(i)];
    lane.runner->set_calls(blocks_.calls());
    Worker& worker = *loop->workers.emplace_back(std::make_unique<Worker>(&lane, loop));
    lane.context = context_;
    lane.context.threads = std::max(options_.threads / count, 1);
    lane.context.cancelled = &lane.stop;
    lane.stop.store(false);
    lane.control->Adopt(loop->range.forest);
    lane.context.print = [&worker, loop](std::string_view text) {
      loop->output.Add(worker.iteration().load(std::memory_order_relaxed), text);
    };
    shared_.runtime().OpenLane(number, lane.context.threads, lane.context);
  }
}

int64_t ParallelIterations::IterationNs(const Block& loop) const {
  const auto measured = iteration_ns_.find(&loop);
  return measured == iteration_ns_.end() ? 0 : measured->second;
}

Status ParallelIterations::Run(const Block& block, const LoopRange& range, size_t depth, VariableTable* frame,
                               const OrderedOutput::Print& print, SumTerms* terms) {
  int64_t printed = 0;
  for (int workers = WorkersFor(block, range.rounds, *frame);; workers = 1) {
    if (terms != nullptr) terms->Clear();
    Loop loop(block, range, depth, AddingOf(block), terms, print, printed);
    const Status status = Attempt(&loop, workers, frame);
    if (status.ok() || workers == 1 || !loop.alone_may_differ || cancelled_.load()) {
      open_calls_ = std::move(loop.open_calls);
      return status;
    }
    printed = loop.output.printed();
  }
}

Status ParallelIterations::Attempt(Loop* loop, int count, VariableTable* frame) {
  OpenLanes(count, loop);
  if (blocks_.progress() != nullptr) blocks_.progress()->SetRounds(loop->range.rounds);
  const bool is_alone = count == 1;
  if (is_alone) {
    loop->workers[0]->frame() = std::move(*frame);
  } else {
    for (const std::string& name : loop->block.sums)
      if (const Variable* sum = frame->Find(name)) loop->sums.emplace(name, *sum);
    for (const auto& worker : loop->workers) {
      worker->frame() = *frame;
      for (const std::string& name : loop->block.sums) worker->frame().Erase(name);
    }
  }
  std::vector<std::thread> threads;
  threads.reserve(loop->workers.size());
  try {
    for (size_t i = 1; i < loop->workers.size(); ++i)
      threads.emplace_back([this, loop, i] {
        RunWorker(loop, loop->workers[i].get());
        ShareHeapCount();
      });
  } catch (const std::exception&) {
    // The system gives no further thread. Those that are there take all iterations.
  }
  RunWorker(loop, loop->workers[0].get());
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : loop->workers) worker->lane().control->Adopt(nullptr);

  int64_t busy_ns = 0;
  for (const auto& worker : loop->workers) busy_ns += worker->busy_ns;
  iteration_ns_[&loop->block] = busy_ns / static_cast<int64_t>(loop->range.rounds);
  if (is_alone) *frame = std::move(loop->workers[0]->frame());
  if (!loop->error.ok()) {
    if (is_alone || !loop->alone_may_differ) loop->output.PrintUpTo(loop->failed);
    return loop->error;
  }
  if (is_alone) return OkStatus();
  const Status status = WithinMemory("a parfor", [&] { return Adopt(loop, frame); }).At(loop->block.position);
  loop->alone_may_differ = status.code() == StatusCode::kResourceExhausted;
  return status;
}

void ParallelIterations::RunWorker(Loop* loop, Worker* worker) {
  Lane& lane = worker->lane();
  const bool takes_sums = !loop->adding.empty() && (loop->workers.size() > 1 || loop->terms != nullptr);
  SumTaker* const sums = takes_sums ? worker : nullptr;
  Clock& clock = *context_.clock;
  const int64_t begin_ns = clock.MonotonicNs();
  for (;;) {
    const uint64_t iteration = loop->next.fetch_add(1);
    if (iteration >= loop->range.rounds) break;
    {
      const std::lock_guard<std::mutex> lock(loop->mutex);
      if (iteration > loop->failed) break;
      worker->iteration().store(iteration);  // From now on a failure of an earlier one stops this one.
    }
    const LoopRange& range = loop->range;
    lane.runner->seeds().scopes() = {RandomSeeds::Iteration(range.seed, range.NumberOf(iteration))};
    worker->frame().Set(loop->block.variable, Variable::OfScalar(range.ValueOf(iteration)));
    const bool is_alone = loop->workers.size() == 1 && loop->terms == nullptr;
    const Status status = lane.control->RunBody(loop->block, &worker->frame(), loop->depth, sums, is_alone);
    if (!status.ok()) {
      Fail(loop, iteration, *worker, status);
      break;
    }
    worker->End(iteration);
    if (environment_.progress != nullptr) environment_.progress->EndRound();
  }
  worker->busy_ns = clock.MonotonicNs() - begin_ns;
}

void ParallelIterations::Fail(Loop* loop, uint64_t iteration, const Worker& worker, const Status& status) {
  {
    const std::lock_guard<std::mutex> lock(loop->mutex);
    if (iteration > loop->failed) return;  // Given up, or of no interest.
    loop->failed = iteration;
    loop->error = status;
    loop->open_calls = worker.lane().control->open_calls();
    loop->alone_may_differ =
        status.code() == StatusCode::kResourceExhausted || worker.lane().control->met_downward_loop();
    for (const auto& other : loop->workers) {
      const uint64_t at = other->at();
      if (at == UINT64_MAX || at <= iteration) continue;
      other->lane().stop.store(true);
      shared_.runtime().CancelLane(other->lane().number, Cancelled("an earlier iteration has failed"));
    }
  }
  loop->output.Wake();
}

// Into a copy, so that the variables are those of before the loop when there is no memory for it.
Status ParallelIterations::Adopt(Loop* loop, VariableTable* frame) const {
  // The one that ran the last iteration comes first: it has the loop variable.
  const auto last = std::find_if(loop->workers.begin(), loop->workers.end(), [&](const auto& worker) {
    return worker->last() == loop->range.rounds - 1;
  });
  HEDDLE_CHECK(last != loop->workers.end(), "all iterations ran to their end");
  std::iter_swap(loop->workers.begin(), last);
  VariableTable& final_frame = loop->workers[0]->frame();
  VariableTable merged;
  for (const auto& [name, before] : frame->variables())
    if (final_frame.Find(name) != nullptr) merged.Set(name, before);
  for (auto& [name, sum] : loop->sums) merged.Set(name, std::move(sum));
  if (const Variable* counter = final_frame.Find(loop->block.variable))
    merged.Set(loop->block.variable, *counter);
  for (const std::string& name : loop->block.merged) {
    const Variable* before = frame->Find(name);
    if (before == nullptr || merged.Find(name) == nullptr) continue;
    std::vector<Variable> changed;
    for (const auto& worker : loop->workers) {
      Result<Variable> own = worker->frame().Take(name);  // So that the first one may be written over.
      if (own.ok() && !SharesValue(*own, *before)) changed.push_back(*std::move(own));
    }
    if (changed.empty()) continue;
    Result<Variable> result = Variable();
    ops::Arena(options_.threads).Execute([&] { result = MergeVariable(*before, std::move(changed)); });
    HEDDLE_RETURN_IF_ERROR(result.status());
    // Cells of several are put together in memory. With several ranks it may be panels elsewhere.
    if (options_.ranks == 1) result->is_panels = result->value.IsPanels();
    merged.Set(name, *std::move(result));
  }
  *frame = std::move(merged);
  return OkStatus();
}

}  // namespace heddle::engine
