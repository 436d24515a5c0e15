// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/defined.h"
#include "compiler/optimize/pass.h"
#include "compiler/parse/ast.h"
#include "core/call_site.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

// Which calls become the body of their function: those of functions that are called in one place, of those
// that are one straight-line block of a few operators, and of those that a function that calls itself uses,
// which can be batches of nodes then (docs/recursion.md). What an error says stays the same: arguments
// need no conversion, all that is read has a value, results included, and matrices are what is declared so.
// Lists go through calls: they are no values of the graphs that arguments and results would become.
// A body that is put in place of several calls brings its own calls to each of these places, and those count
// as many; a function goes when nothing that is left calls it.
namespace heddle::compiler {
namespace {

constexpr int kMostOperators = 10;
// In a program: later passes take time that grows with the square of a run of blocks.
constexpr int kMostInlined = 500;

int DepthOf(const std::vector<Block>& blocks) {
  int depth = 0;
  for (const Block& block : blocks)
    depth = std::max({depth, 1 + DepthOf(block.body), 1 + DepthOf(block.otherwise)});
  return depth;
}

// Random numbers and times are those of one place in the script.
bool IsOfOnePlace(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const ops::Operator* const op = ops::FindOperator(node.op);
    return op != nullptr && (!op->pure || op->seed_input >= 0);
  });
}

// One block of a few operators.
bool IsSmall(const Function& function) {
  if (function.body.size() != 1 || function.body[0].kind != Block::Kind::kBasic) return false;
  const Graph& graph = function.body[0].graph;
  const auto operators = std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return !(node.Is("variable") || node.Is("literal") || node.Is("assign") || node.Is("result"));
  });
  return operators <= kMostOperators && !IsOfOnePlace(graph);
}

void AddCallees(const std::vector<Block>& blocks, std::set<std::string>* callees) {
  ForEachBlock(blocks, [&](const Block& block) {
    ForEachCallee(block, [&](const std::string& name, const auto&) { callees->insert(name); });
  });
}

// What a function calls, for certain or perhaps, directly or not; nothing where that is very much.
std::set<std::string> ReachedFrom(const Program& program, const std::string& name) {
  constexpr size_t kMostReached = 256;
  std::set<std::string> reached;
  std::vector<std::string> open = {name};
  while (!open.empty()) {
    const auto function = program.functions.find(open.back());
    open.pop_back();
    if (function == program.functions.end()) continue;
    std::set<std::string> callees;
    AddCallees(function->second.body, &callees);
    for (const std::string& callee : callees)
      if (reached.insert(callee).second) open.push_back(callee);
    if (reached.size() > kMostReached) return {};
  }
  return reached;
}

// The functions that one that calls itself uses, but for those that call themselves or are of one place.
std::set<std::string> UsedInRecursions(const Program& program) {
  std::set<std::string> used;
  for (const auto& [name, function] : program.functions) {
    std::set<std::string> callees;
    AddCallees(function.body, &callees);
    if (!callees.contains(name) || callees.size() < 2) continue;
    for (const std::string& other : ReachedFrom(program, name)) {
      const auto found = program.functions.find(other);
      if (found == program.functions.end() || used.contains(other)) continue;
      bool is_of_one_place = ReachedFrom(program, other).contains(other);
      ForEachBlock(found->second.body,
                   [&](const Block& block) { is_of_one_place |= IsOfOnePlace(block.graph); });
      if (!is_of_one_place) used.insert(other);
    }
  }
  return used;
}

