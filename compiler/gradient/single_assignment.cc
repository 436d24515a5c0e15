// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/single_assignment.h"

#include <optional>
#include <utility>

#include "compiler/blocks/block_builder.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/list_steps.h"
#include "compiler/optimize/liveness.h"

namespace heddle::compiler {
namespace {

void AddAssigned(const Block& block, std::set<std::string>* names) {
  if (block.kind == Block::Kind::kBasic)
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign")) names->insert(node.Text("name"));
  for (const std::string& result : block.results)
    if (!result.empty()) names->insert(result);
  if (!block.variable.empty()) names->insert(block.variable);
  for (const std::vector<Block>* blocks : {&block.body, &block.otherwise})
    for (const Block& inner : *blocks) AddAssigned(inner, names);
}

SharedNames LiveBefore(std::vector<Block> blocks, SharedNames live) {
  VisitLiveness(&blocks, &live, /*mark=*/true);
  return live;
}

std::set<std::string> NamesOf(const SharedNames& names) {
  const std::vector<std::string> all = names.Beside(SharedNames());
  return {all.begin(), all.end()};
}

using Versions = std::map<std::string, std::string, std::less<>>;

class Converter {
 public:
  Converter(const Program& program, int32_t* next_block_id)
      : program_(program), next_block_id_(*next_block_id) {}

  Result<SingleAssignment> Convert(const Function& function) {
    made_.function = function;
    Versions versions;
    for (const Parameter& parameter : function.parameters) {
      versions[parameter.name] = parameter.name;
      made_.types[parameter.name] = ValueInfo::OfDeclared(parameter.data_type, parameter.value_type);
      used_.insert(parameter.name);
    }
    SharedNames live;
    for (const Parameter& result : function.results) live.insert(result.name);
    HEDDLE_RETURN_IF_ERROR(Convert(&made_.function.body, live, &versions));
    for (Parameter& result : made_.function.results) result.name = Current(versions, result.name);
    return std::move(made_);
  }

 private:
  // `live`: what is read behind the blocks.
  Status Convert(std::vector<Block>* blocks, SharedNames live, Versions* versions) {
    std::vector<SharedNames> after(blocks->size());
    for (size_t i = blocks->size(); i-- > 0;) {
      after[i] = live;
      live = LiveBefore({(*blocks)[i]}, std::move(live));
    }
    std::vector<Block> converted;
    for (size_t i = 0; i < blocks->size(); ++i)
      HEDDLE_RETURN_IF_ERROR(ConvertBlock(std::move((*blocks)[i]), after[i], versions, &converted));
    *blocks = std::move(converted);
    return OkStatus();
  }

  Status ConvertBlock(Block block, const SharedNames& live, Versions* versions, std::vector<Block>* out) {
    block.id = next_block_id_++;
    switch (block.kind) {
      case Block::Kind::kBasic:
        ReadCurrent(&block.graph, *versions);
        InferKnownTypes(&block.graph);
        for (Node& node : block.graph.nodes)
          if (node.Is("assign"))
            node.SetAttribute("name", Assign(node.Text("name"), TypeOfValue(block.graph, node), versions));
        break;
      case Block::Kind::kCall:
        if (!block.selector.empty())
          return InvalidArgument("gradient(): which function eval() calls, only the run tells")
              .WithNote("write the name of the function, or call it")
              .At(block.position);
        ConvertStep(&block, versions);
        break;
      case Block::Kind::kList: ConvertStep(&block, versions); break;
      case Block::Kind::kIf: {
        ReadCurrent(&block.graph, *versions);
        Versions otherwise = *versions;
        HEDDLE_RETURN_IF_ERROR(Convert(&block.body, live, versions));
        HEDDLE_RETURN_IF_ERROR(Convert(&block.otherwise, live, &otherwise));
        Join(live, otherwise, &block, versions);
        break;
      }
      case Block::Kind::kWhile:
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor: return ConvertLoop(std::move(block), live, versions, out);
    }
    out->push_back(std::move(block));
    return OkStatus();
  }

