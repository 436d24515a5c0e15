// SPDX-License-Identifier: Apache-2.0
// The control program written down and read back.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/programs/for_each_block.h"
#include "engine/control/control_program.h"
#include "engine/session/state_taker.h"
#include "engine/variables/source.h"

namespace heddle::engine {
namespace {

using BlocksById = std::unordered_map<int32_t, const Block*>;

BlocksById BlocksOf(const Program& program) {
  BlocksById by_id;
  ForEachBlock(program, [&](const Block& block) { by_id.emplace(block.id, &block); });
  return by_id;
}

// It holds what it says, where this rank has a part of it.
bool HoldsWhatItSays(const Variable& variable, int rank) {
  const bool is_held = variable.IsHeldBy(rank) && variable.source == nullptr;
  switch (variable.info.data_type) {
    case DataType::kScalar: return variable.value.IsScalar();
    case DataType::kMatrix: return !is_held || variable.value.IsMatrix() || variable.value.IsPanels();
    case DataType::kFrame: return !is_held || variable.value.IsFrame() || variable.value.IsPanels();
    case DataType::kList:
      return variable.list != nullptr &&
             std::all_of(variable.list->elements.begin(), variable.list->elements.end(),
                         [rank](const Variable& element) { return HoldsWhatItSays(element, rank); });
    case DataType::kUnknown:
    case DataType::kTuple: return false;
  }
  return false;
}

}  // namespace

ControlState ControlProgram::State() const {
  ControlState state;
  state.program = program_hash_;
  for (const Activation& activation : stack_) {
    ControlState::Activation saved;
    saved.kind = activation.kind;
    if (activation.owner != nullptr) {
      saved.owner = activation.owner->id;
      saved.otherwise = activation.blocks == &activation.owner->otherwise;
    }
    for (const auto& [key, function] : program_.functions)
      if (&function == activation.function) saved.function = key;
    saved.next = activation.next;
    saved.value = activation.value;
    saved.increment = activation.increment;
    saved.rounds = activation.rounds;
    saved.round = activation.round;
    saved.seed = activation.seed;
    state.stack.push_back(std::move(saved));
  }
  for (const std::unique_ptr<VariableTable>& frame : frames_) state.frames.push_back(*frame);
  state.decisions = decisions_;
  state.seeds = blocks_.seeds().scopes();
  state.guard = blocks_.guard();
  return state;
}

Status ControlProgram::OfferState() {
  const Activation& top = stack_.back();
  const bool is_loop = top.kind != Kind::kSequence && top.kind != Kind::kCall;
  const StateTaker::Moment moment = {.block = stack_.size() == 1 ? StateTaker::Moment::kMain : top.owner->id,
                                     .ends_round = is_loop && top.next == top.blocks->size(),
                                     .is_first_round = is_loop && top.round == 0};
  const auto share = [this](const std::function<std::string()>& make) {
    return blocks_.Share(static_cast<uint64_t>(decisions_), make);
  };
  HEDDLE_ASSIGN_OR_RETURN(const bool wants, states_->Wants(moment, share));
  if (!wants) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(blocks_.Settle());
  // What is written, and read again elsewhere, is in the memory of the host; all ranks take a state here.
  for (const std::unique_ptr<VariableTable>& frame : frames_)
    HEDDLE_RETURN_IF_ERROR(blocks_.BringToHost(frame.get()));
  HEDDLE_RETURN_IF_ERROR(blocks_.MakeRoom({.values = states_->working_bytes()}));
  return states_->Take(State());
}

Status ControlProgram::Restore(ControlState state, int ranks_before) {
  const auto foreign = [](std::string_view why) {
    return FailedPrecondition("a state of the control program cannot be resumed here: {}", why);
  };
  program_hash_ = ControlState::HashOf(program_);
  if (state.program != program_hash_) return foreign("it is one of another program");
  const BlocksById by_id = BlocksOf(program_);
  size_t calls = 0, loops = 0;
  for (const ControlState::Activation& saved : state.stack) {
    Activation activation;
    activation.kind = saved.kind;
    activation.blocks = &program_.main;
    if (saved.owner != ControlState::Activation::kMain) {
      const auto owner = by_id.find(saved.owner);
      if (owner == by_id.end()) return foreign("the program has no such block");
      activation.owner = owner->second;
      activation.blocks = saved.otherwise ? &owner->second->otherwise : &owner->second->body;
    }
    if (saved.kind == Kind::kCall) {
      const auto function = program_.functions.find(saved.function);
      if (function == program_.functions.end() || activation.owner == nullptr)
        return foreign("the program has no such function");
      activation.function = &function->second;
      activation.blocks = &function->second.body;
      ++calls;
    }
    loops += saved.kind == Kind::kParallelFor;
    if (saved.next > activation.blocks->size()) return foreign("a list of blocks is too short");
    activation.next = saved.next;
    activation.value = saved.value;
    activation.increment = saved.increment;
    activation.rounds = saved.rounds;
    activation.round = saved.round;
    activation.seed = saved.seed;
    stack_.push_back(activation);
  }
  if (state.seeds.size() != loops + 1) return foreign("loops and their seeds do not match");
  if (state.frames.size() != calls + 1) return foreign("calls and their variables do not match");
  for (VariableTable& frame : state.frames) {
    for (const auto& [name, variable] : frame.variables())
      if (!HoldsWhatItSays(variable, options_.rank)) return foreign("a variable is not what it says");
    frames_.push_back(std::make_unique<VariableTable>(std::move(frame)));
  }
  decisions_ = state.decisions;
  blocks_.seeds().scopes() = std::move(state.seeds);
  blocks_.guard() = std::move(state.guard);
  uint64_t sources = 0;
  for (const auto& frame : frames_) {
    for (auto& [name, variable] : frame->variables()) HEDDLE_RETURN_IF_ERROR(Recompute(&variable, &sources));
    if (ranks_before != options_.ranks) HEDDLE_RETURN_IF_ERROR(ShareOut(frame.get()));
  }
  return EnterLoopsAgain();
}

// The value of a variable that has a source, or of elements that have one.
Status ControlProgram::Recompute(Variable* variable, uint64_t* number) {
  if (variable->list != nullptr)
    for (Variable& element : variable->list->elements) HEDDLE_RETURN_IF_ERROR(Recompute(&element, number));
  if (variable->source == nullptr) return OkStatus();
  const std::shared_ptr<const Source> source = variable->source;
  VariableTable made;
  HEDDLE_RETURN_IF_ERROR(blocks_.RunSource(source, (*number)++, &made));
  HEDDLE_ASSIGN_OR_RETURN(*variable, made.Take(Source::kVariable));
  variable->source = source;
  return OkStatus();
}

// Ranks of before and of now differ, so that some have several parts of a value and some none. Rows of one
// value at a time are in memory twice.
Status ControlProgram::ShareOut(VariableTable* frame) {
  std::map<std::string, Distribution> wanted;
  for (const auto& [name, variable] : frame->variables())
    if (variable.distribution.IsSplit() && variable.distribution.split.axis == Axis::kRows &&
        variable.list == nullptr && !variable.is_panels)
      wanted[name] = Distribution::SplitRows(variable.info.shape.rows, options_.ranks);
  for (const auto& [name, distribution] : wanted)
    HEDDLE_RETURN_IF_ERROR(blocks_.Exchange({{name, distribution}}, frame));
  return OkStatus();
}

// Rounds that are left call roots of the forests that their loops have been from the beginning.
Status ControlProgram::EnterLoopsAgain() {
  size_t frame = 0;
  for (const Activation& activation : stack_) {
    if (watch_.is_on()) ShowEntered(activation);
    if (activation.kind == Kind::kCall) ++frame;
    if (activation.kind != Kind::kFor && activation.kind != Kind::kParallelFor) continue;
    LoopRange range = {.from = activation.value, .increment = activation.increment};
    range.from = range.ValueOf(-activation.round);
    range.rounds = activation.round + 1 + activation.rounds;
    const auto value_of = [&](uint64_t round) { return range.ValueOf(round); };
    const Block& loop = *activation.owner;
    VariableTable* const variables = frames_[frame].get();
    HEDDLE_RETURN_IF_ERROR(gradients_.EnterLoop(loop, value_of, range.rounds, variables).status());
    HEDDLE_RETURN_IF_ERROR(recursions_.EnterLoop(loop, value_of, range.rounds, variables).status());
  }
  return OkStatus();
}

// What went wrong at a place in the script, with the calls that are open.
Status ControlProgram::WithCalls(Status status) const {
  if (status.ok() || !status.position().IsKnown()) return status;
  return InCalls(status, open_calls());
}

// The innermost first.
std::vector<CallSite> ControlProgram::open_calls() const {
  // A call that has just ended, or has not begun, is where it went wrong and not on the way to it.
  size_t open = 0;
  std::vector<CallSite> calls = calls_below_;
  for (const Activation& activation : stack_)
    if (activation.kind == Kind::kCall) ++open;
  for (auto activation = stack_.rbegin(); activation != stack_.rend(); ++activation)
    if (activation->kind == Kind::kCall && open-- < frames_.size())
      AppendCall(activation->function->name, activation->owner->position, &calls);
  return calls;
}

}  // namespace heddle::engine
