// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/static_pass.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/declared_result.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/list_steps.h"
#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/static/any_value.h"
#include "compiler/optimize/static/known_rounds.h"
#include "compiler/optimize/static/known_variables.h"
#include "compiler/optimize/static/static_reports.h"
#include "compiler/optimize/static/written_files.h"
#include "compiler/parse/ast.h"
#include "core/call_site.h"
#include "ops/base/operator.h"
#include "ops/scalar/evaluate_scalar.h"

namespace heddle::compiler {
namespace {

// Loops nested deeper than this take what their bodies assign as unknown at once, instead of trying rounds.
constexpr int kMostTriedLoops = 3;
// In a nest of more loops than this, all of them do: rounds of rounds of rounds take time.
constexpr int kMostLoops = 8;
// Different calls of one function that are followed; further ones count as calls with unknown sizes.
constexpr int kMostCalls = 16;
// Calls below this many blocks and calls inside each other wait their turn, with unknown sizes: the stack is
// finite. More than a single body can nest.
constexpr int kMostDepth = 2 * kMaxNesting;

// What stands for values that an error was reported about, and for those that come from outside.
void AddStandIns(State* state) {
  (*state)["%error"];
  for (const DataType type : kAnyTypes) (*state)[NameOfAnyValue(type)] = AnyValueOf(type);
}

class StaticPass {
 public:
  // Without `diagnostics` nothing is reported; with `values` they are found, and the infos stay as they are.
  StaticPass(Program* program, Diagnostics* diagnostics, LiveInValues* values, ops::Files* files)
      : program_(*program), reports_(diagnostics), values_(values), files_(files) {
    if (files != nullptr) behind_writes_ = ReadsBehindWrites(*program, files);
  }

  void Run() {
    State state;
    AddStandIns(&state);
    for (const GivenVariable& given : program_.given)
      state[given.name] =
          given.info.data_type == DataType::kList ? UnknownList() : LiveIn{given.info, given.value, nullptr};
    Context context;
    Walk(program_.main, state, context);
    while (!waiting_.empty()) {
      const WaitingCall call = waiting_.back();
      waiting_.pop_back();
      Context later;
      later.certain = false;
      reports_.SetCalls(call.stack);
      Call(*call.function, call.arguments, *call.block, later);
    }
  }

 private:
  // How sure it is that what is walked will run.
  struct Context {
    bool certain = true;    // every run of the script comes here
    bool record = true;     // fill in infos and report; not in trial rounds of a loop
    bool may_stop = false;  // stop() or assert() on the way
    bool ended = false;     // a stop() that every run of the script comes to is on the way
    int loops = 0;
  };
  struct CallOutcome {
    std::vector<LiveIn> results;
    bool may_stop = false;
  };
  struct WaitingCall {
    Function* function;
    LiveIns arguments;
    const Block* block;
    std::vector<CallSite> stack;
  };

  void Walk(std::vector<Block>& blocks, State& state, Context& context) {
    ++depth_;
    // Nothing runs behind a stop(), so nothing goes wrong there.
    bool is_muted = false;
    for (Block& block : blocks) {
      if (context.ended && !is_muted) reports_.Mute();
      is_muted |= context.ended;
      WalkBlock(block, state, context);
    }
    if (is_muted) reports_.Unmute();
    --depth_;
  }

  void WalkBlock(Block& block, State& state, Context& context) {
    switch (block.kind) {
      case Block::Kind::kBasic: WalkGraph(block, state, context); return;
      case Block::Kind::kIf: return WalkIf(block, state, context);
      case Block::Kind::kWhile: return WalkLoop(block, state, context);
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor: return WalkLoop(block, state, context);
      case Block::Kind::kCall: return WalkCall(block, state, context);
      case Block::Kind::kList: return WalkList(block, state, context);
    }
  }

  static FindLiveIn FindIn(const State& state) {
    return [&state](std::string_view name) { return state.Find(name); };
  }

  const std::set<NodeId>* BehindWrites(int32_t block) const {
    const auto found = behind_writes_.find(block);
    return found != behind_writes_.end() ? &found->second : nullptr;
  }

