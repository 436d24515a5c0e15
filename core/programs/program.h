// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"

namespace heddle {

/// What a step on a list does. Its arguments are named in the order of the text here; what stands in brackets
/// may be left out.
enum class ListOperation : uint8_t {
  kMake,      ///< A list of all arguments, under the names they have ("": none).
  kCopy,      ///< list
  kSlice,     ///< list[from:to], a list
  kAssign,    ///< list with list[from:to] = value
  kAppend,    ///< list with value behind it
  kRemove,    ///< Two results: list without [from:to], and those.
  kLength,    ///< Number of elements.
  kAsScalar,  ///< The first element of list [from, to: of those elements of it], as a scalar.
  kAsMatrix,  ///< The only element of list [from, to] as a matrix, or a column of its scalars.
  kAsFrame,   ///< The only element of list [from, to] as a frame.
  kAsList,    ///< The only element of list [from, to], a list.
  kCbind,     ///< All elements of list side by side.
  kRbind,     ///< All elements of list below each other.
  kToString,  ///< Text of x [rows, cols, decimal, sparse, sep, linesep].
  kExists,    ///< Whether the variable x has a value.
  kRead,      ///< The list in the folder path.
  kWrite,     ///< No result: writes list into the folder path [options of write()].
  // Of adjoints (compiler/gradient), in lists within lists as well:
  kSum,       ///< list with each element the sum of it and of that of other, as matrices.
  kZeros,     ///< list with each element a matrix of zeros of its size.
  kAppended,  ///< What append() has put behind the others in list, as the list value that it was given.
  kInserted,  ///< Zeros as kZeros of list, but for the elements [from:to], those of the list removed, and all
              ///< others, those of the list rest [rest, removed].
  kRowsOf,    ///< The rows of value below each other, to each element of list as many as it has.
  kColumnsOf,  ///< The same of columns side by side.
};
std::string_view Name(ListOperation operation);  ///< "make", "copy", ...

/// One of the functions that a call may run (Block::candidates).
struct CallCandidate {
  std::string name;  ///< What the text in Block::selector is for this one; "" where there is no selector.
  DataType first_argument = DataType::kUnknown;  ///< What Block::first_argument must be; kUnknown: anything.
  std::string function;                          ///< Key in Program::functions; "" where it cannot be run,
  std::string reason;                            ///< for this reason:
  bool is_wrong = false;  ///< no call of it could be right; else Heddle does not run a part of it yet.
  /// Parameter name, variable of the caller. An only parameter that is "" stands for all: the elements of the
  /// variable if it is a list, else the variable.
  std::vector<std::pair<std::string, std::string>> arguments;

  bool operator==(const CallCandidate&) const = default;
  /// Whether a first argument of this type is one for it.
  bool Takes(DataType argument) const {
    return first_argument == DataType::kUnknown || IsFor(first_argument, argument);
  }
  /// Whether the entry point for a type takes an argument of another: that for a scalar takes a list as well.
  static bool IsFor(DataType entry_point, DataType argument) {
    return entry_point == argument || (entry_point == DataType::kScalar && argument == DataType::kList);
  }
};

/// A step of the control program. Every worker interprets the same steps (runtime reference 4.3).
struct Block {
  enum class Kind : uint8_t {
    kBasic,        ///< graph
    kIf,           ///< graph assigns kPredicate; body if true, else otherwise
    kWhile,        ///< graph assigns kPredicate before each round; body
    kFor,          ///< graph assigns kFrom, kTo and (if given) kIncrement once; body; variable counts
    kParallelFor,  ///< as kFor; the iterations may run in any order
    kCall,  ///< results = function(arguments); arguments are variables that a block before this one assigned
    kList,  ///< results = operation(arguments), arguments as of kCall: a step on lists, which no graph holds
  };
  static constexpr const char* kPredicate = "%predicate";
  static constexpr const char* kFrom = "%from";
  static constexpr const char* kTo = "%to";
  static constexpr const char* kIncrement = "%increment";