  void ConvertStep(Block* block, Versions* versions) {
    ForEachArguments(*block, [&](auto& arguments) {
      for (auto& [parameter, variable] : arguments) variable = Current(*versions, variable);
    });
    for (std::string* name : {&block->selector, &block->first_argument}) *name = Current(*versions, *name);
    for (size_t i = 0; i < block->results.size(); ++i)
      if (!block->results[i].empty())
        block->results[i] = Assign(block->results[i], ResultType(*block, i), versions);
  }

  // Behind the branches there is one name again for what they have left under several.
  void Join(const SharedNames& live, const Versions& otherwise, Block* block, Versions* versions) {
    const Versions body = *versions;
    versions->insert(otherwise.begin(), otherwise.end());
    for (auto& [name, version] : *versions) {
      const auto mine = body.find(name), theirs = otherwise.find(name);
      const bool in_both = mine != body.end() && theirs != otherwise.end();
      if (!live.contains(name) || (in_both && mine->second == theirs->second)) continue;
      version = NewVersion(name);
      std::optional<ValueInfo> type;
      const auto copy = [&](const std::string& last, std::vector<Block>* blocks) {
        blocks->push_back(Copy(version, last, block->position));
        type = type ? JoinInfos(*type, made_.types[last]) : made_.types[last];
      };
      if (mine != body.end()) copy(mine->second, &block->body);
      if (theirs != otherwise.end()) copy(theirs->second, &block->otherwise);
      made_.types[version] = *type;
    }
  }

  Status ConvertLoop(Block loop, const SharedNames& live, Versions* versions, std::vector<Block>* out) {
    if (loop.kind == Block::Kind::kParallelFor) MakeFor(&loop);
    const bool is_while = loop.kind == Block::Kind::kWhile;
    if (!is_while) ReadCurrent(&loop.graph, *versions);
    std::set<std::string> assigned = AssignedIn(loop.body);
    const std::string counter = loop.variable;
    assigned.erase(counter);  // Each round begins with its own.
    SharedNames at_end = live;
    at_end.AddAllOf(LiveBefore({loop}, live));
    SharedNames first = LiveBefore(loop.body, SharedNames());  // read before a round assigns them
    SharedNames decided;                                       // read by the predicate
    if (is_while)
      for (const Node& node : loop.graph.nodes)
        if (node.Is("variable")) decided.insert(node.Text("name"));
    Versions inside = *versions;
    std::vector<Block> begin;
    std::map<std::string, std::string> heads;  // by the name of the script
    for (const std::string& name : assigned) {
      const bool is_read = first.contains(name) || decided.contains(name);
      if (!live.contains(name) && !is_read) continue;
      const auto before = versions->find(name);
      const std::string head = NewVersion(name);
      heads[name] = head;
      made_.heads[loop.id].push_back(head);
      if (before != versions->end()) {
        made_.types[head] = OfAllRounds(made_.types[before->second]);
        out->push_back(Copy(head, before->second, loop.position));
      } else if (std::optional<ValueInfo> type = TypeAssigned(loop.body, name)) {
        made_.types[head] = OfAllRounds(*type);  // A round may read what another has assigned.
        out->push_back(NoValue(head, *type, loop.position));
      }
      inside[name] = head;
    }
    if (is_while) ReadCurrent(&loop.graph, inside);
    for (const auto& [name, head] : heads) {
      if (!first.contains(name)) continue;
      const std::string in_round = NewVersion(name);
      made_.types[in_round] = made_.types[head];
      begin.push_back(Copy(in_round, head, loop.position));
      inside[name] = in_round;
    }
    if (!is_while) loop.variable = Assign(counter, ValueInfo::OfScalar(ValueType::kInteger), &inside);
    HEDDLE_RETURN_IF_ERROR(Convert(&loop.body, at_end, &inside));
    loop.body.insert(loop.body.begin(), std::make_move_iterator(begin.begin()),
                     std::make_move_iterator(begin.end()));
    if (!is_while) (*versions)[counter] = inside.at(counter);
    for (const auto& [name, head] : heads) {
      const std::string& last = inside.at(name);
      const bool is_new = !made_.types.contains(head);
      made_.types[head] = is_new ? made_.types[last] : JoinInfos(made_.types[head], made_.types[last]);
      loop.body.push_back(Copy(head, last, loop.position));
    }
    const SourcePosition position = loop.position;
    out->push_back(std::move(loop));
    for (const auto& [name, head] : heads) {
      const std::string behind = NewVersion(name);
      made_.types[behind] = made_.types[head];
      if (live.contains(name)) out->push_back(Copy(behind, head, position));
      (*versions)[name] = behind;
    }
    return OkStatus();
  }

