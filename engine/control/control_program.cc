// SPDX-License-Identifier: Apache-2.0
#include "engine/control/control_program.h"

#include <algorithm>
#include <utility>

#include "compiler/optimize/declared_result.h"
#include "compiler/optimize/loop_range.h"
#include "core/call_site.h"
#include "engine/variables/resolve_call.h"

namespace heddle::engine {
namespace {

// Ranks compare notes after so many decisions, when no plan has to be made meanwhile.
constexpr int64_t kDecisionsBetweenChecks = 1024;

// Rounds of a loop from `from` to `to` by `increment` (not zero).
uint64_t RoundsOf(int64_t from, int64_t to, int64_t increment) {
  if (increment > 0 ? from > to : from < to) return 0;
  const auto distance = increment > 0 ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                      : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
  const auto step =
      increment > 0 ? static_cast<uint64_t>(increment) : uint64_t{0} - static_cast<uint64_t>(increment);
  return distance / step + 1;
}

// Most arguments and results are scalars, which are set at less cost.
template <typename Given>
void Bind(const std::string& name, Given&& given, VariableTable* frame) {
  if (given.info.IsScalar() && !given.is_placeholder) return frame->SetScalar(name, given.value.scalar());
  frame->Set(name, std::forward<Given>(given));
}

}  // namespace

Status ControlProgram::Run(VariableTable variables) {
  if (states_ != nullptr) program_hash_ = ControlState::HashOf(program_);
  frames_.push_back(std::make_unique<VariableTable>(std::move(variables)));
  stack_.push_back({.kind = Kind::kSequence, .blocks = &program_.main});
  return GoOn();
}

Status ControlProgram::GoOn() {
  Status status = RunToEnd();
  if (status.ok() && !program_.kept.empty()) {
    status = blocks_.Settle();
    if (status.ok()) status = blocks_.BringToHost(frames_.front().get());
    if (status.ok() && !blocks_.leaves_panels()) status = blocks_.PutTogether(frames_.front().get());
  }
  return WithCalls(std::move(status));
}

Status ControlProgram::RunBody(const Block& loop, VariableTable* frame, size_t depth, SumTaker* sums,
                               bool is_alone) {
  depth_ = depth;
  sums_ = sums;
  concurrent_loop_ = is_alone ? nullptr : &loop;
  met_downward_loop_ = false;
  frames_.clear();
  frames_.push_back(std::make_unique<VariableTable>(std::move(*frame)));
  stack_.assign(1, {.kind = Kind::kSequence, .blocks = &loop.body});
  Status status = RunToEnd();
  if (status.ok()) status = blocks_.Settle();
  blocks_.ForgetGrown();
  *frame = std::move(*frames_.front());
  return status;
}

inline Status ControlProgram::RunStep() {
  Activation& top = stack_.back();
  return top.next < top.blocks->size() ? Enter((*top.blocks)[top.next++]) : FinishBody();
}

Status ControlProgram::RunToEnd() {
  const OpenFrames* const frames_before = blocks_.set_frames(&frames_);
  if (watch_.is_on()) watch_.Begin();
  Status status = RunSteps();
  if (watch_.is_on()) watch_.End();
  blocks_.set_frames(frames_before);
  return status;
}

Status ControlProgram::RunSteps() {
  while (!stack_.empty()) {
    if (cancelled_.load(std::memory_order_relaxed) ||
        (stopped_ != nullptr && stopped_->load(std::memory_order_relaxed)))
      return Cancelled("the job was cancelled");
    if (states_ != nullptr) HEDDLE_RETURN_IF_ERROR(OfferState());
    if (watch_.is_on()) [[unlikely]]
      HEDDLE_RETURN_IF_ERROR(RunWatchedStep());
    else
      HEDDLE_RETURN_IF_ERROR(RunStep());
  }
  return OkStatus();
}

// What a step enters and leaves shows in the stack.
Status ControlProgram::RunWatchedStep() {
  const Activation& top = stack_.back();
  const Kind kind = top.kind;
  const bool is_end = top.next == top.blocks->size();
  const Block* const block = is_end ? top.owner : &(*top.blocks)[top.next];
  if (block == nullptr) return RunStep();  // The end of the program.
  const size_t depth = stack_.size();
  watch_.BeginStep(*block, is_end);
  const Status status = RunStep();
  watch_.EndStep();
  HEDDLE_RETURN_IF_ERROR(status);
  if (stack_.size() > depth) ShowEntered(stack_.back());
  if (stack_.size() < depth) ShowLeft(kind);
  if (stack_.size() == depth && is_end) watch_.NextRound();
  return OkStatus();
}

void ControlProgram::ShowEntered(const Activation& activation) {
  switch (activation.kind) {
    case Kind::kSequence: return;
    case Kind::kCall: return watch_.EnterCall(*activation.owner, *activation.function);
    case Kind::kWhile: return watch_.EnterLoop(*activation.owner, /*rounds=*/0);
    case Kind::kFor:
    case Kind::kParallelFor:
      return watch_.EnterLoop(*activation.owner, activation.round + 1 + activation.rounds);
  }
}

void ControlProgram::ShowLeft(Kind kind) {
  if (kind == Kind::kCall) return watch_.LeaveCall();
  if (kind != Kind::kSequence) watch_.LeaveLoop();
}

Status ControlProgram::Enter(const Block& block) {
  const bool is_graph = block.kind != Block::Kind::kCall && block.kind != Block::Kind::kList;
  if (!is_graph || block.kind == Block::Kind::kParallelFor) {
    const Status settled = blocks_.Settle();
    if (!settled.ok()) return settled.At(block.position);
    HEDDLE_RETURN_IF_ERROR(blocks_.PutTogether(block, &frame()));
  }
  switch (block.kind) {
    case Block::Kind::kBasic:
      // Sums are variables of the loop's own frame.
      if (sums_ != nullptr && frames_.size() == 1) {
        HEDDLE_ASSIGN_OR_RETURN(const bool has_run, sums_->Run(block, &frame()));
        if (has_run) {
          FreeDead(block);
          return OkStatus();
        }
      }
      TellLoops();
      HEDDLE_RETURN_IF_ERROR(blocks_.Run(block.id, block.graph, &frame()));
      FreeDead(block);
      return OkStatus();
    case Block::Kind::kIf: {
      TellLoops();
      HEDDLE_ASSIGN_OR_RETURN(const bool taken, Decide(block));
      stack_.push_back(
          {.kind = Kind::kSequence, .blocks = taken ? &block.body : &block.otherwise, .owner = &block});
      return OkStatus();
    }
    case Block::Kind::kWhile: {
      size_t next = 0;
      TellLoops(&block);
      HEDDLE_ASSIGN_OR_RETURN(const bool again, DecideLoop(block, &next));
      if (again) {
        stack_.push_back({.kind = Kind::kWhile, .blocks = &block.body, .next = next, .owner = &block});
      } else {
        FreeDead(block);
      }
      return OkStatus();
    }
    case Block::Kind::kFor:
    case Block::Kind::kParallelFor: return EnterFor(block);
    case Block::Kind::kCall: return EnterCall(block);
    case Block::Kind::kList:
      HEDDLE_RETURN_IF_ERROR(lists_.Run(block, &frame()));
      FreeDead(block);
      return OkStatus();
  }
  return OkStatus();
}

Status ControlProgram::FinishBody() {
  Activation& top = stack_.back();
  const Block* owner = top.owner;
  switch (top.kind) {
    case Kind::kSequence: break;
    case Kind::kWhile: {
      TellLoops();
      HEDDLE_ASSIGN_OR_RETURN(const bool again, DecideLoop(*owner, &top.next));
      if (again) {
        ++top.round;
        return OkStatus();
      }
      break;
    }
    case Kind::kFor:
    case Kind::kParallelFor:
      if (top.rounds > 0) {
        --top.rounds;
        ++top.round;
        if (top.kind == Kind::kParallelFor)
          blocks_.seeds().scopes().back() = RandomSeeds::Iteration(top.seed, top.round);
        top.value += top.increment;
        top.next = 0;
        frame().SetScalar(owner->variable, top.value);
        return OkStatus();
      }
      if (top.kind == Kind::kParallelFor) blocks_.seeds().scopes().pop_back();
      recursions_.LeaveLoop(*owner);
      gradients_.LeaveLoop(*owner);
      break;
    case Kind::kCall:
      if (const Status settled = blocks_.Settle(); !settled.ok()) return settled.At(owner->position);
      HEDDLE_RETURN_IF_ERROR(FinishCall(*owner, *top.function));
      break;
  }
  stack_.pop_back();
  if (owner != nullptr) FreeDead(*owner);
  return OkStatus();
}

Result<bool> ControlProgram::Decide(const Block& block) {
  HEDDLE_ASSIGN_OR_RETURN(const Scalar* const decided, blocks_.Decide(block.graph, frame()));
  if (decided != nullptr) return Take(block, *decided);
  HEDDLE_RETURN_IF_ERROR(blocks_.Run(block.id, block.graph, &frame()));
  return TakePredicate(block);
}

Result<bool> ControlProgram::DecideLoop(const Block& loop, size_t* next) {
  *next = 0;
  HEDDLE_ASSIGN_OR_RETURN(const Scalar* const decided, blocks_.Decide(loop.graph, frame()));
  return decided != nullptr ? Take(loop, *decided) : DecideByPlan(loop, next);
}

Result<bool> ControlProgram::DecideByPlan(const Block& loop, size_t* next) {
  const Speculation* speculation = nullptr;
  if (sums_ == nullptr && concurrent_loop_ == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(speculation, blocks_.RunAhead(loop, &frame()));
  }
  if (speculation == nullptr) HEDDLE_RETURN_IF_ERROR(blocks_.Run(loop.id, loop.graph, &frame()));
  HEDDLE_ASSIGN_OR_RETURN(const bool again, TakePredicate(loop));
  if (speculation == nullptr) return again;
  if (!again) {
    blocks_.Discard(*speculation, &frame());
    return false;
  }
  blocks_.Adopt(*speculation, &frame());
  FreeDead(loop.body.front());
  *next = 1;
  return true;
}

Result<bool> ControlProgram::Take(const Block& block, const Scalar& decided) {
  const bool taken = decided.AsBoolean();
  HEDDLE_RETURN_IF_ERROR(Record(block, decided.ToText()));
  return taken;
}

Result<bool> ControlProgram::TakePredicate(const Block& block) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable predicate, frame().Take(Block::kPredicate));
  if (!predicate.info.IsScalar())
    return FailedPrecondition("the condition is a {} {}, not a scalar", predicate.info.shape,
                              Name(predicate.info.data_type))
        .WithNote("use as.scalar(), or an aggregate such as sum()")
        .OnEveryRank()
        .At(block.position);
  return Take(block, predicate.value.scalar());
}