  // Infers one graph and moves the state behind it. Returns what its assigns are.
  LiveIns WalkGraph(Block& block, State& state, Context& context) {
    std::vector<std::pair<NodeId, Status>> errors;
    const NodesBefore before(block.graph);
    InferOutcome outcome = InferShapes(std::move(block.graph), FindIn(state), files_, &errors,
                                       ElementType::kFloat64, BehindWrites(block.id));
    block.graph = std::move(outcome.graph);
    NodeId first_stop = block.graph.size();
    for (NodeId id = block.graph.size(); id-- > 0;)
      if (ops::HasRole(block.graph[id], {ops::Role::kStop, ops::Role::kAssert})) first_stop = id;
    const bool ends = context.certain && first_stop < block.graph.size() &&
                      ops::HasRole(block.graph[first_stop], ops::Role::kStop);
    if (context.record) {
      for (const auto& [id, status] : errors) {
        if (ends && id > first_stop) continue;
        // A variable without a value is an error of the run by the definition of the language.
        const bool certain = context.certain && id < first_stop && !block.graph[id].Is("variable");
        reports_.Report(status, certain, ops::HasRole(block.graph[id], ops::Role::kRangeAssign));
      }
      if (ends) reports_.ReportStop(block.graph[first_stop], outcome.values);
      if (!context.may_stop) reports_.CheckRounds(block.graph, outcome.values, rounds_);
      reports_.WarnOfLostNumbers(block, outcome.values);
    }
    context.ended |= ends;
    LiveIns assigned;
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      if (!node.Is("assign")) continue;
      LiveIn known{node.info, std::move(outcome.values[static_cast<size_t>(id)]), nullptr};
      if (block.kind == Block::Kind::kBasic)
        state[node.Text("name")] = std::move(known);
      else
        assigned[node.Text("name")] = std::move(known);
    }
    if (!context.record || values_ != nullptr)
      before.Restore(&block.graph);
    else
      Record(before, &block);
    if (context.record && values_ != nullptr) RecordValues(block, outcome.values);
    if (first_stop < block.graph.size()) {
      context.may_stop = true;
      context.certain = false;
    }
    return assigned;
  }

  // Keeps what is known of a node, or both times when it was known before.
  static void Keep(const NodesBefore::Facts& before, Node* node) {
    node->info = JoinInfos(before.info, node->info);
    std::vector<ValueInfo> results = before.results;
    if (!node->info.IsTuple()) results.clear();
    for (size_t i = 0; i < results.size(); ++i) results[i] = JoinInfos(results[i], node->results[i]);
    node->results = std::move(results);
  }

  // A block that was recorded before keeps what both agree on.
  void Record(const NodesBefore& before, Block* block) {
    const bool is_first = recorded_.insert(block->id).second;
    before.RestoreOperators(&block->graph);
    for (NodeId id = 0; id < block->graph.size() && !is_first; ++id) Keep(before[id], &block->graph[id]);
  }

  void RecordValues(const Block& block, const std::vector<std::optional<Scalar>>& values) {
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      if (!block.graph[id].Is("variable")) continue;
      const std::optional<Scalar>& value = values[static_cast<size_t>(id)];
      const auto [known, is_new] = values_->try_emplace({block.id, id}, value);
      if (!is_new && !IsSameValue(known->second, value)) known->second.reset();
    }
  }

  void WalkIf(Block& block, State& state, Context& context) {
    const LiveIns assigned = WalkGraph(block, state, context);
    auto predicate = assigned.find(Block::kPredicate);
    State otherwise = state;
    if (predicate != assigned.end() && predicate->second.value && !predicate->second.value->IsString()) {
      // Only one way is taken; the other is walked for the sizes in it.
      const bool taken = predicate->second.value->AsBoolean();
      Context never = context;
      never.certain = false;
      never.record = false;
      Walk(taken ? block.body : block.otherwise, state, context);
      Walk(taken ? block.otherwise : block.body, otherwise, never);
      return;
    }
    Context inside = context;
    inside.certain = false;
    KnownRounds rounds = std::exchange(rounds_, {});  // Some of them may go the other way.
    Walk(block.body, state, inside);
    Walk(block.otherwise, otherwise, inside);
    rounds_ = std::move(rounds);
    JoinInto(&state, otherwise);
    NoteStop(inside, context);
  }

  static void NoteStop(const Context& inside, Context& context) {
    if (!inside.may_stop) return;
    context.may_stop = true;
    context.certain = false;
  }