  // Copies of a variable that no round has assigned yet are of this: whoever reads it gets no number.
  Block NoValue(const std::string& name, const ValueInfo& type, const SourcePosition& position) {
    Block block;
    block.id = next_block_id_++;
    block.position = position;
    if (type.data_type == DataType::kList) {
      block.kind = Block::Kind::kList;
      block.results = {name};
      return block;
    }
    BlockBuilder builder;
    const NodeId zero = builder.Literal(Scalar(0.0), position);
    NodeId value = builder.Add("/", {zero, zero}, position);
    if (!type.IsScalar()) value = builder.Add("as.matrix", {value}, position);
    builder.Assign(name, value, position);
    block.graph = builder.Finish();
    return block;
  }

  // Of what a node assigns. A copy, as bodies that took the place of calls leave their results, is of the
  // type of its original.
  ValueInfo TypeOfValue(const Graph& graph, const Node& assign) const {
    const Node& value = graph[assign.inputs[0]];
    if (assign.info.data_type != DataType::kUnknown || !value.Is("variable")) return assign.info;
    const auto original = made_.types.find(value.Text("name"));
    return original == made_.types.end() ? assign.info : original->second;
  }

  // The type of what blocks assign to a variable, as far as it is known.
  std::optional<ValueInfo> TypeAssigned(const std::vector<Block>& blocks, const std::string& name) const {
    std::optional<ValueInfo> type;
    const auto join = [&](const ValueInfo& info) { type = type ? JoinInfos(*type, info) : info; };
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::kBasic)
        for (const Node& node : block.graph.nodes)
          if (node.Is("assign") && node.Text("name") == name) join(TypeOnly(node.info));
      for (size_t i = 0; i < block.results.size(); ++i)
        if (block.results[i] == name) join(ResultType(block, i));
      if (block.variable == name) join(ValueInfo::OfScalar(ValueType::kInteger));
      for (const std::vector<Block>* inside : {&block.body, &block.otherwise})
        if (const std::optional<ValueInfo> inner = TypeAssigned(*inside, name)) join(*inner);
    }
    return type;
  }

  // x = 0 before a loop is an integer, which its rounds may make a double.
  static ValueInfo OfAllRounds(ValueInfo type) {
    if (type.IsScalar()) type.value_type = ValueType::kUnknown;
    return type;
  }

  static void MakeFor(Block* loop) {
    loop->kind = Block::Kind::kFor;
    loop->independent = false;
    loop->in_order.clear();
    loop->most_workers = 0;
    for (std::vector<std::string>* names :
         {&loop->merged, &loop->sums, &loop->natural, &loop->upward, &loop->locals})
      names->clear();
  }

  Block Copy(const std::string& to, const std::string& from, const SourcePosition& position) {
    return CopyBlock(to, from, made_.types[from], next_block_id_++, position);
  }

  static void ReadCurrent(Graph* graph, const Versions& versions) {
    for (Node& node : graph->nodes)
      if (node.Is("variable")) node.SetAttribute("name", Current(versions, node.Text("name")));
  }

  // What list steps make of elements has no type in the text. Adjoints follow types, so those that are known
  // here are told to the operators that read such values.
  void InferKnownTypes(Graph* graph) const {
    LiveIns known;
    bool any_is_new = false;
    for (const Node& node : graph->nodes) {
      if (!node.Is("variable")) continue;
      const auto type = made_.types.find(node.Text("name"));
      const bool is_known = type != made_.types.end() && type->second.data_type != DataType::kUnknown;
      any_is_new |= is_known && node.info.data_type == DataType::kUnknown;
      known[node.Text("name")] = {is_known ? type->second : node.info, std::nullopt, nullptr};
    }
    if (!any_is_new) return;
    InferOutcome outcome = InferShapes(*graph, known, nullptr);
    if (outcome.error.ok()) *graph = std::move(outcome.graph);
  }

