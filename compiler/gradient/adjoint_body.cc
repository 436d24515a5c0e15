// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/adjoint_body.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/blocks/block_builder.h"
#include "compiler/gradient/gradient.h"
#include "compiler/optimize/defined.h"

namespace heddle::compiler {
namespace {

void MoveTo(std::vector<Block>* to, std::vector<Block>&& from) {
  std::move(from.begin(), from.end(), std::back_inserter(*to));
}

LiveIn Known(const ValueInfo& type) { return {type, std::nullopt, nullptr}; }

}  // namespace

AdjointBody::AdjointBody(const Program& program, SingleAssignment* code, const Activity& activity,
                         FindPair find_pair, FindRounds find_rounds, int32_t* next_block_id, int* next_name)
    : program_(program),
      code_(*code),
      find_pair_(std::move(find_pair)),
      find_rounds_(std::move(find_rounds)),
      next_block_id_(*next_block_id) {
  state_.activity = &activity;
  state_.types = &code->types;
  state_.next_name = next_name;
  position_ = code->function.position;
}

Result<std::vector<Block>> AdjointBody::Write(const std::set<std::string>& seeds) {
  state_.present = seeds;
  std::vector<Block> backward;
  HEDDLE_RETURN_IF_ERROR(ReverseBlocks(&code_.function.body, &backward));
  return backward;
}

Block AdjointBody::NewBlock(Block::Kind kind) const {
  Block block;
  block.kind = kind;
  block.id = next_block_id_++;
  block.position = position_;
  return block;
}

Status AdjointBody::Refuse(const Block& block, std::string_view what) const {
  return InvalidArgument("gradient(): {}", what).At(block.position);
}

// Goes from the last block to the first, so that backward blocks are written in the order in which they run.
Status AdjointBody::ReverseBlocks(std::vector<Block>* forward, std::vector<Block>* backward) {
  std::vector<std::vector<Block>> pieces;
  for (size_t i = forward->size(); i-- > 0;) {
    InsertedBlocks inserted;
    position_ = (*forward)[i].position;
    HEDDLE_RETURN_IF_ERROR(ReverseBlock(&(*forward)[i], &inserted, backward));
    std::vector<Block> piece = std::move(inserted.before);
    piece.push_back(std::move((*forward)[i]));
    MoveTo(&piece, std::move(inserted.after));
    pieces.push_back(std::move(piece));
  }
  forward->clear();
  for (size_t i = pieces.size(); i-- > 0;) MoveTo(forward, std::move(pieces[i]));
  return OkStatus();
}

Status AdjointBody::ReverseBlock(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward) {
  switch (block->kind) {
    case Block::Kind::kBasic: return ReverseGraph(block, backward);
    case Block::Kind::kIf: return ReverseIf(block, inserted, backward);
    case Block::Kind::kWhile:
    case Block::Kind::kFor:
    case Block::Kind::kParallelFor: return ReverseLoop(block, inserted, backward);
    case Block::Kind::kCall: return ReverseCall(block, inserted, backward);
    case Block::Kind::kList: return ReverseListStep(*block, backward);
  }
  return OkStatus();
}

bool AdjointBody::IsAnyPresent(const std::vector<std::string>& variables) const {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const std::string& name) { return state_.present.contains(name); });
}

Status AdjointBody::ReverseGraph(Block* block, std::vector<Block>* backward) {
  Block made = NewBlock(Block::Kind::kBasic);
  HEDDLE_ASSIGN_OR_RETURN(made.graph, AdjointGraph(block, &state_));
  if (!made.graph.nodes.empty()) backward->push_back(std::move(made));
  return OkStatus();
}

// The predicate becomes a variable, which the backward blocks read to take the same branch.
Status AdjointBody::ReverseIf(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward) {
  const std::set<std::string> before = state_.present;
  std::vector<Block> body, otherwise;
  HEDDLE_RETURN_IF_ERROR(ReverseBlocks(&block->body, &body));
  const std::set<std::string> after_body = std::exchange(state_.present, before);
  HEDDLE_RETURN_IF_ERROR(ReverseBlocks(&block->otherwise, &otherwise));
  const std::set<std::string> after_otherwise = state_.present;
  position_ = block->position;
  state_.present.insert(after_body.begin(), after_body.end());
  for (const std::string& made : AssignedIn({*block})) state_.present.erase(made);
  for (const std::string& variable : state_.present) {
    if (!after_body.contains(variable)) AddZeros(variable, &block->body, &body);
    if (!after_otherwise.contains(variable)) AddZeros(variable, &block->otherwise, &otherwise);
  }
  if (body.empty() && otherwise.empty()) return OkStatus();

  const ValueInfo type = ValueInfo::OfScalar(ValueType::kUnknown);
  const std::string way = state_.NewName(type);
  Block decide = NewBlock(Block::Kind::kBasic);
  decide.graph = std::move(block->graph);
  for (Node& node : decide.graph.nodes)
    if (node.Is("assign")) node.SetAttribute("name", way);
  inserted->before.push_back(std::move(decide));
  block->graph = Graph();
  AddAssign(&block->graph, Block::kPredicate, AddRead(&block->graph, way, type, position_), position_);
  Block made = NewBlock(Block::Kind::kIf);
  made.graph = block->graph;
  made.body = std::move(body);
  made.otherwise = std::move(otherwise);
  backward->push_back(std::move(made));
  return OkStatus();
}