Result<std::optional<int64_t>> ControlProgram::LoopBound(const Block& block, const char* name) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable bound, frame().Take(name));
  if (!bound.info.IsScalar())
    return FailedPrecondition("a bound of the loop is a {} {}, not a scalar", bound.info.shape,
                              Name(bound.info.data_type))
        .WithNote("use as.scalar()")
        .OnEveryRank()
        .At(block.position);
  const Scalar& scalar = bound.value.scalar();
  const Result<std::optional<int64_t>> whole = compiler::LoopBound(scalar);
  if (!whole.ok()) return whole.status().OnEveryRank().At(block.position);
  HEDDLE_RETURN_IF_ERROR(Record(block, scalar.ToText()));
  return *whole;
}

Status ControlProgram::EnterFor(const Block& block) {
  TellLoops();
  HEDDLE_RETURN_IF_ERROR(blocks_.Run(block.id, block.graph, &frame()));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<int64_t> first, LoopBound(block, Block::kFrom));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<int64_t> last, LoopBound(block, Block::kTo));
  const int64_t from = first.value_or(0), to = last.value_or(0);
  std::optional<int64_t> step = from <= to ? 1 : -1;
  if (block.has_increment) {
    HEDDLE_ASSIGN_OR_RETURN(step, LoopBound(block, Block::kIncrement));
  } else if (step == -1 && concurrent_loop_ != nullptr && frames_.size() == 1 &&
             std::find(concurrent_loop_->upward.begin(), concurrent_loop_->upward.end(), block.variable) !=
                 concurrent_loop_->upward.end()) {
    met_downward_loop_ = true;
    return Cancelled("a loop counts down");
  }
  // NaN as a bound, or an increment without a whole part, gets nowhere.
  const int64_t increment = step.value_or(0);
  const uint64_t rounds = first && last && increment != 0 ? RoundsOf(from, to, increment) : 0;
  if (rounds == 0) {
    FreeDead(block);
    return OkStatus();
  }
  const bool is_parallel = block.kind == Block::Kind::kParallelFor;
  const int64_t seed = is_parallel ? blocks_.seeds().EnterLoop() : 0;
  LoopRange range = {.from = from, .increment = increment, .rounds = rounds, .seed = seed};
  const auto value_of = [&](uint64_t round) { return range.ValueOf(round); };
  HEDDLE_ASSIGN_OR_RETURN(const bool is_derivative, gradients_.EnterLoop(block, value_of, rounds, &frame()));
  HEDDLE_ASSIGN_OR_RETURN(const bool is_forest, recursions_.EnterLoop(block, value_of, rounds, &frame()));
  if (is_parallel && !is_derivative && iterations_ != nullptr) {
    bool can_run = true;
    if (is_forest) {
      HEDDLE_ASSIGN_OR_RETURN(can_run, EvaluateForest(block, &range));
    }
    if (can_run) {
      HEDDLE_ASSIGN_OR_RETURN(const bool has_run, RunIterations(block, range));
      if (has_run) {
        recursions_.LeaveLoop(block);
        gradients_.LeaveLoop(block);
        return OkStatus();
      }
    }
  }
  if (is_parallel) blocks_.seeds().scopes().push_back(RandomSeeds::Iteration(seed, 0));
  frame().Set(block.variable, Variable::OfScalar(from));
  stack_.push_back({.kind = is_parallel ? Kind::kParallelFor : Kind::kFor,
                    .blocks = &block.body,
                    .owner = &block,
                    .value = from,
                    .increment = increment,
                    .rounds = rounds - 1,
                    .seed = seed});
  return OkStatus();
}

