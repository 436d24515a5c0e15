// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/pass_elements.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "compiler/blocks/block_builder.h"
#include "compiler/gradient/expand_calls.h"
#include "compiler/gradient/list_uses.h"
#include "compiler/gradient/single_assignment.h"

namespace heddle::compiler {
namespace {

using Elements = std::map<std::string, ListElement>;

std::string CopyKey(const std::string& function) { return fmt::format("elements for {}", function); }

ValueInfo TypeOf(const ListElement& element) {
  return element.operation == ListOperation::kAsMatrix
             ? ValueInfo::OfDeclared(DataType::kMatrix, ValueType::kDouble)
             : ValueInfo::OfDeclared(DataType::kScalar, ValueType::kUnknown);
}

class Passer {
 public:
  Passer(Program* program, int32_t* next_block_id, const ListUses& uses, std::set<std::string>* copies)
      : program_(*program), next_block_id_(*next_block_id), uses_(uses), copies_(*copies) {}

  // The copy of a function whose lists become elements.
  void Copy(const std::string& key) {
    if (!copies_.insert(CopyKey(key)).second) return;
    Function copy = program_.functions.at(key);
    std::vector<Parameter> parameters;
    std::map<std::string, const Elements*> lists;
    for (Parameter& parameter : copy.parameters) {
      const Elements* const elements = uses_.ElementsOf(key, parameter.name);
      if (elements == nullptr) {
        parameters.push_back(std::move(parameter));
        continue;
      }
      lists[parameter.name] = elements;
      for (const auto& [name, element] : *elements) {
        const ValueInfo type = TypeOf(element);
        parameters.push_back({element.NameIn(parameter.name), type.data_type, type.value_type, {}});
      }
    }
    copy.parameters = std::move(parameters);
    Rewrite(lists, &copy);
    program_.functions[CopyKey(key)] = std::move(copy);
  }

  // The copy of a function that keeps its lists.
  std::string CopyRoot(const std::string& key) {
    std::string root = fmt::format("{}, lists", CopyKey(key));
    if (!copies_.insert(root).second) return root;
    Function copy = program_.functions.at(key);
    Rewrite({}, &copy);
    program_.functions[root] = std::move(copy);
    return root;
  }

 private:
  // What is written of one function.
  struct Writing {
    const std::map<std::string, const Elements*>& lists;  // that have become elements
    std::map<std::string, Scalar> literals;
    std::vector<std::set<std::string>> loops;  // what those around a block assign, the outermost first
    std::vector<std::vector<Block>> before;    // inside so many loops: what comes before the block at hand
    int taken = 0;                             // elements
  };

  void Rewrite(const std::map<std::string, const Elements*>& lists, Function* function) {
    Writing writing = {.lists = lists, .literals = LiteralsOf(*function), .loops = {}, .before = {{}}};
    Rewrite(&function->body, &writing);
  }

  void Rewrite(std::vector<Block>* blocks, Writing* writing) {
    std::vector<Block> written;
    for (Block& block : *blocks) {
      block.id = next_block_id_++;
      const bool is_loop = block.kind == Block::Kind::kFor || block.kind == Block::Kind::kWhile ||
                           block.kind == Block::Kind::kParallelFor;
      if (is_loop) {
        writing->loops.push_back(AssignedIn({block}));
        writing->before.emplace_back();
      }
      Rewrite(&block.body, writing);
      Rewrite(&block.otherwise, writing);
      if (is_loop) {
        writing->loops.pop_back();
        writing->before.pop_back();
      }
      if (block.kind == Block::Kind::kList) ReadParameter(*writing, &block);
      if (block.kind == Block::Kind::kCall && block.candidates.empty() && !block.gives_list &&
          uses_.HasAny(block.function))
        CallCopy(writing, &block);
      std::vector<Block>& before = writing->before[writing->loops.size()];
      std::move(before.begin(), before.end(), std::back_inserter(written));
      before.clear();
      written.push_back(std::move(block));
    }
    *blocks = std::move(written);
  }

  static void ReadParameter(const Writing& writing, Block* step) {
    const std::optional<ListElement> element = ElementReadBy(*step, writing.literals);
    if (!element || !writing.lists.contains(step->arguments[0].second)) return;
    *step = CopyBlock(step->results[0], element->NameIn(step->arguments[0].second), TypeOf(*element),
                      step->id, step->position);
  }

  void CallCopy(Writing* writing, Block* call) {
    Copy(call->function);
    std::vector<std::pair<std::string, std::string>> arguments;
    for (auto& [parameter, variable] : call->arguments) {
      const Elements* const elements = uses_.ElementsOf(call->function, parameter);
      if (elements == nullptr) {
        arguments.emplace_back(std::move(parameter), std::move(variable));
        continue;
      }
      for (const auto& [name, element] : *elements)
        arguments.emplace_back(element.NameIn(parameter), writing->lists.contains(variable)
                                                              ? element.NameIn(variable)
                                                              : Taken(element, variable, writing));
    }
    call->arguments = std::move(arguments);
    call->function = CopyKey(call->function);
  }

  // The variable with an element, which is taken out ahead of the outermost loop that keeps the list.
  std::string Taken(const ListElement& element, const std::string& list, Writing* writing) {
    size_t loops = writing->loops.size();
    while (loops > 0 && !writing->loops[loops - 1].contains(list)) --loops;
    std::string taken = fmt::format("%element{}", ++writing->taken);
    const std::string index = taken + ".key";
    BlockBuilder builder;
    builder.Assign(index, builder.Literal(element.key, element.position), element.position);
    Block key, step;
    key.id = next_block_id_++;
    step.id = next_block_id_++;
    key.position = step.position = element.position;
    key.graph = builder.Finish();
    step.kind = Block::Kind::kList;
    step.operation = element.operation;
    step.arguments = {{"list", list}, {"from", index}, {"to", index}};
    step.results = {taken};
    std::vector<Block>& before = writing->before[loops];
    before.push_back(std::move(key));
    before.push_back(std::move(step));
    return taken;
  }

  Program& program_;
  int32_t& next_block_id_;
  const ListUses& uses_;
  std::set<std::string>& copies_;
};

}  // namespace

std::string PassElements(const std::string& function, Program* program, int32_t* next_block_id,
                         std::set<std::string>* copies) {
  const ListUses uses(*program, function);
  const bool is_needed = std::any_of(
      program->functions.begin(), program->functions.end(),
      [&](const auto& entry) { return uses.HasAny(entry.first) && IsRecursive(*program, entry.first); });
  if (!is_needed) return function;
  return Passer(program, next_block_id, uses, copies).CopyRoot(function);
}

}  // namespace heddle::compiler
