// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"
#include "core/programs/program.h"
#include "engine/variables/variables.h"

// Copies of variables in other distributions (docs/distribution.md): in a loop a plan leaves what it has
// moved for the plans behind it, so that what the loop does not change is moved once and not in every round.
namespace heddle::engine {

/// Where in a program a graph stands.
struct PlaceInProgram {
  const Block* loop = nullptr;   ///< The innermost loop around it, within its function; nullptr: none, or
                                 ///< copies are not to be left.
  const Block* block = nullptr;  ///< Its block; the loop itself where the graph is its predicate.
};

/// Which variables of a graph are worth a copy where a plan moves them.
struct LoopReuse {
  std::set<std::string> kept;     ///< They are read again before they are assigned.
  std::set<std::string> lasting;  ///< Of these, those that no round of the loop assigns.
};

/// A function of the program alone, so it is the same whenever a block is entered. Nothing outside of loops.
LoopReuse ReuseOf(const Graph& graph, const PlaceInProgram& place);

/// Where the copies of the variables of a graph are, by name; those without copies are left out.
std::map<std::string, std::vector<Distribution>> CopiesIn(const Graph& graph, const VariableTable& frame);
/// Whether a variable has copies just there.
bool HasCopiesAt(const Variable& variable, const std::vector<Distribution>& where);
/// All copies go: behind the outermost loop of a function, and before the iterations of a parfor.
void DropCopies(VariableTable* frame);

}  // namespace heddle::engine
