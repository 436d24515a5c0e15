// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/structure_cache.h"

#include <optional>
#include <utility>

#include "ops/recursion/structure/linearize.h"

namespace heddle::engine {
namespace {

// A visitor has a number for each row of its matrices.
constexpr size_t kMostVisitorBytes = size_t{16} << 20;
// Decisions of one node: with more children than that a body would be a long list of operators.
constexpr int32_t kMostDecisions = 512;

int64_t BytesOf(const ops::Linearized& arrays, const StructureInputs& inputs) {
  size_t bytes = arrays.nodes.size() * sizeof(int64_t) +
                 (arrays.roots.size() + arrays.order.size() + arrays.subtrees.size()) * sizeof(int32_t) +
                 arrays.batches.size() * sizeof(ops::Linearized::Batch);
  for (const ops::Linearized::Class& node_class : arrays.classes)
    bytes += node_class.children.size() * sizeof(int32_t) + node_class.numbers.size() * sizeof(double) +
             node_class.decisions.size() / 8;
  for (const Value& matrix : inputs.matrices) bytes += static_cast<size_t>(matrix.matrix().bytes());
  return static_cast<int64_t>(bytes);
}

}  // namespace

Result<std::shared_ptr<const ops::Linearized>> StructureCache::Of(const Function& function,
                                                                  const ops::StructureProgram& program,
                                                                  const std::vector<int64_t>& roots,
                                                                  const VariableTable& frame,
                                                                  std::string* why) {
  const std::shared_ptr<const ops::Linearized> none;
  *why = "its structure is no matrix here";
  std::optional<StructureInputs> inputs = InputsOf(program, frame);
  if (!inputs) return none;
  if (std::shared_ptr<const ops::Linearized> found = Find(program, roots, *inputs)) return found;
  HEDDLE_ASSIGN_OR_RETURN(Visitor visitor, TakeVisitor(program, *inputs));
  HEDDLE_ASSIGN_OR_RETURN(const ops::VisitedStructure* const visited,
                          visitor.visitor->Visit(roots, function.name));
  if (visited == nullptr) {
    if (!visitor.visitor->why().empty()) *why = visitor.visitor->why();
    return none;
  }
  ops::Linearized linearized = ops::Linearize(*visited);
  GiveBack(std::move(visitor));
  Structure structure{.program = &program, .inputs = *std::move(inputs), .roots = roots};
  const int64_t bytes =
      BytesOf(linearized, structure.inputs) + static_cast<int64_t>(roots.size() * sizeof(int64_t));
  structure.linearized = std::make_shared<const ops::Linearized>(std::move(linearized));
  std::shared_ptr<const ops::Linearized> made = structure.linearized;
  const std::lock_guard lock(mutex_);
  structures_.Add(std::move(structure), bytes);
  return made;
}

std::shared_ptr<const ops::Linearized> StructureCache::Find(const ops::StructureProgram& program,
                                                            const std::vector<int64_t>& roots,
                                                            const StructureInputs& inputs) {
  const std::lock_guard lock(mutex_);
  Structure* const found = structures_.FindIf([&](const Structure& structure) {
    return structure.roots == roots && structure.program->IsAlike(program) && structure.inputs.IsSame(inputs);
  });
  if (found == nullptr) return nullptr;
  found->inputs = inputs;  // What is asked for next is more likely this one in memory.
  return found->linearized;
}

// Lanes that visit the same matrices at once have visitors of their own.
Result<StructureCache::Visitor> StructureCache::TakeVisitor(const ops::StructureProgram& program,
                                                            const StructureInputs& inputs) {
  {
    const std::lock_guard lock(mutex_);
    std::optional<Visitor> taken = visitors_.TakeIf(
        [&](const Visitor& visitor) { return visitor.program == &program && visitor.inputs.IsSame(inputs); });
    if (taken) return *std::move(taken);
  }
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Matrix> dense, inputs.Dense());
  return Visitor{.program = &program,
                 .inputs = inputs,
                 .visitor = std::make_unique<ops::StructureVisitor>(program, std::move(dense),
                                                                    inputs.uniforms, kMostDecisions)};
}

void StructureCache::GiveBack(Visitor visitor) {
  if (visitor.visitor->bytes() > kMostVisitorBytes) return;
  const std::lock_guard lock(mutex_);
  visitors_.Add(std::move(visitor));
}

}  // namespace heddle::engine