  void WalkLoop(Block& block, State& state, Context& context) {
    const bool is_for = block.kind != Block::Kind::kWhile;
    std::optional<LoopRange> range;
    if (is_for) {
      const LiveIns bounds = WalkGraph(block, state, context);  // once
      CheckBounds(block, bounds, context);
      if (!Assigns(block.body, block.variable)) range = RangeOf(block, bounds);
      if (range && range->is_empty) range.reset();
    }
    Context inside = context;
    inside.certain = false;
    inside.loops =
        context.loops == 0 && LoopDepth(block) > kMostLoops ? kMostTriedLoops + 1 : context.loops + 1;
    const auto one_round = [&](State* head, Context& round) {
      if (is_for) {
        LiveIn& counter = (*head)[block.variable];
        counter.info = ValueInfo::OfScalar(ValueType::kInteger);
        counter.value.reset();
      } else {
        WalkGraph(block, *head, round);
      }
      Walk(block.body, *head, round);
    };
    if (inside.loops > kMostTriedLoops) {
      ForgetAssigned(block.body, &state);
    } else {
      Context trial = inside;
      trial.record = false;
      while (true) {
        State round = state;
        one_round(&round, trial);
        if (!JoinInto(&state, round)) break;
      }
    }
    State last = state;
    KnownRounds rounds = rounds_;
    if (range)
      rounds_.Enter(block.variable, *range);
    else
      rounds_ = KnownRounds();  // it may have no round
    one_round(&last, inside);
    rounds_ = std::move(rounds);
    JoinInto(&state, last);
    NoteStop(inside, context);
  }

  static std::optional<LoopRange> RangeOf(const Block& loop, const LiveIns& bounds) {
    const auto number = [&](const char* name) -> const Scalar* {
      const auto bound = bounds.find(name);
      return bound != bounds.end() && bound->second.value ? &*bound->second.value : nullptr;
    };
    const Scalar* const from = number(Block::kFrom);
    const Scalar* const to = number(Block::kTo);
    const Scalar* const increment = number(Block::kIncrement);
    if (from == nullptr || to == nullptr || (loop.has_increment && increment == nullptr)) return std::nullopt;
    return compiler::RangeOf(*from, *to, increment);
  }

  void CheckBounds(const Block& loop, const LiveIns& bounds, const Context& context) {
    for (const auto& [name, bound] : bounds) {
      if (!bound.value || !context.record) continue;
      const Result<std::optional<int64_t>> whole = LoopBound(*bound.value);
      if (!whole.ok()) return reports_.Report(whole.status().At(loop.position), context.certain);
    }
  }

  static int LoopDepth(const Block& block) {
    int inside = 0;
    for (const std::vector<Block>* blocks : {&block.body, &block.otherwise})
      for (const Block& inner : *blocks) inside = std::max(inside, LoopDepth(inner));
    return inside + (block.kind == Block::Kind::kWhile || !block.variable.empty() ? 1 : 0);
  }

  void WalkList(const Block& block, State& state, const Context& context) {
    Status error;
    std::vector<LiveIn> results = InferListStep(block, FindIn(state), &error);
    if (!error.ok() && context.record) reports_.Report(error.At(block.position), context.certain);
    for (size_t i = 0; i < block.results.size(); ++i)
      if (!block.results[i].empty()) state[block.results[i]] = std::move(results[i]);
  }

  void WalkCall(Block& block, State& state, Context& context) {
    if (block.candidates.empty()) return WalkCallOf(block.function, block.arguments, block, &state, context);
    const State before = state;
    bool is_first = true;
    for (const CallCandidate& candidate : block.candidates) {
      if (candidate.function.empty() || IsExcluded(candidate, block, before)) continue;
      Context inside = context;
      inside.certain = false;
      State after = before;
      // Most functions that eval() may call are not meant, and would not fit.
      if (!block.selector.empty()) reports_.Mute();
      WalkCallOf(candidate.function, candidate.arguments, block, &after, inside);
      if (!block.selector.empty()) reports_.Unmute();
      if (is_first) {
        state = std::move(after);
      } else {
        JoinInto(&state, after);
      }
      is_first = false;
    }
    if (is_first)
      for (const std::string& result : block.results) state[result] = LiveIn();
    context.may_stop = true;  // none may be the one
    context.certain = false;
  }