  Kind kind = Kind::kBasic;
  int32_t id = 0;  ///< Unique in the program; part of the plan cache's key.
  SourcePosition position;
  Graph graph;
  std::vector<Block> body;
  std::vector<Block> otherwise;
  std::string variable;        ///< Of kFor.
  bool has_increment = false;  ///< kFor: seq(from, to, increment) rather than from:to.
  bool independent = false;    ///< kParallelFor: checked; no iteration reads what another one writes, and of
                               ///< what was there before the loop each writes
  std::vector<std::string> merged;  ///< cells (or elements) of its own of these variables,
  std::vector<std::string> sums;    ///< and adds to these.
  /// What the check took for granted: these variables (its own: in all rounds) hold natural numbers,
  std::vector<std::string> natural;
  std::vector<std::string> upward;  ///< and loops over these in its body count up.
  std::string in_order;  ///< Of kParallelFor: why its iterations run one after the other; "" if independent.
  std::vector<std::string> locals;  ///< Of kParallelFor: what its iterations make, which is gone behind it.
  int32_t most_workers = 0;         ///< Of kParallelFor: iterations at once, at most; 0: as many as may be.
  std::string function;             ///< Of kCall: key in Program::functions; "" with candidates.
  ListOperation operation = ListOperation::kMake;  ///< Of kList.
  std::vector<std::pair<std::string, std::string>>
      arguments;  ///< Of kCall and kList: parameter name, variable of the caller.
  /// Of kCall and kList: variables to bind, in order; "" drops one. Those beyond what a function returns have
  /// no value behind its call.
  std::vector<std::string> results;
  /// Of kCall, when what is called is known only at run time: the first that `selector` and `first_argument`
  /// fit. Then `function` and `arguments` are empty.
  std::vector<CallCandidate> candidates;
  std::string selector;        ///< Variable with the name that a candidate must have; "" for none.
  std::string first_argument;  ///< Variable whose data type chooses among candidates; "" for none.
  bool gives_list = false;     ///< Of kCall: its only result is a list of all that the function returns.
  std::vector<std::string>
      dead_after;  ///< Variables that nothing reads after this block: freed when it ends.
};

struct Parameter {
  std::string name;
  DataType data_type = DataType::kUnknown;
  ValueType value_type = ValueType::kUnknown;
  std::optional<Scalar> default_value;  ///< Where it is a literal: eval() of a list gives it.
};

/// What a function that gradient() has made is for (docs/gradient.md): a call of a recursive function becomes
/// a call of a forward function, and behind it one of a backward function.
struct DerivativeRole {
  enum class Kind : uint8_t {
    kNone,      ///< Written in a script, or called like any other function.
    kForward,   ///< Returns what its function returns, and behind it a list of the values that it saves.
    kBackward,  ///< Takes this list and adjoints of results, and returns adjoints of parameters.
    kRounds,    ///< Takes a list of the arguments of many calls of a backward function, and returns the sums.
  } kind = Kind::kNone;
  /// Key in Program::functions: of kForward the backward function, of kBackward the forward one, of kRounds
  /// the backward one.
  std::string partner;
  /// Of kBackward, by result of the function: the parameter that takes its adjoint; empty where it has none.
  std::vector<std::string> adjoints;
};

struct Function {
  std::string name;  ///< "f", "ns::f" as the main script sees it, or "<file>::f" inside sourced files.
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  std::vector<Block> body;
  SourcePosition position;
  DerivativeRole derivative = {};
};

/// Calls visit(function, arguments) for all that a kCall may run: its function, or those of its candidates
/// that can be run.
template <typename Call, typename Visit>
void ForEachCallee(Call& call, const Visit& visit) {
  if (call.kind != Block::Kind::kCall) return;
  if (call.candidates.empty()) return visit(call.function, call.arguments);
  for (auto& candidate : call.candidates)
    if (!candidate.function.empty()) visit(candidate.function, candidate.arguments);
}

/// Calls visit(arguments) for all lists of (parameter, variable) by which a block reads variables beside its
/// graph: those of a step on lists, or of all that a kCall may run.
template <typename Step, typename Visit>
void ForEachArguments(Step& block, const Visit& visit) {
  if (block.kind == Block::Kind::kList) return visit(block.arguments);
  ForEachCallee(block, [&](const auto&, auto& arguments) { visit(arguments); });
}

/// A variable that the main program finds when it begins.
struct GivenVariable {
  std::string name;
  ValueInfo info;
  std::optional<Scalar> value;  ///< Of a scalar, where it is known.
};

/// A whole compiled script: control flow around graphs. Plain data; travels as text.
struct Program {
  std::string script;  ///< Name of the main script, for messages.
  std::vector<Block> main;
  std::map<std::string, Function> functions;
  /// Of a program that goes on with the variables of another: those it finds,
  std::vector<GivenVariable> given;
  std::vector<std::string> kept;  ///< and those that somebody reads behind its end. A script has neither.

  std::string ToText() const;
  static Result<Program> Parse(std::string_view text);
};

}  // namespace heddle
