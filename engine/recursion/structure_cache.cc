// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/structure_cache.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ops/recursion/structure/linearize.h"

namespace heddle::engine {
namespace {

// The last structure is kept whatever its size, and with it others of so many bytes.
constexpr size_t kMostStructures = 1024;
constexpr size_t kMostStructureBytes = size_t{256} << 20;
// Those of the matrices that were visited last, of so many bytes each: they have a number for each row.
constexpr size_t kMostVisitors = 4;
constexpr size_t kMostVisitorBytes = size_t{16} << 20;
// Decisions of one node: with more children than that a body would be a long list of operators.
constexpr int32_t kMostDecisions = 512;

size_t BytesOf(const ops::Linearized& arrays, const StructureInputs& inputs) {
  size_t bytes = arrays.nodes.size() * sizeof(int64_t) +
                 (arrays.roots.size() + arrays.order.size() + arrays.subtrees.size()) * sizeof(int32_t) +
                 arrays.batches.size() * sizeof(ops::Linearized::Batch);
  for (const ops::Linearized::Class& node_class : arrays.classes)
    bytes += node_class.children.size() * sizeof(int32_t) + node_class.numbers.size() * sizeof(double) +
             node_class.path.size() / 8;
  for (const Value& matrix : inputs.matrices) bytes += static_cast<size_t>(matrix.matrix().bytes());
  return bytes;
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
  if (std::shared_ptr<const ops::Linearized> kept = Find(program, roots, *inputs)) return kept;
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
  structure.bytes = BytesOf(linearized, structure.inputs) + roots.size() * sizeof(int64_t);
  structure.linearized = std::make_shared<const ops::Linearized>(std::move(linearized));
  std::shared_ptr<const ops::Linearized> made = structure.linearized;
  Keep(std::move(structure));
  return made;
}

std::shared_ptr<const ops::Linearized> StructureCache::Find(const ops::StructureProgram& program,
                                                            const std::vector<int64_t>& roots,
                                                            const StructureInputs& inputs) {
  const std::lock_guard lock(mutex_);
  for (auto kept = structures_.begin(); kept != structures_.end(); ++kept) {
    if (kept->roots != roots || !kept->program->IsAlike(program) || !kept->inputs.IsSame(inputs)) continue;
    kept->inputs = inputs;  // What is asked for next is more likely this one in memory.
    structures_.splice(structures_.begin(), structures_, kept);
    return structures_.front().linearized;
  }
  return nullptr;
}

void StructureCache::Keep(Structure structure) {
  const std::lock_guard lock(mutex_);
  structures_.push_front(std::move(structure));
  size_t bytes = 0, count = 0;
  for (auto kept = structures_.begin(); kept != structures_.end();) {
    bytes += count == 0 ? 0 : kept->bytes;
    kept =
        ++count > kMostStructures || bytes > kMostStructureBytes ? structures_.erase(kept) : std::next(kept);
  }
}

// Lanes that visit the same matrices at once have visitors of their own.
Result<StructureCache::Visitor> StructureCache::TakeVisitor(const ops::StructureProgram& program,
                                                            const StructureInputs& inputs) {
  {
    const std::lock_guard lock(mutex_);
    const auto kept = std::find_if(visitors_.begin(), visitors_.end(), [&](const Visitor& visitor) {
      return visitor.program == &program && visitor.inputs.IsSame(inputs);
    });
    if (kept != visitors_.end()) {
      Visitor taken = std::move(*kept);
      visitors_.erase(kept);
      return taken;
    }
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
  visitors_.push_front(std::move(visitor));
  if (visitors_.size() > kMostVisitors) visitors_.pop_back();
}

}  // namespace heddle::engine
