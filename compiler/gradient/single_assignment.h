// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

/// A function in which each variable is assigned at one place of the text, so that a name is a value.
///
/// What a loop carries from round to round is the exception: its *head* is assigned before the loop and at
/// the end of its body, and read at the beginning of the body, by a while loop's predicate and behind the
/// loop, where it gets names of its own at once. Parameters keep their names. A parfor becomes a for.
struct SingleAssignment {
  Function function;
  std::map<std::string, ValueInfo, std::less<>> types;  ///< Of variables, without sizes.
  std::map<int32_t, std::vector<std::string>> heads;    ///< By the id of the loop's block.
};

/// A copy of `function`, whose blocks have ids from *next_block_id on. Error: a call by a name
/// that only the run tells (kInvalidArgument, with its place).
Result<SingleAssignment> InSingleAssignment(const Function& function, const Program& program,
                                            int32_t* next_block_id);

/// What a variable of such a copy is called in the function.
std::string_view NameInFunction(std::string_view variable);

/// Names that the blocks assign, those inside loops and branches included.
std::set<std::string> AssignedIn(const std::vector<Block>& blocks);
/// Names that the blocks read before they assign them.
std::set<std::string> ReadIn(const std::vector<Block>& blocks);

/// The type alone.
ValueInfo TypeOnly(const ValueInfo& info);

/// A block that copies a variable: of a list a step, else a graph.
Block CopyBlock(const std::string& to, const std::string& from, const ValueInfo& type, int32_t id,
                const SourcePosition& position);
/// Adds to `graph` the reading of a variable, or the assignment of one.
NodeId AddRead(Graph* graph, const std::string& name, const ValueInfo& type, const SourcePosition& position);
void AddAssign(Graph* graph, const std::string& name, NodeId value, const SourcePosition& position);

}  // namespace heddle::compiler