// What all calls pass for a parameter, as those see it who read it. nullopt if it may be a scalar of another
// type than declared, which a call converts.
std::optional<ValueInfo> InfoOf(const Parameter& parameter, std::vector<Block>* body) {
  bool is_read = false, is_assigned = false, is_as_declared = true;
  ValueInfo info;
  ForEachBlock(*body, [&](Block& block) {
    is_assigned |= block.variable == parameter.name;
    for (const std::string& result : block.results) is_assigned |= result == parameter.name;
    for (const Node& node : block.graph.nodes) {
      if (node.FindAttribute("name") == nullptr || node.Text("name") != parameter.name) continue;
      is_assigned |= node.Is("assign");
      if (!node.Is("variable")) continue;
      is_read = true;
      info = node.info;
      is_as_declared &= node.info.IsScalar() && node.info.value_type == parameter.value_type;
    }
  });
  const bool is_known = is_read && !is_assigned;
  if (parameter.data_type == DataType::kScalar && parameter.value_type != ValueType::kUnknown &&
      !(is_known && is_as_declared))
    return std::nullopt;
  return is_known ? info : ValueInfo();
}

// True if all that a function assigns to a result which it declares as a matrix is one: a call would refuse a
// scalar. What it calls keeps its declarations, too.
bool IsMatrixAsDeclared(const Program& program, const Parameter& result, std::vector<Block>* body) {
  if (result.data_type != DataType::kMatrix) return true;
  bool is_matrix = true;
  ForEachBlock(*body, [&](Block& block) {
    is_matrix &= block.variable != result.name;
    for (size_t i = 0; i < block.results.size(); ++i) {
      if (block.results[i] != result.name) continue;
      const auto callee = program.functions.find(block.function);
      is_matrix &= callee != program.functions.end() && !block.gives_list &&
                   i < callee->second.results.size() &&
                   callee->second.results[i].data_type == DataType::kMatrix;
    }
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign") && node.Text("name") == result.name) is_matrix &= node.info.IsMatrix();
  });
  return is_matrix;
}

// Names of a function's variables where it is called: the same for all its calls, since each assigns all
// that it reads. What only the control program reads keeps its name.
class Renamer {
 public:
  explicit Renamer(size_t function) : prefix_(fmt::format("%in{}.", function)) {}

  std::string Renamed(const std::string& name) const { return name.empty() ? name : prefix_ + name; }

  void Rename(Block* block) const {
    for (Node& node : block->graph.nodes) {
      const bool is_name = node.Is("variable") || (node.Is("assign") && block->kind == Block::Kind::kBasic);
      if (is_name) node.SetAttribute("name", Renamed(node.Text("name")));
    }
    block->variable = Renamed(block->variable);
    ForEachArguments(*block, [&](auto& arguments) {
      for (auto& [parameter, variable] : arguments) variable = Renamed(variable);
    });
    block->selector = Renamed(block->selector);
    block->first_argument = Renamed(block->first_argument);
    for (std::vector<std::string>* names :
         {&block->results, &block->merged, &block->sums, &block->natural, &block->upward, &block->locals})
      for (std::string& name : *names) name = Renamed(name);
  }

 private:
  const std::string prefix_;
};

// Lets the places of a body tell of the call that it takes the place of.
class Mover {
 public:
  Mover(const std::string& function, const SourcePosition& call)
      : call_(std::make_shared<const CallSite>(CallSite{function, call})) {}

  void Move(Block* block) {
    block->position = Moved(block->position);
    for (Node& node : block->graph.nodes) node.position = Moved(node.position);
  }

 private:
  SourcePosition Moved(SourcePosition position) {
    position.call = position.call == nullptr ? call_ : Around(position.call);
    return position;
  }

  std::shared_ptr<const CallSite> Around(const std::shared_ptr<const CallSite>& inner) {
    std::shared_ptr<const CallSite>& moved = moved_[inner.get()];
    if (moved == nullptr)
      moved = std::make_shared<const CallSite>(CallSite{inner->function, Moved(inner->position)});
    return moved;
  }

  const std::shared_ptr<const CallSite> call_;
  std::map<const CallSite*, std::shared_ptr<const CallSite>> moved_;  // calls that were there before
};

