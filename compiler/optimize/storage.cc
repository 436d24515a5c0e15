// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/storage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/names.h"
#include "core/programs/for_each_block.h"
#include "core/programs/input_infos.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
bool IsLoop(const Block& block) {
  return block.kind == Block::Kind::kWhile || block.kind == Block::Kind::kFor ||
         block.kind == Block::Kind::kParallelFor;
}

namespace {

double RoundsOf(const Block& loop) {
  if (loop.kind == Block::Kind::kWhile) return kGuessedRounds;
  const std::optional<LoopRange> range = RangeOf(loop);
  if (!range) return kGuessedRounds;
  return range->is_empty ? 0 : static_cast<double>((range->last - range->first) / range->step + 1);
}

// Whether the operator has no other way than to take this input whole and decoded.
bool NeedsAll(const Graph& graph, const Node& node, size_t i) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr) return true;
  if (op->run_compressed != nullptr) return false;
  const std::vector<ValueInfo> infos = InputInfos(graph, node);
  return ops::RowRuleOf(node, infos) == ops::RowRule::kWhole ||
         ops::InputUseOf(node, infos, static_cast<int>(i)) == ops::InputUse::kWhole;
}

// Whether the node is an aggregate of all cells or of columns that dictionaries tell, or cells from cells and
// scalars that nothing but such nodes reads.
bool ReadsTuples(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || op->run_compressed == nullptr) return false;
  if (op->aggregate != nullptr)
    return op->aggregate->scope != ops::AggregateScope::kRow && !ops::IsSpread(op->aggregate->kind) &&
           op->aggregate->kind != ops::AggregateKind::kProduct;
  const auto matrices = std::count_if(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
    return input != kNoNode && !graph[input].info.IsScalar();
  });
  if (op->kind != ops::OperatorKind::kCells || matrices != 1) return false;
  bool is_read = false;
  for (NodeId reader = id + 1; reader < graph.size(); ++reader) {
    const std::vector<NodeId>& inputs = graph[reader].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) continue;
    is_read = true;
    if (!ReadsTuples(graph, reader)) return false;
  }
  return is_read;
}

// Whether the block itself gives the variable another value: not X = compress(X).
bool Changes(const Block& block, const std::string& variable) {
  if (block.variable == variable ||
      std::find(block.results.begin(), block.results.end(), variable) != block.results.end())
    return true;
  return std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(), [&](const Node& node) {
    if (!node.Is("assign") || node.Text("name") != variable) return false;
    const Node* value = &block.graph[node.inputs[0]];
    while (ChangesStorage(*value)) value = &block.graph[value->inputs[0]];
    return !value->Is("variable") || value->Text("name") != variable;
  });
}

// Follows a variable through blocks, the names that it gets there, and the functions that get it.
class Reader {
 public:
  explicit Reader(const Program& program) : program_(program) {}

  void Follow(std::span<const Block> blocks, const std::string& variable, double times) {
    Names followed;
    std::vector<std::string> names = {variable};
    while (!names.empty()) {
      const std::string name = names.back();
      names.pop_back();
      if (!followed.insert(name).second) continue;
      for (const Block& block : blocks) FollowName(block, name, times, &names);
    }
  }

  std::vector<StorageRead> Take() { return std::move(reads_); }

 private:
  // Adds to `names` those that the value gets.
  void FollowName(const Block& block, const std::string& variable, double times,
                  std::vector<std::string>* names) {
    const double inside = IsLoop(block) ? times * RoundsOf(block) : times;
    AddGraph(block.graph, variable, block.kind == Block::Kind::kWhile ? inside : times, names);
    if (block.kind == Block::Kind::kList) {
      for (const auto& [parameter, name] : block.arguments)
        if (name == variable) reads_.push_back({"list", block.position, inside, true});
    }
    ForEachCallee(block, [&](const std::string& function, const auto& arguments) {
      for (const auto& [parameter, name] : arguments)
        if (name == variable) AddCall(function, parameter, block.position, inside);
    });
    for (const Block& inner : block.body) FollowName(inner, variable, inside, names);
    for (const Block& inner : block.otherwise) FollowName(inner, variable, inside, names);
  }

