// SPDX-License-Identifier: Apache-2.0
#include "engine/control/shared_iterations.h"

#include <algorithm>
#include <utility>

#include "compiler/optimize/parallel_loops.h"
#include "compiler/optimize/split_sums.h"
#include "core/hash.h"
#include "core/memory/counted_heap.h"
#include "core/programs/for_each_block.h"
#include "core/values/sizes.h"
#include "engine/session/state_taker.h"
#include "engine/variables/shared_changes.h"

namespace heddle::engine {
namespace {

// What the exchanges before and after a loop take, about.
constexpr int64_t kExchangeNs = 2'000'000;
// Matrices that are cut by rows are put together up to so many times the size from which they are cut: larger
// ones keep all ranks busy with each operator.
constexpr int64_t kSmallSplits = 32;
// Of a rank's memory, the part that whole copies of the variables may take.
constexpr int64_t kMemoryParts = 4;

SessionOptions LocalOptions(const SessionOptions& options) {
  SessionOptions local = options;
  local.rank = 0;
  local.ranks = 1;
  local.plans.clear();
  return local;
}

SessionEnvironment LocalEnvironment(const SessionEnvironment& environment) {
  SessionEnvironment local = environment;
  local.link = nullptr;
  local.control = nullptr;
  local.observe_plan = nullptr;
  local.states = nullptr;
  return local;
}

ops::KernelContext LocalContext(ops::KernelContext context) {
  context.rank = 0;
  return context;
}

// Adds the variables that blocks read or assign; tells whether one assigns `counter`.
bool AddNames(const std::vector<Block>& blocks, const std::string& counter, std::set<std::string>* names) {
  bool assigns_counter = false;
  ForEachBlock(blocks, [&](const Block& block) {
    for (const Node& node : block.graph.nodes)
      if (node.Is("variable") || node.Is("assign")) names->insert(node.Text("name"));
    ForEachArguments(block, [&](const auto& arguments) {
      for (const auto& [parameter, variable] : arguments) names->insert(variable);
    });
    for (const std::string& name : {block.selector, block.first_argument, block.variable})
      names->insert(name);
    ForEachAssigned(block, [&](const std::string& name) { assigns_counter |= name == counter; });
  });
  return assigns_counter;
}

// Finds the blocks that add to sums; false when one does anything else.
bool FindAdding(const std::vector<Block>& blocks, std::span<const std::string> sums,
                std::map<int32_t, const Block*>* adding) {
  bool only_adds = true;
  ForEachBlock(blocks, [&](const Block& block) {
    if (!compiler::TouchesSums(block.graph, sums)) return;
    adding->emplace(block.id, &block);
    only_adds &= block.kind == Block::Kind::kBasic && compiler::OnlyAdds(block.graph, sums);
  });
  return only_adds;
}

// Whether it has to be brought to every rank.
bool IsElsewhere(const Variable& value) { return value.info.IsTabular() && !value.distribution.IsEach(); }

}  // namespace

// A session of one rank within one of several: what runs on this rank while the others run something else.
struct SharedIterations::SessionOfThisRank {
  SessionOfThisRank(const Program& program, const SessionOptions& of_all,
                    const SessionEnvironment& of_session, const ops::KernelContext& of_kernels)
      : options(LocalOptions(of_all)),
        environment(LocalEnvironment(of_session)),
        context(LocalContext(of_kernels)),
        runtime(program, options, environment, context),
        blocks(options, environment, context, runtime, RandomSeeds(of_all.seed)) {}