class Inliner {
 public:
  explicit Inliner(Program* program)
      : program_(*program), used_in_recursions_(UsedInRecursions(*program)), new_blocks_(program) {
    ForEachBlock(*program, [&](Block& block) {
      ForEachCallee(block, [&](const std::string& function, const auto&) { ++calls_[function]; });
    });
  }

  // From the main program on: a function that is called once is not called by itself there.
  void Run() {
    SharedNames before;
    for (const GivenVariable& given : program_.given) before.insert(given.name);
    Visit(program_.main, std::move(before), 0);
    while (!open_.empty()) {
      const std::string name = *open_.begin();
      open_.erase(open_.begin());
      const auto function = program_.functions.find(name);
      if (function == program_.functions.end()) continue;
      Visit(function->second.body, NamesOf(function->second.parameters), 0);
      if (const auto choice = choices_.find(name); choice != choices_.end())
        choice->second.depth = DepthOf(function->second.body);
    }
    EraseUncalled();
  }

 private:
  // What of a function can be decided once.
  struct Choice {
    bool is_inlined = false;
    size_t number = 0;             // of the function
    std::vector<ValueInfo> infos;  // of the parameters
    int depth = 0;                 // of the blocks inside each other
  };

  static SharedNames NamesOf(const std::vector<Parameter>& parameters) {
    SharedNames names;
    for (const Parameter& parameter : parameters) names.insert(parameter.name);
    return names;
  }

  void Visit(std::vector<Block>& blocks, SharedNames defined, int depth) {
    std::vector<Block> result;
    std::reverse(blocks.begin(), blocks.end());  // the last is the next
    while (!blocks.empty()) {
      Block block = std::move(blocks.back());
      blocks.pop_back();
      if (block.kind == Block::Kind::kCall) {
        if (block.candidates.empty() && TakesBody(block, defined, depth)) {
          std::vector<Block> body = BodyFor(block);
          std::move(body.rbegin(), body.rend(), std::back_inserter(blocks));
          continue;
        }
        ForEachCallee(block, [&](const std::string& function, const auto&) {
          if (seen_.insert(function).second) open_.insert(function);
        });
      }
      VisitInside(block, defined, depth + 1);
      FollowDefined(block, &defined);
      result.push_back(std::move(block));
    }
    blocks = std::move(result);
  }

  void VisitInside(Block& block, const SharedNames& defined, int depth) {
    if (block.body.empty() && block.otherwise.empty()) return;
    SharedNames inside = defined;
    if (!block.variable.empty()) inside.insert(block.variable);
    Visit(block.body, inside, depth);
    Visit(block.otherwise, std::move(inside), depth);
  }

  bool TakesBody(const Block& call, const SharedNames& defined, int depth) {
    const Choice& choice = ChoiceOf(call.function);
    const auto function = program_.functions.find(call.function);
    return function != program_.functions.end() && !call.gives_list &&
           call.results.size() <= function->second.results.size() && choice.is_inlined &&
           inlined_ < kMostInlined && depth + choice.depth <= kMaxNesting &&
           std::all_of(call.arguments.begin(), call.arguments.end(),
                       [&](const auto& argument) { return defined.contains(argument.second); });
  }

  const Choice& ChoiceOf(const std::string& name) {
    const auto [found, is_new] = choices_.try_emplace(name);
    Choice& choice = found->second;
    const auto function = program_.functions.find(name);
    if (!is_new || function == program_.functions.end()) return choice;
    choice.number = choices_.size() - 1;
    std::vector<Block>& body = function->second.body;
    if (calls_[name] != 1 && !IsSmall(function->second) && !used_in_recursions_.contains(name)) return choice;
    SharedNames defined = NamesOf(function->second.parameters);
    choice.is_inlined = FollowDefined(body, &defined);
    SharedNames assigned;
    FollowDefined(body, &assigned);
    for (const Parameter& result : function->second.results)
      choice.is_inlined &= defined.contains(result.name) && result.data_type != DataType::kList &&
                           (result.data_type != DataType::kMatrix || assigned.contains(result.name)) &&
                           IsMatrixAsDeclared(program_, result, &body);
    for (const Parameter& parameter : function->second.parameters) {
      const std::optional<ValueInfo> info = InfoOf(parameter, &body);
      choice.is_inlined &= info.has_value() && parameter.data_type != DataType::kList;
      choice.infos.push_back(info.value_or(ValueInfo()));
    }
    choice.depth = DepthOf(body);
    return choice;
  }