  static std::string Current(const Versions& versions, const std::string& name) {
    const auto found = versions.find(name);
    return found == versions.end() ? name : found->second;
  }

  std::string Assign(const std::string& name, const ValueInfo& info, Versions* versions) {
    const std::string version = NewVersion(name);
    made_.types[version] = TypeOnly(info);
    (*versions)[name] = version;
    return version;
  }

  // Names of bodies that took the place of calls are those of other calls to the passes that come.
  std::string NewVersion(const std::string& name) {
    const std::string first = name.starts_with("%in") ? "%of" + name.substr(3) : name;
    std::string version = first;
    while (!used_.insert(version).second) version = fmt::format("{}@{}", first, ++counts_[first]);
    return version;
  }

  ValueInfo ResultType(const Block& block, size_t i) const {
    if (block.kind == Block::Kind::kList) {
      if (block.operation == ListOperation::kCopy)
        return ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
      // Of frames, of which no cell varies, they make frames, to whose type nobody looks here.
      if (block.operation == ListOperation::kCbind || block.operation == ListOperation::kRbind)
        return ValueInfo::OfMatrix(Shape());
      Status ignored;
      std::vector<LiveIn> results = InferListStep(
          block, [](std::string_view) { return nullptr; }, &ignored);
      return i < results.size() ? TypeOnly(results[i].info) : ValueInfo();
    }
    if (block.gives_list) return ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
    const auto callee = program_.functions.find(block.function);
    if (callee == program_.functions.end() || i >= callee->second.results.size()) return ValueInfo();
    const Parameter& result = callee->second.results[i];
    return ValueInfo::OfDeclared(result.data_type, result.value_type);
  }

  const Program& program_;
  int32_t& next_block_id_;
  SingleAssignment made_;
  std::set<std::string> used_;
  std::map<std::string, int> counts_;
};

}  // namespace

Result<SingleAssignment> InSingleAssignment(const Function& function, const Program& program,
                                            int32_t* next_block_id) {
  return Converter(program, next_block_id).Convert(function);
}

std::string_view NameInFunction(std::string_view variable) { return variable.substr(0, variable.find('@')); }

std::set<std::string> AssignedIn(const std::vector<Block>& blocks) {
  std::set<std::string> names;
  for (const Block& block : blocks) AddAssigned(block, &names);
  return names;
}

std::set<std::string> ReadIn(const std::vector<Block>& blocks) {
  return NamesOf(LiveBefore(blocks, SharedNames()));
}

ValueInfo TypeOnly(const ValueInfo& info) { return ValueInfo::OfDeclared(info.data_type, info.value_type); }

Block CopyBlock(const std::string& to, const std::string& from, const ValueInfo& type, int32_t id,
                const SourcePosition& position) {
  Block block;
  block.id = id;
  block.position = position;
  if (type.data_type != DataType::kList) {
    AddAssign(&block.graph, to, AddRead(&block.graph, from, type, position), position);
    return block;
  }
  block.kind = Block::Kind::kList;
  block.operation = ListOperation::kCopy;
  block.arguments = {{"list", from}};
  block.results = {to};
  return block;
}

NodeId AddRead(Graph* graph, const std::string& name, const ValueInfo& type, const SourcePosition& position) {
  Node node;
  node.op = "variable";
  node.info = type;
  node.position = position;
  node.SetAttribute("name", name);
  return graph->Add(std::move(node));
}

void AddAssign(Graph* graph, const std::string& name, NodeId value, const SourcePosition& position) {
  Node node;
  node.op = "assign";
  node.inputs = {value};
  node.info = (*graph)[value].info;
  node.position = position;
  node.SetAttribute("name", name);
  graph->Add(std::move(node));
}

}  // namespace heddle::compiler