Result<bool> ControlProgram::RunIterations(const Block& block, const LoopRange& range) {
  if (watch_.is_on()) watch_.EnterLoop(block, range.rounds);
  Result<bool> has_run = iterations_->Run(block, range, frames_.size() - 1, &frame());
  if (watch_.is_on()) watch_.LeaveLoop();
  if (!has_run.ok()) calls_below_ = iterations_->open_calls();
  if (has_run.ok() && *has_run) FreeDead(block);
  return has_run;
}

Status ControlProgram::EnterCall(const Block& block) {
  HEDDLE_ASSIGN_OR_RETURN(const ResolvedCall call, ResolveCall(program_, block, frame()));
  const Function& function = *call.function;
  if (!block.candidates.empty()) HEDDLE_RETURN_IF_ERROR(Record(block, function.name));
  if (static_cast<int>(depth_ + frames_.size()) > options_.max_call_depth)
    return FailedPrecondition("function '{}': calls are nested more than {} deep", function.name,
                              options_.max_call_depth)
        .WithNote("does a recursion never end?")
        .OnEveryRank()
        .At(block.position);
  auto callee = std::make_unique<VariableTable>();
  for (const auto& [parameter, variable] : call.arguments)
    HEDDLE_RETURN_IF_ERROR(BindArgument(block, function, parameter, variable, callee.get()));
  const bool is_recursion = recursions_.Knows(function);
  if ((is_recursion || gradients_.Knows(function)) && !IsInside(function)) {
    if (watch_.is_on()) watch_.EnterCall(block, function);
    const Result<bool> has_run = is_recursion ? recursions_.Run(block, function, callee.get())
                                              : gradients_.Run(block, function, callee.get());
    if (watch_.is_on()) watch_.LeaveCall();
    if (!has_run.ok()) {
      const Status failed = has_run.status().At(block.position);
      // A place in the function: the call is on the way to it.
      if (failed.position().ToString() != block.position.ToString())
        AppendCall(function.name, block.position, &calls_below_);
      return failed;
    }
    if (*has_run) {
      frames_.push_back(std::move(callee));
      HEDDLE_RETURN_IF_ERROR(FinishCall(block, function));
      FreeDead(block);
      return OkStatus();
    }
  }
  frames_.push_back(std::move(callee));
  stack_.push_back({.kind = Kind::kCall, .blocks = &function.body, .owner = &block, .function = &function});
  return OkStatus();
}