  // The arguments, the body, the results; of those that one variable takes, the last.
  std::vector<Block> BodyFor(const Block& call) {
    ++inlined_;
    Function& function = program_.functions.at(call.function);
    const Choice& choice = ChoiceOf(call.function);
    const Renamer renamer(choice.number);
    Mover mover(function.name, call.position);
    std::vector<Block> body = function.body;
    ForEachBlock(body, [&](Block& block) {
      block.id = new_blocks_.NextId();
      renamer.Rename(&block);
      mover.Move(&block);
    });
    std::vector<Block> blocks(1, new_blocks_.Make(Block::Kind::kBasic, call.position));
    for (const auto& [parameter, variable] : call.arguments) {
      size_t i = 0;
      while (function.parameters[i].name != parameter) ++i;
      Assign(renamer.Renamed(parameter), variable, choice.infos[i], &blocks.back());
    }
    const bool stays = calls_[call.function] != 1;
    ForEachBlock(body, [&](const Block& block) {
      ForEachCallee(block, [&](const std::string& callee, const auto&) {
        if (stays) ++calls_[callee];
      });
    });
    std::move(body.begin(), body.end(), std::back_inserter(blocks));
    blocks.push_back(new_blocks_.Make(Block::Kind::kBasic, call.position));
    for (size_t i = 0; i < call.results.size(); ++i) {
      const std::string& result = call.results[i];
      if (result.empty() || std::count(call.results.begin() + i + 1, call.results.end(), result) > 0)
        continue;
      Assign(result, renamer.Renamed(function.results[i].name), ValueInfo(), &blocks.back());
    }
    taken_.insert(call.function);
    return blocks;
  }

  // Functions whose bodies are where they were called, unless a call of them is left.
  void EraseUncalled() {
    std::set<std::string> called;
    AddCallees(program_.main, &called);
    std::vector<std::string> open(called.begin(), called.end());
    for (const auto& [name, function] : program_.functions)
      if (!taken_.contains(name)) open.push_back(name);
    std::set<std::string> left;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      const auto function = program_.functions.find(name);
      if (function == program_.functions.end() || !left.insert(name).second) continue;
      called.clear();
      AddCallees(function->second.body, &called);
      open.insert(open.end(), called.begin(), called.end());
    }
    std::erase_if(program_.functions, [&](const auto& entry) { return !left.contains(entry.first); });
  }

  static void Assign(const std::string& name, const std::string& variable, const ValueInfo& info,
                     Block* block) {
    Node node;
    node.op = "variable";
    node.info = info;
    node.position = block->position;
    node.SetAttribute("name", variable);
    Node assign = node;
    assign.op = "assign";
    assign.SetAttribute("name", name);
    assign.inputs = {block->graph.Add(std::move(node))};
    block->graph.Add(std::move(assign));
  }

  Program& program_;
  const std::set<std::string> used_in_recursions_;
  std::map<std::string, int> calls_;  // of the blocks of all bodies as they are by now
  std::map<std::string, Choice> choices_;
  std::set<std::string> seen_, open_;  // functions that stay: all, and those whose bodies are not visited yet
  std::set<std::string> taken_;        // functions whose body has taken the place of a call
  NewBlocks new_blocks_;
  int inlined_ = 0;  // calls
};

}  // namespace

Status InlineFunctions(Program* program) {
  Inliner(program).Run();
  return OkStatus();
}

}  // namespace heddle::compiler
