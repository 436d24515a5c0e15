// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.h"

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
};
std::string_view Name(ListOperation operation);  ///< "make", "copy", ...

/// A step of the control program. Every worker interprets the same steps (runtime reference 4.3).
struct Block {
  enum class Kind : uint8_t {
    kBasic,        ///< graph
    kIf,           ///< graph assigns kPredicate; body if true, else otherwise
    kWhile,        ///< graph assigns kPredicate before each round; body
    kFor,          ///< graph assigns kFrom, kTo and (if given) kIncrement once; body; variable counts
    kParallelFor,  ///< as kFor; the iterations are independent
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
  std::string variable;                            ///< Of kFor.
  bool has_increment = false;                      ///< kFor: seq(from, to, increment) rather than from:to.
  std::string function;                            ///< Of kCall: key in Program::functions.
  ListOperation operation = ListOperation::kMake;  ///< Of kList.
  std::vector<std::pair<std::string, std::string>>
      arguments;                     ///< Of kCall and kList: parameter name, variable of the caller.
  std::vector<std::string> results;  ///< Of kCall and kList: variables to bind, in order; "" drops one.
  std::vector<std::string>
      dead_after;  ///< Variables that nothing reads after this block: freed when it ends.
};

struct Parameter {
  std::string name;
  DataType data_type = DataType::kUnknown;
  ValueType value_type = ValueType::kUnknown;
};

struct Function {
  std::string name;  ///< "f", "ns::f" as the main script sees it, or "<file>::f" inside sourced files.
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  std::vector<Block> body;
  SourcePosition position;
};

/// A whole compiled script: control flow around graphs. Plain data; travels as text.
struct Program {
  std::string script;  ///< Name of the main script, for messages.
  std::vector<Block> main;
  std::map<std::string, Function> functions;

  std::string ToText() const;
  static Result<Program> Parse(std::string_view text);
};

}  // namespace heddle