// As its parameter declares it.
Status ControlProgram::BindArgument(const Block& block, const Function& function, std::string_view parameter,
                                    const Variable* variable, VariableTable* callee) const {
  if (variable == nullptr)
    return FailedPrecondition("function '{}': argument '{}' has no value here", function.name, parameter)
        .WithNote("it is assigned only in branches or loops that did not run")
        .OnEveryRank()
        .At(block.position);
  DataType data_type = DataType::kUnknown;
  ValueType value_type = ValueType::kUnknown;
  for (const Parameter& declared : function.parameters)
    if (declared.name == parameter) {
      data_type = declared.data_type;
      value_type = declared.value_type;
    }
  const std::string name(parameter);
  if (IsOfType(*variable, data_type, value_type)) {
    Bind(name, *variable, callee);
    return OkStatus();
  }
  Result<Variable> converted = ConvertTo(*variable, data_type, value_type,
                                         fmt::format("function '{}': argument '{}'", function.name, name));
  if (!converted.ok()) return converted.status().OnEveryRank().At(block.position);
  callee->Set(name, *std::move(converted));
  return OkStatus();
}

// What the calls of a parfor find, before its rounds, which may run at once, then. False: only the first
// round can tell what they pass.
Result<bool> ControlProgram::EvaluateForest(const Block& loop, LoopRange* range) {
  const Block* const block = recursions_.CallOf(loop);
  if (block == nullptr) return true;
  const Result<ResolvedCall> call = ResolveCall(program_, *block, frame());
  if (!call.ok() || IsInside(*call->function)) return false;
  VariableTable callee;
  for (const auto& [parameter, variable] : call->arguments)
    if (parameter != recursions_.NodeOf(*call->function) &&
        !BindArgument(*block, *call->function, parameter, variable, &callee).ok())
      return false;
  Result<RecursionForests::Evaluated> forest = recursions_.EvaluateLoop(*call->function, &callee);
  if (!forest.ok()) return forest.status().At(block->position);
  range->forest = *std::move(forest);
  return true;
}

