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
#include "engine/variables/merge_cells.h"
#include "engine/variables/merge_variable.h"
#include "engine/variables/shared_changes.h"
#include "engine/variables/variable_bytes.h"

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
  local.between_blocks = nullptr;
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

// Changes of frames and lists travel as bytes, those of matrices as cells to where the matrix is.
bool ChangesAsBytes(const Block& loop, const VariableTable& before) {
  return std::any_of(loop.merged.begin(), loop.merged.end(),
                     [&](const std::string& name) { return !before.Find(name)->info.IsMatrix(); });
}

// What the first rank that assigned variable i says of it; nullptr when none has.
const ShareReport::Change* WhoTouched(const std::vector<ShareReport>& reports, size_t i) {
  for (const ShareReport& report : reports)
    if (report.changes[i].is_touched) return &report.changes[i];
  return nullptr;
}

// All rows on rank r alone, as a distribution.
Distribution RowsOfEach(const std::vector<int64_t>& rows) {
  Distribution distribution{.kind = Distribution::Kind::kSplit};
  distribution.split.cuts = {0};
  for (const int64_t count : rows) distribution.split.cuts.push_back(distribution.split.cuts.back() + count);
  return distribution;
}

Result<Variable> TextOfThisRank(std::string_view text, int ranks) {
  static const auto kSchema = std::make_shared<const Schema>(Schema{.types = {ColumnType::kString}});
  Variable variable;
  variable.distribution = RowsOfEach(std::vector<int64_t>(static_cast<size_t>(ranks), 1));
  variable.info = ValueInfo::OfFrame(ranks, kSchema);
  const std::string_view texts[] = {text};
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts(texts));
  variable.value = Value(Frame(kSchema, {std::move(column)}));
  return variable;
}

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
  int64_t bytes = 0;  // A nanosecond each.
  for (const std::string& name : facts.names)
    if (const Variable* variable = frame.Find(name); variable != nullptr)
      ForEachValue(*variable, [&](const Variable& value) {
        if (IsElsewhere(value)) bytes = SaturatingSum(bytes, std::max<int64_t>(KnownBytes(value.info), 0));
      });
  const uint64_t key = FoldHash(FoldHash(3, static_cast<uint64_t>(loop.id)), range.rounds);
  HEDDLE_ASSIGN_OR_RETURN(const std::string answer, blocks_.Share(key, [&] {
    const double saved = static_cast<double>(range.rounds) * static_cast<double>(facts.iteration_ns) *
                         (1.0 - 1.0 / options_.ranks);
    return std::string(saved > static_cast<double>(kExchangeNs) + static_cast<double>(bytes) ? "share"
                                                                                             : "keep");
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

Status SharedIterations::FindChanges(const Block& loop, const VariableTable& before,
                                     const VariableTable& after, ShareReport* own, std::vector<Matrix>* cells,
                                     ShareContents* contents) {
  ListOf<Variable> changes;  // Of each variable; none of matrices.
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    const Variable& old = *before.Find(loop.merged[i]);
    const Variable* const changed = after.Find(loop.merged[i]);
    ShareReport::Change& change = own->changes.emplace_back();
    change.info = changed == nullptr ? old.info : changed->info;
    change.is_touched = changed != nullptr && !SharesValue(old, *changed);
    Variable others = Variable::OfList(std::make_shared<ListOf<Variable>>());
    if (change.is_touched && old.info.IsMatrix()) {
      HEDDLE_ASSIGN_OR_RETURN((*cells)[i], ChangedCells(old.value.matrix(), changed->value.matrix()));
      change.cells = (*cells)[i].rows();
    } else if (change.is_touched) {
      HEDDLE_ASSIGN_OR_RETURN(others, ChangesOf(old, *changed));
    }
    HEDDLE_RETURN_IF_ERROR(changes.Add("", std::move(others)));
  }
  if (ChangesAsBytes(loop, before))
    contents->changes = {
        EncodeVariable(Variable::OfList(std::make_shared<ListOf<Variable>>(std::move(changes))))};
  return OkStatus();
}

Result<std::vector<ShareReport>> SharedIterations::ExchangeReports(const Block& loop,
                                                                   const VariableTable& before,
                                                                   const ShareReport& own,
                                                                   ShareContents* contents) {
  VariableTable texts;
  HEDDLE_ASSIGN_OR_RETURN(Variable report, TextOfThisRank(own.ToText(), options_.ranks));
  texts.Set("%report", std::move(report));
  HEDDLE_ASSIGN_OR_RETURN(Variable lines, TextOfThisRank(EncodeTexts(contents->printed), options_.ranks));
  texts.Set("%printed", std::move(lines));
  std::map<std::string, Distribution> wanted = {{"%report", Distribution::Each()},
                                                {"%printed", Distribution::One()}};
  const bool has_sums = !loop.sums.empty(), has_changes = ChangesAsBytes(loop, before);
  if (has_sums) {
    HEDDLE_ASSIGN_OR_RETURN(Variable own_terms, TextOfThisRank(contents->terms, options_.ranks));
    texts.Set("%terms", std::move(own_terms));
    wanted["%terms"] = Distribution::Each();
  }
  if (has_changes) {
    const std::string_view own_changes =
        contents->changes.empty() ? std::string_view() : contents->changes[0];
    HEDDLE_ASSIGN_OR_RETURN(Variable changes, TextOfThisRank(own_changes, options_.ranks));
    texts.Set("%changes", std::move(changes));
    wanted["%changes"] = Distribution::Each();
  }
  HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &texts));
  *contents = ShareContents();
  if (has_sums) {
    const Column all = texts.Find("%terms")->value.frame().column(0);
    for (int64_t rank = 0; rank < all.rows(); ++rank) contents->terms.append(all.TextAt(rank));
  }
  if (has_changes) {
    const Column all = texts.Find("%changes")->value.frame().column(0);
    for (int64_t rank = 0; rank < all.rows(); ++rank) contents->changes.emplace_back(all.TextAt(rank));
  }
  std::vector<ShareReport> reports;
  const Column column = texts.Find("%report")->value.frame().column(0);
  for (int64_t rank = 0; rank < column.rows(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(reports.emplace_back(), ShareReport::Parse(column.TextAt(rank)));
  }
  if (options_.rank != 0) return reports;
  const Column all = texts.Find("%printed")->value.frame().column(0);
  for (int64_t rank = 0; rank < all.rows(); ++rank)
    HEDDLE_RETURN_IF_ERROR(DecodeTexts(all.TextAt(rank), &contents->printed));
  return reports;
}

Result<bool> SharedIterations::AddTerms(const Block& loop, std::vector<SumTerm> terms, VariableTable* frame) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const SumTerm& a, const SumTerm& b) { return a.iteration < b.iteration; });
  const LoopFacts& facts = FactsOf(loop);
  VariableTable sums;
  for (const std::string& name : loop.sums) sums.Set(name, *frame->Find(name));
  for (SumTerm& term : terms) {
    const auto block = facts.adding.find(term.block);
    if (block == facts.adding.end()) return false;
    for (auto& [name, variable] : term.values) sums.Set(name, std::move(variable));
    const Status added = blocks_.Run(term.block, block->second->graph, &sums);
    if (added.is_on_every_rank()) return false;
    HEDDLE_RETURN_IF_ERROR(added);  // The others may have gone on.
  }
  HEDDLE_RETURN_IF_ERROR(blocks_.Settle());
  for (const std::string& name : loop.sums) frame->Set(name, *sums.Find(name));
  return true;
}