// Variables from outside a loop to whose adjoints its rounds may add.
std::set<std::string> AdjointBody::CandidatesOf(const Block& loop) const {
  std::set<std::string> candidates;
  const std::set<std::string> inside = AssignedIn(loop.body);
  for (const std::string& name : ReadIn(loop.body))
    if (!inside.contains(name)) candidates.insert(name);
  if (const auto heads = code_.heads.find(loop.id); heads != code_.heads.end())
    candidates.insert(heads->second.begin(), heads->second.end());
  std::erase_if(candidates, [&](const std::string& name) { return !state_.activity->IsActive(name); });
  return candidates;
}

Status AdjointBody::ReverseLoop(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward) {
  const auto heads = code_.heads.find(block->id);
  if (heads == code_.heads.end() || !IsAnyPresent(heads->second)) return OkStatus();
  std::map<std::string, std::vector<Block>> zeros;  // of those whose adjoints begin here
  for (const std::string& variable : CandidatesOf(*block))
    if (state_.present.insert(variable).second) AddZeros(variable, &inserted->after, &zeros[variable]);
  const std::set<std::string> around_rounds = state_.present;
  Block made = NewBlock(Block::Kind::kFor);
  Rounds rounds = {.assigned = AssignedIn(block->body)};
  if (!block->variable.empty()) rounds.assigned.insert(block->variable);
  Rounds* const outer = std::exchange(rounds_, &rounds);
  const Status inside_status = ReverseBlocks(&block->body, &made.body);
  rounds_ = outer;
  HEDDLE_RETURN_IF_ERROR(inside_status);
  position_ = block->position;
  std::vector<Block> begin;
  for (const std::string& variable : around_rounds)
    if (!state_.present.contains(variable)) AddZeros(variable, &begin, &made.body);
  block->body.insert(block->body.begin(), std::make_move_iterator(begin.begin()),
                     std::make_move_iterator(begin.end()));
  state_.present = around_rounds;
  // An adjoint that only a deferred call adds to needs no zeros before the loop: the call returns its whole
  // value.
  std::set<std::string> in_rounds = ReadIn(made.body);
  in_rounds.merge(AssignedIn(made.body));
  const auto is_deferred = [&](const std::string& variable) {
    return !in_rounds.contains(AdjointName(variable)) &&
           std::any_of(rounds.added.begin(), rounds.added.end(),
                       [&](const auto& added) { return added.first == variable; });
  };
  for (auto& [variable, blocks] : zeros)
    if (is_deferred(variable))
      state_.present.erase(variable);
    else
      MoveTo(backward, std::move(blocks));
  if (made.body.empty()) return OkStatus();

  const std::set<std::string> inside = AssignedIn(block->body);
  std::vector<std::string> saved;
  for (const std::string& name : ReadIn(made.body))
    if (inside.contains(name)) saved.push_back(name);
  std::string tape;
  if (!saved.empty()) {
    HEDDLE_RETURN_IF_ERROR(MakeDefinite(saved, &block->body));
    tape = state_.NewName(ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown));
    inserted->before.push_back(ListStep(ListOperation::kMake, {}, tape));
    const std::string round = state_.NewName(state_.TypeOf(tape));
    Pack(round, saved, &block->body);
    block->body.push_back(ListStep(ListOperation::kAppend, {{"list", tape}, {"value", round}}, tape));
    const std::string position = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
    std::vector<Block> body = std::move(made.body);
    made.body.clear();
    made.body.push_back(
        ListStep(ListOperation::kAsList, {{"list", tape}, {"from", position}, {"to", position}}, round));
    HEDDLE_RETURN_IF_ERROR(Unpack(round, saved, &made.body));
    MoveTo(&made.body, std::move(body));
    // The position in the tape begins at its length and goes down by one in each round.
    backward->push_back(ListStep(ListOperation::kLength, {{"list", tape}}, position));
    Block count = NewBlock(Block::Kind::kBasic);
    BlockBuilder builder;
    const NodeId one = builder.Literal(Scalar(1), position_);
    const NodeId now = builder.Read(position, Known(ValueInfo::OfScalar(ValueType::kInteger)), position_);
    builder.Assign(position, builder.Add("-", {now, one}, position_), position_);
    count.graph = builder.Finish();
    made.body.push_back(std::move(count));
  }
  CountDown(block, tape, inserted, &made, backward);
  MoveTo(backward, std::move(rounds.before));
  backward->push_back(std::move(made));
  MoveTo(backward, std::move(rounds.after));
  for (const auto& [variable, given] : rounds.added) AddTo(variable, given, backward);
  return OkStatus();
}