  void AddGraph(const Graph& graph, const std::string& variable, double times,
                std::vector<std::string>* names) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoNode) continue;
        const Node& input = graph[node.inputs[i]];
        if (!input.Is("variable") || input.Text("name") != variable || ops::IsSize(node)) continue;
        if (node.Is("assign"))
          names->push_back(node.Text("name"));
        else if (!ChangesStorage(node))
          reads_.push_back({node.op, node.position, times, NeedsAll(graph, node, i), ReadsTuples(graph, id)});
      }
    }
  }

  void AddCall(const std::string& function, const std::string& parameter, const SourcePosition& position,
               double times) {
    const auto found = program_.functions.find(function);
    // Of what calls itself it is not known how often it runs.
    if (found == program_.functions.end() || !open_.insert(function).second) {
      reads_.push_back({function + "()", position, times, true});
      return;
    }
    bool is_changed = false;
    ForEachBlock(found->second.body,
                 [&](const Block& block) { is_changed = is_changed || Changes(block, parameter); });
    if (is_changed)
      reads_.push_back({function + "()", position, times, true});
    else
      Follow(found->second.body, parameter, times);
    open_.erase(function);
  }

  const Program& program_;
  std::vector<StorageRead> reads_;
  std::set<std::string> open_;  // Functions whose bodies are being followed.
};

// Matrices by name, in the order in which they were found.
class FoundMatrices {
 public:
  void Add(const std::string& name, const ValueInfo& info) {
    if (infos_.insert({name, info}).second) order_.push_back(name);
  }
  void AddReadOf(const Graph& graph) {
    for (const Node& node : graph.nodes)
      if (node.Is("variable") && node.info.IsMatrix()) Add(node.Text("name"), node.info);
  }
  const ValueInfo* Find(const std::string& name) const {
    const auto info = infos_.find(name);
    return info == infos_.end() ? nullptr : &info->second;
  }
  const std::vector<std::string>& order() const { return order_; }

 private:
  std::map<std::string, ValueInfo> infos_;
  std::vector<std::string> order_;
};

std::string WhyNot(const LoopInput& input) {
  for (const StorageRead& read : input.reads)
    if (read.needs_all)
      return fmt::format("{} in line {} needs all of it, and would decode it each time", read.reader,
                         read.position.line);
  if (input.info.IsSized() && input.info.format == Format::kDense &&
      KnownBytes(input.info) < ops::kFetchedBytes)
    return "it fits in a cache";
  return "";
}

}  // namespace

bool CallsItself(const Program& program, const std::string& function) {
  std::set<std::string> reached;
  std::vector<std::string> open = {function};
  while (!open.empty()) {
    const auto found = program.functions.find(open.back());
    open.pop_back();
    if (found == program.functions.end()) continue;
    ForEachBlock(found->second.body, [&](const Block& block) {
      ForEachCallee(block, [&](const std::string& callee, const auto&) {
        if (reached.insert(callee).second) open.push_back(callee);
      });
    });
  }
  return reached.contains(function);
}

std::vector<StorageRead> ReadsOf(const Program& program, std::span<const Block> blocks,
                                 const std::string& variable) {
  Reader reader(program);
  reader.Follow(blocks, variable, 1);
  return reader.Take();
}

std::vector<LoopInput> InputsOf(const Program& program, const Block& loop) {
  Names assigned;
  FoundMatrices found;
  ForEachBlock(loop, [&](const Block& block) {
    ForEachAssigned(block, [&](const std::string& name) { assigned.insert(name); });
    found.AddReadOf(block.graph);
    ForEachCallee(block, [&](const std::string& function, const auto& arguments) {
      const auto callee = program.functions.find(function);
      if (callee == program.functions.end()) return;
      FoundMatrices inside;
      ForEachBlock(callee->second.body, [&](const Block& inner) { inside.AddReadOf(inner.graph); });
      for (const auto& [parameter, name] : arguments)
        if (const ValueInfo* const info = inside.Find(parameter); info != nullptr) found.Add(name, *info);
    });
  });
  std::vector<LoopInput> inputs;
  for (const std::string& name : found.order()) {
    if (assigned.contains(name)) continue;
    Reader reader(program);
    reader.Follow({&loop, 1}, name, 1);
    LoopInput input{.variable = name, .info = *found.Find(name), .reads = reader.Take()};
    if (input.reads.empty()) continue;
    for (const StorageRead& read : input.reads) {
      input.times += read.times;
      if (read.of_tuples) input.of_tuples += read.times;
    }
    input.why_not = WhyNot(input);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace heddle::compiler