// Whether the innermost call is one of the function: it is interpreted, then.
bool ControlProgram::IsInside(const Function& function) const {
  for (auto activation = stack_.rbegin(); activation != stack_.rend(); ++activation)
    if (activation->kind == Kind::kCall) return activation->function == &function;
  return false;
}

Status ControlProgram::FinishCall(const Block& block, const Function& function) {
  const std::unique_ptr<VariableTable> callee = std::move(frames_.back());
  frames_.pop_back();
  if (block.gives_list) return BindList(block, function, *callee);
  for (size_t i = 0; i < block.results.size(); ++i) {
    if (block.results[i].empty()) continue;
    if (i >= function.results.size()) {
      frame().Erase(block.results[i]);
      continue;
    }
    Variable* result = callee->FindMutable(function.results[i].name);
    if (result == nullptr)
      return FailedPrecondition("function '{}' did not assign its result '{}'", function.name,
                                function.results[i].name)
          .OnEveryRank()
          .At(block.position);
    if (function.results[i].data_type == DataType::kMatrix && result->info.IsScalar())
      return compiler::ScalarForMatrix(function, function.results[i]).OnEveryRank().At(block.position);
    const DataType declared = function.results[i].data_type;
    const bool is_list = result->info.data_type == DataType::kList;
    if (declared != DataType::kUnknown && is_list != (declared == DataType::kList))
      return FailedPrecondition("function '{}': result '{}' is declared as a {}, but its value is a {}",
                                function.name, function.results[i].name, Name(declared),
                                Name(result->info.data_type))
          .OnEveryRank()
          .At(block.position);
    Bind(block.results[i], std::move(*result), &frame());  // Names of results are different ones.
  }
  return OkStatus();
}

// evalList(): all results under their names.
Status ControlProgram::BindList(const Block& block, const Function& function, const VariableTable& callee) {
  if (block.results.empty() || block.results[0].empty()) return OkStatus();
  const auto list = std::make_shared<ListOf<Variable>>();
  for (const Parameter& declared : function.results) {
    const Variable* result = callee.Find(declared.name);
    if (result == nullptr)
      return FailedPrecondition("function '{}' did not assign its result '{}'", function.name, declared.name)
          .OnEveryRank()
          .At(block.position);
    Result<Variable> converted =
        ConvertTo(*result, declared.data_type, declared.value_type,
                  fmt::format("function '{}': result '{}'", function.name, declared.name));
    if (!converted.ok()) return converted.status().OnEveryRank().At(block.position);
    if (Status status = list->Add(declared.name, *std::move(converted)); !status.ok())
      return status.OnEveryRank().At(block.position);
  }
  frame().Set(block.results[0], Variable::OfList(list));
  return OkStatus();
}

Status ControlProgram::Record(const Block& block, std::string_view decision) {
  blocks_.guard().AddDecision(block.id, decision);
  if (++decisions_ % kDecisionsBetweenChecks != 0) return OkStatus();
  return blocks_.plans().Compare(blocks_.guard());
}

void ControlProgram::FreeDead(const Block& block) {
  for (const std::string& name : block.dead_after) frame().Erase(name);
}

}  // namespace heddle::engine