// Gives the backward loop its bounds: it counts through the rounds from the last to the first.
void AdjointBody::CountDown(Block* loop, const std::string& tape, InsertedBlocks* inserted, Block* backward,
                            std::vector<Block>* blocks) {
  const ValueInfo number = ValueInfo::OfScalar(ValueType::kUnknown);
  BlockBuilder bounds;
  const auto read = [&](const std::string& name) { return bounds.Read(name, Known(number), position_); };
  const auto literal = [&](int64_t value) { return bounds.Literal(Scalar(value), position_); };
  backward->has_increment = true;
  if (loop->kind == Block::Kind::kWhile) {
    std::string rounds = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
    if (!tape.empty()) {
      blocks->push_back(ListStep(ListOperation::kLength, {{"list", tape}}, rounds));
    } else {
      BlockBuilder zero, more;
      zero.Assign(rounds, zero.Literal(Scalar(0), position_), position_);
      inserted->before.push_back(NewBlock(Block::Kind::kBasic));
      inserted->before.back().graph = zero.Finish();
      const NodeId sum = more.Add(
          "+", {more.Read(rounds, Known(number), position_), more.Literal(Scalar(1), position_)}, position_);
      more.Assign(rounds, sum, position_);
      loop->body.push_back(NewBlock(Block::Kind::kBasic));
      loop->body.back().graph = more.Finish();
    }
    backward->variable = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
    bounds.Assign(Block::kFrom, read(rounds), position_);
    bounds.Assign(Block::kTo, literal(1), position_);
    bounds.Assign(Block::kIncrement, literal(-1), position_);
    backward->graph = bounds.Finish();
    return;
  }
  // The bounds become variables, which both loops read.
  Block decide = NewBlock(Block::Kind::kBasic);
  decide.graph = std::move(loop->graph);
  loop->graph = Graph();
  std::map<std::string, std::string> names;
  for (Node& node : decide.graph.nodes) {
    if (!node.Is("assign")) continue;
    const std::string bound = node.Text("name");
    names[bound] = state_.NewName(number);
    node.SetAttribute("name", names[bound]);
    AddAssign(&loop->graph, bound, AddRead(&loop->graph, names[bound], number, position_), position_);
  }
  inserted->before.push_back(std::move(decide));
  backward->variable = loop->variable;
  const NodeId from = read(names[Block::kFrom]), to = read(names[Block::kTo]);
  if (!loop->has_increment) {
    backward->has_increment = false;
    bounds.Assign(Block::kFrom, to, position_);
    bounds.Assign(Block::kTo, from, position_);
  } else {
    const NodeId step = read(names[Block::kIncrement]);
    const auto add = [&](const char* op, NodeId a, NodeId b) { return bounds.Add(op, {a, b}, position_); };
    const NodeId last = add("+", from, add("*", add("%/%", add("-", to, from), step), step));
    bounds.Assign(Block::kFrom, last, position_);
    bounds.Assign(Block::kTo, from, position_);
    bounds.Assign(Block::kIncrement, add("*", step, literal(-1)), position_);
  }
  backward->graph = bounds.Finish();
}

