// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::ops {

/// What Operator::differentiate is given: one node, and the graph in which the adjoints of its inputs are
/// written. The adjoint of a value v is the derivative of the function's first result by v: a matrix of v's
/// size, a scalar where v is one.
///
/// Ids that these functions return are nodes of that graph; types of inputs are known there, sizes are not.
class AdjointCall {
 public:
  virtual ~AdjointCall() = default;

  virtual const Node& node() const = 0;
  virtual const ValueInfo& InfoOf(size_t input) const = 0;
  /// False for inputs that were left out, and for those that depend on nothing that is asked for.
  virtual bool IsWanted(size_t input) const = 0;

  virtual NodeId Input(size_t input) = 0;
  virtual const Scalar* Known(
      size_t input) const = 0;                    ///< Its value, where the script says it; else nullptr.
  virtual NodeId Rows(size_t input) = 0;          ///< Of a matrix; asks for no more of it than its size.
  virtual NodeId Columns(size_t input) = 0;       ///< The same.
  virtual NodeId Computed(size_t index = 0) = 0;  ///< A result.
  /// Of a result; zeros where the rest does not depend on it, as HasAdjoint says.
  virtual NodeId Adjoint(size_t index = 0) = 0;
  virtual bool HasAdjoint(size_t index) const = 0;

  virtual NodeId Literal(Scalar value) = 0;
  virtual NodeId Add(std::string_view op, std::vector<NodeId> inputs,
                     std::vector<std::pair<std::string, Scalar>> attributes = {}) = 0;
  /// The value of a formula as in Operator::adjoints, in which `more` names further nodes.
  virtual NodeId Formula(std::string_view dml,
                         std::initializer_list<std::pair<std::string_view, NodeId>> more = {}) = 0;

  /// Adds to the adjoint of an input.
  virtual void Give(size_t input, NodeId adjoint) = 0;
  /// What has been given to the adjoint of an input, here and by other operators: zeros at first.
  virtual NodeId Given(size_t input) = 0;
  virtual bool IsGiven(size_t input) const = 0;  ///< False: they are zeros.
  /// What Given() has returned is changed to this: of cells that are assigned in place.
  virtual void Replace(size_t input, NodeId given) = 0;
  /// This node cannot be differentiated.
  virtual void Refuse(std::string why) = 0;
};

}  // namespace heddle::ops
