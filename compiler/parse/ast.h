// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "compiler/parse/source_range.h"
#include "core/values/data_type.h"
#include "core/values/scalar.h"

/// The syntax tree of DML (language reference, sections 1.1 to 1.4): plain data, names not resolved, types
/// not known. Parentheses leave no trace. A tree is at most kMaxExpressionHeight high, so recursion over it
/// is safe.
namespace heddle::compiler {

constexpr int32_t kMaxExpressionHeight = 2000;  ///< E.g. terms of one a + b + c + ... chain.
constexpr int32_t kMaxNesting = 500;  ///< Parentheses, brackets, calls and blocks inside each other.

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

/// The variable that is assigned the value of an expression that stands alone (Parse, takes_expressions).
constexpr const char* kExpressionValue = "%value";

/// One dimension of an index.
struct IndexRange {
  enum class Kind : uint8_t {
    kAll,     ///< nothing written: X[, j]
    kSingle,  ///< from
    kRange,   ///< from:to, both given
  };
  Kind kind = Kind::kAll;
  ExpressionPointer from;
  ExpressionPointer to;
};

/// What stands in the brackets of name[...] or (value)[...].
struct Index {
  bool has_comma = false;  ///< X[i,] and X[i,j]; false for X[i] and l["name"], where only `rows` is given.
  IndexRange rows;
  IndexRange columns;
  SourceRange range;  ///< From "[" to "]".
};

/// An argument of a call.
struct Argument {
  std::string name;        ///< "" when positional.
  SourceRange name_range;  ///< Of the name; unset when positional.
  ExpressionPointer value;
};

struct Expression {
  enum class Kind : uint8_t {
    kLiteral,       ///< literal. -5 is one literal
    kIdentifier,    ///< name: a variable, or one of the constants pi, Inf, NaN
    kIndexed,       ///< name, index
    kIndexedValue,  ///< operands[0], index: what is indexed is no variable, as in f(X)[1,]
    kParameter,     ///< name without the $: $name or $1
    kBinary,        ///< name is the operator as in Graph ("+", "%*%", "&", ...); operands[0], operands[1]
    kUnary,         ///< name is "-", "+" or "!"; operands[0]. -e means e * -1, +e means e * 1
    kCall,          ///< name_space, name, arguments
    kList,          ///< operands of [e1, e2, ...]: legal only as the argument of some builtins
  };

  Kind kind = Kind::kLiteral;
  int32_t height = 1;      ///< 1 + height of the highest expression inside.
  SourceRange range;       ///< The whole expression.
  SourceRange name_range;  ///< The name; of kBinary and kUnary the operator.
  Scalar literal;
  std::string name_space;  ///< "ns" of ns::f(...), else "".
  std::string name;
  std::vector<ExpressionPointer> operands;
  std::unique_ptr<Index> index;
  std::vector<Argument> arguments;
};

/// Left side of an assignment: name or name[index].
struct Target {
  std::string name;
  std::unique_ptr<Index> index;  ///< Null for a plain name.
  SourceRange range;
};

/// name=value in the header of a parfor. The value is raw text, not evaluated; "$x" means the script's
/// argument x.
struct ParallelForOption {
  std::string name;
  std::string text;
  SourceRange name_range;
  SourceRange text_range;
};

struct Statement {
  enum class Kind : uint8_t {
    kAssign,        ///< targets[0] = value
    kMultiAssign,   ///< [targets...] = value, which is a kCall
    kAccumulate,    ///< targets[0] += value
    kCall,          ///< value (a kCall) without a target: print, stop, assert, write and DML functions
    kIfdef,         ///< targets[0] = ifdef($name, value)
    kIf,            ///< if (value) body else otherwise
    kWhile,         ///< while (value) body
    kFor,           ///< for (name in from:to) or for (name in seq(from, to [, increment])): body
    kParallelFor,   ///< as kFor, with options
    kSource,        ///< source("path") as name: no effect at run time, see ScriptFile::imports
    kSetDirectory,  ///< setwd("path"): no effect at run time, only on the imports after it
  };

  Kind kind = Kind::kAssign;
  SourceRange range;       ///< The whole statement, without ";".
  SourceRange name_range;  ///< Of `name`.
  std::vector<Target> targets;
  ExpressionPointer value;
  std::string name;  ///< kIfdef: the parameter without $; kFor: the loop variable; kSource: the namespace.
  std::string path;  ///< kSource, kSetDirectory.
  ExpressionPointer from;
  ExpressionPointer to;
  ExpressionPointer increment;  ///< Null unless seq(from, to, increment).
  bool is_sequence = false;  ///< kFor: written as seq(...), which never counts down by itself; from:to does.
  std::vector<ParallelForOption> options;
  std::vector<Statement> body;
  std::vector<Statement> otherwise;
};

/// A typed parameter or result of a function.
struct ParameterDefinition {
  DataType data_type = DataType::kUnknown;     ///< kScalar when only a value type is written.
  ValueType value_type = ValueType::kUnknown;  ///< kUnknown for "unknown".
  std::string name;
  ExpressionPointer default_value;  ///< Null when there is none; always null for results.
  SourceRange range;
  SourceRange name_range;
};

struct FunctionDefinition {
  std::string name;
  std::vector<ParameterDefinition> parameters;
  std::vector<ParameterDefinition> results;
  std::vector<Statement> body;
  SourceRange range;
  SourceRange name_range;
};

/// source("path") as name_space, in the order of the text (also those inside blocks and functions).
struct Import {
  std::string path;       ///< As written.
  std::string directory;  ///< Of the last setwd() before it; "" for the working directory.
  std::string name_space;
  SourceRange range;
  int32_t file = -1;  ///< Index in ScriptSet::files once loaded.
};

/// One parsed file. Functions are in textual order and may be used before they are defined.
struct ScriptFile {
  std::string path;  ///< As shown in messages.
  std::string text;
  std::vector<Statement> statements;  ///< Of the top level; only the main script's are run.
  std::vector<FunctionDefinition> functions;
  std::vector<Import> imports;
  bool is_library = false;  ///< Found in a folder of the library, or loaded for a call of its function.
  bool has_errors = false;  ///< Could not be read or parsed, and that was reported.
};

/// The main script, files[0], and all files that it needs, each once. Made by a ScriptLoader, which adds
/// files of the library when they are called; what is here already keeps its place.
struct ScriptSet {
  std::deque<ScriptFile> files;
};

}  // namespace heddle::compiler