Status SharedIterations::ExchangeCells(const Block& loop, const std::vector<ShareReport>& reports,
                                       const VariableTable& before, std::vector<Matrix> cells,
                                       VariableTable* frame) {
  VariableTable changes;
  std::map<std::string, Distribution> wanted;
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    std::vector<int64_t> rows;
    for (const ShareReport& report : reports) rows.push_back(report.changes[i].cells);
    Variable variable;
    variable.distribution = RowsOfEach(rows);
    if (variable.distribution.split.Length() == 0) continue;
    variable.info = ValueInfo::OfMatrix({variable.distribution.split.Length(), 2});
    if (cells[i].columns() != 2) {
      HEDDLE_ASSIGN_OR_RETURN(cells[i], Matrix::Dense(0, 2));
    }
    variable.value = Value(std::move(cells[i]));
    changes.Set(loop.merged[i], std::move(variable));
    const bool is_one = frame->Find(loop.merged[i])->distribution.IsOne();
    wanted[loop.merged[i]] = is_one ? Distribution::One() : Distribution::Each();
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &changes));
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    const std::string& name = loop.merged[i];
    const ShareReport::Change* const touched = WhoTouched(reports, i);
    if (touched == nullptr || !before.Find(name)->info.IsMatrix()) continue;
    Variable merged = *frame->Find(name);
    merged.info = touched->info;
    if (merged.IsHeldBy(options_.rank)) {
      const Variable* const changed = changes.Find(name);
      Matrix result = merged.value.matrix();
      if (changed != nullptr) {
        const Matrix& whole = before.Find(name)->value.matrix();
        const bool is_split = merged.distribution.IsSplit();
        HEDDLE_ASSIGN_OR_RETURN(
            result, WithCells(whole, is_split ? merged.distribution.split.Begin(options_.rank) : 0,
                              is_split ? merged.distribution.split.End(options_.rank) : whole.rows(),
                              changed->value.matrix()));
      }
      HEDDLE_ASSIGN_OR_RETURN(result,
                              merged.info.format == Format::kDense ? ToDense(result) : ToSparse(result));
      merged.value = Value(std::move(result));
    }
    frame->Set(name, std::move(merged));
  }
  return OkStatus();
}