  void WalkCallOf(const std::string& name, const std::vector<std::pair<std::string, std::string>>& given,
                  const Block& block, State* state, Context& context) {
    auto found = program_.functions.find(name);
    if (found == program_.functions.end()) return;
    Function& function = found->second;
    LiveIns arguments;
    for (const Parameter& parameter : function.parameters) {
      arguments[parameter.name] = FromDeclaration(parameter);
      for (const auto& [argument, variable] : given) {
        if (argument != parameter.name) continue;
        const LiveIn* const known = state->Find(variable);
        if (known != nullptr) arguments[argument] = ToDeclared(parameter, *known);
      }
    }
    const CallOutcome outcome = Call(function, std::move(arguments), block, context);
    if (block.gives_list && !block.results[0].empty()) {
      LiveIn& list = (*state)[block.results[0]] = LiveIn();
      list.info = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
    }
    for (size_t i = 0; i < block.results.size() && !block.gives_list; ++i) {
      if (block.results[i].empty()) continue;
      if (i >= function.results.size()) {
        state->erase(block.results[i]);
        continue;
      }
      LiveIn& result = (*state)[block.results[i]] = outcome.results[i];
      if (function.results[i].data_type != DataType::kMatrix || !result.info.IsScalar()) continue;
      result = LiveIn();
      if (context.record)
        reports_.Report(ScalarForMatrix(function, function.results[i]).At(block.position),
                        context.certain && !outcome.may_stop);
    }
    if (outcome.may_stop) {
      context.may_stop = true;
      context.certain = false;
    }
  }

  CallOutcome Call(Function& function, LiveIns arguments, const Block& call, const Context& context) {
    CallOutcome outcome;
    for (const Parameter& result : function.results) outcome.results.push_back(FromDeclaration(result));
    int& active = active_[&function];
    if (active >= 2) return outcome;  // a recursion that does not come to an end here
    const bool is_too_deep = depth_ >= kMostDepth;
    if (active == 1 || calls_[&function] >= kMostCalls || is_too_deep) {
      for (auto& [name, known] : arguments) KeepTypeOnly(&known);
    }
    std::string key = fmt::format("{}", static_cast<const void*>(&function)) +
                      (context.certain ? " certain" : "") + (context.record ? " record" : "");
    for (const auto& [name, known] : arguments) {
      key += ' ' + name;
      AppendToKey(known, &key);
    }
    if (auto remembered = outcomes_.find(key); remembered != outcomes_.end()) return remembered->second;
    if (is_too_deep) {
      outcome.may_stop = true;  // as far as known now
      if (context.record && waiting_keys_.insert(std::move(key)).second)
        waiting_.push_back({&function, std::move(arguments), &call, reports_.calls()});
      return outcome;
    }

    ++calls_[&function];
    ++active;
    Context inside;
    inside.certain = context.certain;
    inside.record = context.record;
    inside.loops = context.loops;
    State state;
    for (auto& [name, known] : arguments) state[name] = std::move(known);
    AddStandIns(&state);
    reports_.EnterCall({function.name, call.position});
    KnownRounds rounds = std::exchange(rounds_, {});
    Walk(function.body, state, inside);
    rounds_ = std::move(rounds);
    reports_.LeaveCall();
    --active;
    for (size_t i = 0; i < function.results.size(); ++i)
      if (const LiveIn* const known = state.Find(function.results[i].name); known != nullptr)
        outcome.results[i] = *known;
    outcome.may_stop = inside.may_stop;
    outcomes_.emplace(std::move(key), outcome);
    return outcome;
  }

  Program& program_;
  StaticReports reports_;
  LiveInValues* values_;
  ops::Files* files_;
  std::map<int32_t, std::set<NodeId>> behind_writes_;  // reads that see other files than `files_`
  std::set<int32_t> recorded_;
  std::map<std::string, CallOutcome> outcomes_;  // by function and what is known of the arguments
  std::map<const Function*, int> calls_;
  std::map<const Function*, int> active_;
  KnownRounds rounds_;  // of the loops around what is walked
  int depth_ = 0;       // blocks and calls that are walked inside each other
  std::vector<WaitingCall> waiting_;
  std::set<std::string> waiting_keys_;
};

}  // namespace

void PropagateShapes(Program* program, Diagnostics* diagnostics, ops::Files* files) {
  StaticPass(program, diagnostics, nullptr, files).Run();
}

LiveInValues FindLiveInValues(Program* program) {
  LiveInValues values;
  StaticPass(program, nullptr, &values, nullptr).Run();
  return values;
}

}  // namespace heddle::compiler