Status AdjointBody::ReverseCall(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward) {
  if (!IsAnyPresent(block->results)) return OkStatus();
  if (block->function.empty())
    return Refuse(*block, "a call whose function only the run tells cannot be differentiated");
  const auto callee = program_.functions.find(block->function);
  if (callee == program_.functions.end() || block->gives_list)
    return Refuse(*block, "this call cannot be differentiated");
  const Function& function = callee->second;
  std::set<std::string> results, parameters;
  for (size_t i = 0; i < block->results.size() && i < function.results.size(); ++i)
    if (state_.present.contains(block->results[i])) results.insert(function.results[i].name);
  for (const auto& [parameter, variable] : block->arguments)
    if (state_.activity->IsActive(variable)) parameters.insert(parameter);
  if (parameters.empty()) {
    for (const std::string& result : block->results) state_.present.erase(result);
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const AdjointPair pair, find_pair_(*block, results, parameters));

  block->results.resize(function.results.size());
  Block made = NewBlock(Block::Kind::kCall);
  made.function = pair.backward;
  const auto argument_of = [&](const std::string& parameter) {
    const auto found = std::find_if(block->arguments.begin(), block->arguments.end(),
                                    [&](const auto& argument) { return argument.first == parameter; });
    return found->second;
  };
  const auto result_of = [&](const std::string& name) {
    size_t i = 0;
    while (function.results[i].name != name) ++i;
    return block->results[i];
  };
  // The backward call of a recursion takes the adjoints of all results.
  for (size_t i = 0; i < function.results.size(); ++i) {
    const Parameter& result = function.results[i];
    if (std::find(pair.of_results.begin(), pair.of_results.end(), result.name) == pair.of_results.end())
      continue;
    std::string& variable = block->results[i];
    if (variable.empty())
      variable = state_.NewName(ValueInfo::OfDeclared(result.data_type, result.value_type));
    if (!state_.present.contains(variable)) AddZeros(variable, &inserted->after, backward);
  }
  const Block call = *block;
  block->function = pair.forward;
  for (const Parameter& saved : pair.saved) {
    block->results.push_back(state_.NewName(ValueInfo::OfDeclared(saved.data_type, saved.value_type)));
    made.arguments.emplace_back(saved.name, block->results.back());
  }
  for (const std::string& parameter : pair.passed)
    made.arguments.emplace_back(parameter, argument_of(parameter));
  for (const std::string& result : pair.of_results)
    made.arguments.emplace_back(AdjointName(result), AdjointName(result_of(result)));
  for (const std::string& result : block->results) state_.present.erase(result);
  HEDDLE_ASSIGN_OR_RETURN(const bool is_deferred, DeferCall(call, made, pair, backward));
  if (is_deferred) return OkStatus();
  for (const std::string& parameter : pair.of_parameters)
    made.results.push_back(state_.NewName(state_.TypeOf(argument_of(parameter))));
  const std::vector<std::string> given = made.results;
  backward->push_back(std::move(made));
  for (size_t i = 0; i < given.size(); ++i) AddTo(argument_of(pair.of_parameters[i]), given[i], backward);
  return OkStatus();
}

void AdjointBody::AddTo(const std::string& variable, const std::string& given, std::vector<Block>* backward) {
  const ValueInfo type = TypeOnly(state_.TypeOf(variable));
  const std::string adjoint = AdjointName(variable);
  if (state_.present.insert(variable).second) {
    const Block block = NewBlock(Block::Kind::kBasic);
    backward->push_back(CopyBlock(adjoint, given, type, block.id, position_));
  } else if (type.data_type == DataType::kList) {
    backward->push_back(ListStep(ListOperation::kSum, {{"list", adjoint}, {"other", given}}, adjoint));
  } else {
    Block add = NewBlock(Block::Kind::kBasic);
    BlockBuilder builder;
    const NodeId before = builder.Read(adjoint, Known(type), position_);
    builder.Assign(adjoint,
                   builder.Add("+", {before, builder.Read(given, Known(type), position_)}, position_),
                   position_);
    add.graph = builder.Finish();
    backward->push_back(std::move(add));
  }
}

void AdjointBody::AddZeros(const std::string& variable, std::vector<Block>* forward,
                           std::vector<Block>* backward) {
  const ValueInfo& type = state_.TypeOf(variable);
  if (type.data_type == DataType::kList) {
    backward->push_back(ListStep(ListOperation::kZeros, {{"list", variable}}, AdjointName(variable)));
    return;
  }
  BlockBuilder zeros;
  const NodeId zero = zeros.Literal(Scalar(0.0), position_);
  if (type.IsScalar()) {
    zeros.Assign(AdjointName(variable), zero, position_);
  } else {
    const ValueInfo number = ValueInfo::OfScalar(ValueType::kInteger);
    BlockBuilder sizes;
    std::vector<NodeId> inputs = {zero};
    const NodeId value = sizes.Read(variable, Known(type), position_);
    for (const char* op : {"nrow", "ncol"}) {
      const std::string size = state_.NewName(number);
      sizes.Assign(size, sizes.Add(op, {value}, position_), position_);
      inputs.push_back(zeros.Read(size, Known(number), position_));
    }
    forward->push_back(NewBlock(Block::Kind::kBasic));
    forward->back().graph = sizes.Finish();
    zeros.Assign(AdjointName(variable), zeros.Add("matrix", std::move(inputs), position_), position_);
  }
  backward->push_back(NewBlock(Block::Kind::kBasic));
  backward->back().graph = zeros.Finish();
}