Status SharedIterations::AdoptChanges(const Block& loop, const std::vector<ShareReport>& reports,
                                      const VariableTable& before, const std::vector<std::string>& changes,
                                      VariableTable* frame) {
  std::vector<Variable> of_ranks;
  for (const std::string& bytes : changes) {
    HEDDLE_ASSIGN_OR_RETURN(of_ranks.emplace_back(), DecodeVariable(bytes));
    if (of_ranks.back().list == nullptr || of_ranks.back().list->size() != loop.merged.size())
      return Internal("what a parfor changed arrived damaged");
  }
  for (size_t i = 0; i < loop.merged.size() && !of_ranks.empty(); ++i) {
    const std::string& name = loop.merged[i];
    const ShareReport::Change* const touched = WhoTouched(reports, i);
    if (touched == nullptr || touched->info.IsMatrix()) continue;
    std::vector<Variable> own;
    for (const Variable& all : of_ranks) own.push_back(all.list->elements[i]);
    Variable merged = *frame->Find(name);
    if (touched->info.IsFrame()) {
      merged.info = touched->info;
      if (merged.IsHeldBy(options_.rank)) {
        HEDDLE_ASSIGN_OR_RETURN(const Variable whole, WithChanges(*before.Find(name), own));
        const Frame& cells = whole.value.frame();
        std::vector<Column> columns;
        for (int64_t j = 0; j < cells.columns(); ++j) columns.push_back(cells.column(j));
        const Frame renamed(merged.info.schema, std::move(columns));
        const Split& split = merged.distribution.split;
        merged.value = Value(merged.distribution.IsSplit()
                                 ? renamed.Rows(split.Begin(options_.rank), split.End(options_.rank))
                                 : renamed);
      }
    } else {
      // Elements that nobody changed stay where they are.
      HEDDLE_ASSIGN_OR_RETURN(merged, WithChanges(merged, own));
    }
    frame->Set(name, std::move(merged));
  }
  return OkStatus();
}

}  // namespace heddle::engine
