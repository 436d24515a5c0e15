// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/variables/variables.h"
#include "ops/recursion/run/evaluate_recursion.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::engine {

/// What a structure program reads, of the variables of a call.
struct StructureInputs {
  std::vector<Value> matrices;
  std::vector<double> uniforms;

  /// Whether those are the same cells and numbers.
  bool IsSame(const StructureInputs& other) const;
  Result<std::vector<Matrix>> Dense() const;
};

/// nullopt where a variable is not what the program takes it for.
std::optional<StructureInputs> InputsOf(const ops::StructureProgram& program, const VariableTable& frame);
/// The node that a variable is; nullopt for what is no node.
std::optional<int64_t> NodeIn(const std::string& name, const VariableTable& callee);
/// The roots of the rounds of a loop (compiler/recursion/find_roots.h). nullopt where only rounds can tell.
std::optional<std::vector<int64_t>> RootsOf(const ops::StructureProgram& structure,
                                            const std::function<int64_t(uint64_t round)>& value_of,
                                            uint64_t rounds, const VariableTable& frame);

/// Result `i` at a place, in memory of its own.
Result<Value> ValueAt(const ops::NodeResults& results, size_t i, int32_t place);
/// A variable that all ranks hold: a number as the declared type, where it is one. Callers cast others, but
/// may know that all are.
Variable VariableOf(Value value, ValueType type, int ranks);

}  // namespace heddle::engine