Block AdjointBody::ListStep(ListOperation operation,
                            std::vector<std::pair<std::string, std::string>> arguments,
                            std::string result) const {
  Block step = NewBlock(Block::Kind::kList);
  step.operation = operation;
  step.arguments = std::move(arguments);
  step.results = {std::move(result)};
  return step;
}

// append() would unpack a list of one element, so the lists here have two or more.
void AdjointBody::Pack(const std::string& name, const std::vector<std::string>& variables,
                       std::vector<Block>* blocks) {
  std::vector<std::pair<std::string, std::string>> elements;
  for (const std::string& variable : variables) elements.emplace_back("", variable);
  if (elements.size() < 2) {
    const std::string end = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
    BlockBuilder builder;
    builder.Assign(end, builder.Literal(Scalar(0), position_), position_);
    blocks->push_back(NewBlock(Block::Kind::kBasic));
    blocks->back().graph = builder.Finish();
    while (elements.size() < 2) elements.emplace_back("", end);
  }
  blocks->push_back(ListStep(ListOperation::kMake, std::move(elements), name));
}

Status AdjointBody::Unpack(const std::string& name, const std::vector<std::string>& variables,
                           std::vector<Block>* blocks) {
  BlockBuilder builder;
  std::vector<std::string> indexes;
  for (size_t i = 0; i < variables.size(); ++i) {
    indexes.push_back(state_.NewName(ValueInfo::OfScalar(ValueType::kInteger)));
    builder.Assign(indexes.back(), builder.Literal(Scalar(static_cast<int64_t>(i + 1)), position_),
                   position_);
  }
  blocks->push_back(NewBlock(Block::Kind::kBasic));
  blocks->back().graph = builder.Finish();
  for (size_t i = 0; i < variables.size(); ++i) {
    ListOperation operation = ListOperation::kAsMatrix;
    switch (state_.TypeOf(variables[i]).data_type) {
      case DataType::kScalar: operation = ListOperation::kAsScalar; break;
      case DataType::kMatrix: break;
      case DataType::kFrame: operation = ListOperation::kAsFrame; break;
      case DataType::kList: operation = ListOperation::kAsList; break;
      default:
        return InvalidArgument("gradient(): it is not known whether a value that a loop makes is a matrix")
            .WithNote("as.matrix(x) or as.scalar(x) says what it is")
            .At(position_);
    }
    blocks->push_back(
        ListStep(operation, {{"list", name}, {"from", indexes[i]}, {"to", indexes[i]}}, variables[i]));
  }
  return OkStatus();
}

Status AdjointBody::MakeDefinite(const std::vector<std::string>& variables, std::vector<Block>* blocks) {
  for (const std::string& variable : variables) HEDDLE_RETURN_IF_ERROR(MakeDefinite(variable, blocks));
  return OkStatus();
}

// A branch that does not make the value gives it one that is never read.
Status AdjointBody::MakeDefinite(const std::string& variable, std::vector<Block>* blocks) {
  SharedNames defined;
  FollowDefined(*blocks, &defined);
  if (defined.contains(variable)) return OkStatus();
  for (Block& block : *blocks) {
    if (block.kind != Block::Kind::kIf || !AssignedIn({block}).contains(variable)) continue;
    for (std::vector<Block>* branch : {&block.body, &block.otherwise}) {
      if (AssignedIn(*branch).contains(variable)) {
        HEDDLE_RETURN_IF_ERROR(MakeDefinite(variable, branch));
        continue;
      }
      if (state_.TypeOf(variable).data_type == DataType::kList) {
        branch->insert(branch->begin(), ListStep(ListOperation::kMake, {}, variable));
        continue;
      }
      BlockBuilder builder;
      const NodeId zero = builder.Literal(Scalar(0), position_);
      const NodeId value =
          state_.TypeOf(variable).IsScalar() ? zero : builder.Add("as.matrix", {zero}, position_);
      builder.Assign(variable, value, position_);
      Block block_of_value = NewBlock(Block::Kind::kBasic);
      block_of_value.graph = builder.Finish();
      branch->insert(branch->begin(), std::move(block_of_value));
    }
  }
  return OkStatus();
}

}  // namespace heddle::compiler