  const SessionOptions options;
  const SessionEnvironment environment;
  ops::KernelContext context;
  SessionRuntime runtime;
  BlockRunner blocks;
};

SharedIterations::SharedIterations(const Program& program, const SessionOptions& options,
                                   const SessionEnvironment& environment, const ops::KernelContext& context,
                                   SessionRuntime& runtime, BlockRunner& blocks,
                                   const std::atomic<bool>& cancelled)
    : program_(program),
      options_(options),
      environment_(environment),
      blocks_(blocks),
      cancelled_(cancelled) {
  if (options.ranks == 1) {
    local_ = std::make_unique<ParallelIterations>(program, options, environment, context, runtime, blocks,
                                                  cancelled);
    return;
  }
  own_ = std::make_unique<SessionOfThisRank>(program, options, environment, context);
  local_ = std::make_unique<ParallelIterations>(program, own_->options, own_->environment, own_->context,
                                                own_->runtime, own_->blocks, cancelled);
}

SharedIterations::~SharedIterations() = default;

void SharedIterations::Finish() {
  local_->Finish();
  if (own_ != nullptr) blocks_.Absorb(own_->blocks);
}

void SharedIterations::Cancel(const Status& why) {
  if (own_ != nullptr) own_->runtime.Cancel(why);
}

SharedIterations::LoopFacts& SharedIterations::FactsOf(const Block& loop) {
  const auto [found, is_new] = facts_.try_emplace(&loop);
  LoopFacts& facts = found->second;
  if (!is_new) return facts;
  const bool assigns_counter = AddNames(loop.body, loop.variable, &facts.names);
  facts.names.insert(loop.merged.begin(), loop.merged.end());
  for (const std::string& sum : loop.sums) facts.names.erase(sum);
  const bool only_adds = FindAdding(loop.body, loop.sums, &facts.adding);
  facts.can_be_shared =
      loop.independent && only_adds && !assigns_counter && !compiler::MayRun(loop.body, program_, "read");
  return facts;
}

bool SharedIterations::CanBeShared(const LoopFacts& facts, const Block& loop, const LoopRange& range,
                                   const VariableTable& frame, const SessionOptions& options) {
  if (!facts.can_be_shared || range.rounds < 2 || !IsAsChecked(loop, range, frame)) return false;
  int64_t bytes = 0, split_bytes = 0;
  for (const std::string& name : facts.names) {
    const Variable* const variable = frame.Find(name);
    if (variable == nullptr) continue;
    ForEachValue(*variable, [&](const Variable& value) {
      if (!value.info.IsTabular()) return;
      const int64_t own_bytes = KnownBytes(value.info);
      bytes = SaturatingSum(bytes, own_bytes);
      if (value.distribution.IsSplit()) split_bytes = SaturatingSum(split_bytes, own_bytes);
    });
  }
  if (options.memory_bytes > 0 && bytes > options.memory_bytes / kMemoryParts) return false;
  if (split_bytes > SaturatingProduct(options.min_distributed_bytes, kSmallSplits)) return false;
  const auto is_there = [&](const std::string& name) { return frame.Find(name) != nullptr; };
  return std::all_of(loop.sums.begin(), loop.sums.end(), is_there) &&
         std::all_of(loop.merged.begin(), loop.merged.end(), [&](const std::string& name) {
           return is_there(name) && !frame.Find(name)->info.IsScalar();
         });
}

// Rank 0 decides for all, by what iterations took the last time. The bytes do not depend on it.
Result<bool> SharedIterations::Pays(const Block& loop, const LoopFacts& facts, const LoopRange& range,
                                    const VariableTable& frame) {
  if (!facts.has_run) return true;
  int64_t bytes = 0;
  for (const std::string& name : facts.names)
    if (const Variable* variable = frame.Find(name); variable != nullptr)
      ForEachValue(*variable, [&](const Variable& value) {
        if (IsElsewhere(value)) bytes = SaturatingSum(bytes, std::max<int64_t>(KnownBytes(value.info), 0));
      });
  const uint64_t key = FoldHash(FoldHash(3, static_cast<uint64_t>(loop.id)), range.rounds);
  HEDDLE_ASSIGN_OR_RETURN(const std::string answer, blocks_.Share(key, [&] {
    const double saved = static_cast<double>(range.rounds) * static_cast<double>(facts.iteration_ns) *
                         (1.0 - 1.0 / options_.ranks);
    const double sent_ns =
        static_cast<double>(bytes) / ops::OrBuiltIn(options_.constants, options_.threads).links.bytes_per_ns;
    return std::string(saved > static_cast<double>(kExchangeNs) + sent_ns ? "share" : "keep");
  }));
  return answer == "share";
}

Status SharedIterations::Replicate(const LoopFacts& facts, const VariableTable& frame, VariableTable* local) {
  // The values of variables and of elements of lists, by numbers.
  VariableTable copies;
  std::map<std::string, Distribution> wanted;
  const auto add = [&](const Variable& value) {
    if (!IsElsewhere(value)) return;
    const std::string copy = fmt::format("%copy.{}", wanted.size());
    copies.Set(copy, value);
    wanted[copy] = Distribution::Each();
  };
  for (const std::string& name : facts.names)
    if (const Variable* variable = frame.Find(name)) ForEachValue(*variable, add);
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &copies));
  size_t taken = 0;
  const auto whole = [&](const Variable& value) {
    return IsElsewhere(value) ? *copies.Find(fmt::format("%copy.{}", taken++)) : value;
  };
  for (const std::string& name : facts.names)
    if (const Variable* variable = frame.Find(name)) local->Set(name, WithValues(*variable, whole));
  return OkStatus();
}

