// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"

// Parts of an operator's description (ops/base/operator.h) that only some folders ask for: how scripts call
// it, what rewrites and fusion may do with it. All are plain data.
namespace heddle::ops {

/// How a call in a script becomes this operator.
enum class CallForm : uint8_t {
  kNone,        ///< Scripts cannot call it: it is written between its operands, or the compiler forms it.
  kPositional,  ///< Arguments go by position; their names only count when all are named.
  kNamed,       ///< Positional arguments come first, the others by name.
  kVariadic,    ///< Any number of inputs, behind the attributes.
  // The rest is written by hand in compiler/build/builtin_calls.cc and builtin_statements.cc.
  kMinMax,  ///< One argument: this operator; several: Operator::overload between them.
  kOuter,
  kSame,      ///< Its argument.
  kQuantize,  ///< floor(X * s).
  kTable,
  kMatrix,
  kRand,
  kSample,
  kRead,
  kPrint,
  kStop,
  kAssert,
  kWrite,  ///< Statements without a result.
};

/// What the rewrites of the compiler take an operator for.
enum class OperatorKind : uint8_t {
  kOther,
  kCells,      ///< Each cell of the result from the same cells of the operands, vectors and scalars repeated.
  kAggregate,  ///< Operator::aggregate says which.
  kProduct,    ///< %*% and t%*%.
  kTranspose,
};

/// Which operator this is, for code that treats one operator unlike all others: it asks for the role and
/// never for the name. At most one operator has a role; most have none.
enum class Role : uint8_t {
  kNone,
  kProduct,            ///< X %*% Y
  kTransposedProduct,  ///< t(X) %*% Y without the transposed X
  kSampledProduct,     ///< U %*% t(V) at the non-zeros of W
  kTranspose,          ///< t(X)
  kRange,              ///< X[a:b, c:d]
  kRangeAssign,        ///< X[a:b, c:d] = Y
  kCbind,
  kRbind,
  kReshape,      ///< matrix(X, rows, columns), of a number or of the cells of X
  kAsMatrix,     ///< as.matrix
  kAsScalar,     ///< as.scalar
  kAsDouble,     ///< as.double
  kAsInteger,    ///< as.integer
  kAsLogical,    ///< as.logical
  kAsDeclared,   ///< What is passed to a parameter, as a number of the type that the parameter declares.
  kChoose,       ///< ifelse(C, A, B)
  kReplace,      ///< replace(X, pattern, replacement)
  kReplaceText,  ///< The same in the texts of a frame.
  kCompareFrames,
  kSumTo,     ///< Adds up what broadcasting has repeated.
  kSpreadTo,  ///< Repeats what an aggregate has added up.
  kRandom,    ///< rand(...)
  kSequence,  ///< seq(from, to, step)
  kBiasAdd,
  kBiasMultiply,
  kBatchNorm,
  kRead,
  kWrite,
  kPrint,
  kStop,
  kAssert,
};

/// What an operator does to the rows that a fused operator walks.
enum class RowUse : uint8_t {
  kNone,               ///< It never is part of a fused operator.
  kCells,              ///< Cell by cell, vectors and scalars repeated.
  kFullAggregate,      ///< All cells to a scalar.
  kRowAggregate,       ///< Each row to a cell.
  kColumnAggregate,    ///< Each column to a cell.
  kProduct,            ///< X %*% B: rows of X, B whole.
  kTransposedProduct,  ///< t(X) %*% Y: rows of X and Y.
  kColumnRange,        ///< X[, a:b]
  kCbind,
  kSampledProduct,  ///< U %*% t(V) at the non-zeros of X; inputs X, U, V.
};

/// What the predicates of the fusion templates and the cost model know about an operator.
struct FusionTraits {
  RowUse use = RowUse::kNone;
  bool cell = false;   ///< The Cell template may hold it.
  bool row = false;    ///< The Row template may hold it.
  bool outer = false;  ///< The Outer template may hold it.
  /// The measured time of a cell in units of Cost::work, in vector code, between those of AVX-512 and AVX2
  /// (docs/fusion.md, section 2). Per cell of the result, of aggregates per cell of the input, of products
  /// per multiply-add.
  double work = 1;
  bool alone = false;      ///< An operator of its own may be made of it alone.
  int literal_input = -1;  ///< This input must be a literal.
};

/// What is known of the operands of a cell-wise operator at one cell of its result.
struct CellOperands {
  const std::function<bool(size_t i)>& absent;  ///< Operand i has the result's shape and no entry there.
  const std::function<const Node&(size_t i)>& operand;  ///< The node that makes operand i.
};

/// One name in Operator::parameters.
struct OperatorParameter {
  std::string_view name;
  bool optional = false;
  bool attribute = false;
  int length = 0;  ///< Above 0: written as a list of so many scalars, [n, c, h, w], an input each.
  int inputs() const { return attribute ? 0 : length > 0 ? length : 1; }
};

/// "target by? @margin shape[4]" taken apart: "?" may be left out, "@" is an attribute of the node, fixed by
/// the text of the script, "[4]" a list of four scalars (at most nine).
std::vector<OperatorParameter> ParseParameters(std::string_view parameters);

}  // namespace heddle::ops