LoopRange SharedIterations::ShareOf(const LoopRange& range) const {
  const auto rank = static_cast<uint64_t>(options_.rank), ranks = static_cast<uint64_t>(options_.ranks);
  LoopRange share = range;
  share.from = range.ValueOf(rank);
  share.increment = static_cast<int64_t>(static_cast<uint64_t>(range.increment) * ranks);
  share.rounds = range.rounds > rank ? (range.rounds - rank - 1) / ranks + 1 : 0;
  share.first = rank;
  share.step = ranks;
  return share;
}

Result<bool> SharedIterations::Run(const Block& loop, const LoopRange& range, size_t depth,
                                   VariableTable* frame) {
  // Iterations run on threads that do not wait for a checkpoint where memory is short.
  if (loop.independent && environment_.states != nullptr) environment_.states->WaitForWrite();
  return options_.ranks == 1 ? RunHere(loop, range, depth, frame) : RunOnRanks(loop, range, depth, frame);
}

// This rank's share is all of them, of the variables as they are.
Result<bool> SharedIterations::RunHere(const Block& loop, const LoopRange& range, size_t depth,
                                       VariableTable* frame) {
  if (!local_->Pays(loop, range, *frame)) return false;
  const auto print = [this](uint64_t, std::string_view text) { environment_.print(text); };
  HEDDLE_RETURN_IF_ERROR(local_->Run(loop, range, depth, frame, print));
  return true;
}

Result<bool> SharedIterations::RunOnRanks(const Block& loop, const LoopRange& range, size_t depth,
                                          VariableTable* frame) {
  own_->blocks.set_calls(blocks_.calls());
  LoopFacts& facts = FactsOf(loop);
  if (!CanBeShared(facts, loop, range, *frame, options_)) return false;
  HEDDLE_ASSIGN_OR_RETURN(const bool pays, Pays(loop, facts, range, *frame));
  if (!pays) return false;
  VariableTable before;
  HEDDLE_RETURN_IF_ERROR(Replicate(facts, *frame, &before).At(loop.position));

  const LoopRange share = ShareOf(range);
  ShareContents contents;
  VariableTable after = before;
  Status status;
  SumTerms terms;
  const auto print = [&](uint64_t round, std::string_view line) {
    contents.printed.push_back({share.NumberOf(round), std::string(line)});
  };
  if (share.rounds > 0) status = local_->Run(loop, share, depth, &after, print, &terms);
  if (cancelled_.load()) return Cancelled("the job was cancelled");

  ShareReport own;
  std::vector<Matrix> cells(loop.merged.size());
  own.iteration_ns = local_->IterationNs(loop);
  if (status.ok())
    status = WithinMemory("changes of a parfor",
                          [&] { return FindChanges(loop, before, after, &own, &cells, &contents); });
  after = VariableTable();
  if (status.ok())
    status = WithinMemory("terms of a sum", [&] {
      contents.terms = EncodeTerms(terms.terms());
      return OkStatus();
    });
  terms.Clear();
  size_t bytes = contents.terms.size();
  for (const std::string& changes : contents.changes) bytes += changes.size();
  own.has_failed = !status.ok() || (options_.memory_bytes > 0 &&
                                    static_cast<int64_t>(bytes) > options_.memory_bytes / kMemoryParts);
  if (own.has_failed) {
    own.changes.clear();
    contents = ShareContents();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ShareReport> reports,
                          ExchangeReports(loop, before, own, &contents));
  facts.has_run = true;
  facts.iteration_ns = reports[0].iteration_ns;
  if (std::any_of(reports.begin(), reports.end(),
                  [](const ShareReport& report) { return report.has_failed; }))
    return false;
  if (!loop.sums.empty()) {
    std::vector<SumTerm> all;
    HEDDLE_RETURN_IF_ERROR(DecodeTerms(contents.terms, &all));
    HEDDLE_ASSIGN_OR_RETURN(const bool are_added, AddTerms(loop, std::move(all), frame));
    if (!are_added) return false;
  }

  HEDDLE_RETURN_IF_ERROR(ExchangeCells(loop, reports, before, std::move(cells), frame).At(loop.position));
  HEDDLE_RETURN_IF_ERROR(AdoptChanges(loop, reports, before, contents.changes, frame).At(loop.position));
  std::stable_sort(contents.printed.begin(), contents.printed.end(),
                   [](const PrintedText& a, const PrintedText& b) { return a.iteration < b.iteration; });
  if (options_.rank == 0)
    for (const PrintedText& line : contents.printed) environment_.print(line.text);
  frame->Set(loop.variable, Variable::OfScalar(range.ValueOf(range.rounds - 1)));
  return true;
}

}  // namespace heddle::engine
