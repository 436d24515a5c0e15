// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "core/status.h"
#include "core/values/value.h"
#include "ops/parallel.h"

namespace heddle::bench {

/// A few statements of DML over given values, compiled, fused and run operator by operator in an arena: what
/// one plan costs without the control program around it.
class Expression {
 public:
  /// `result` is an expression for the result, a matrix, after the statements of `code`; `inputs` are their
  /// variables. `fusion` as --fusion takes it.
  static Result<Expression> Compile(const std::string& code, const std::string& result,
                                    std::map<std::string, Value> inputs, const std::string& fusion,
                                    ops::Arena* arena);
  Expression(Expression&&) noexcept;
  ~Expression();

  /// Runs it; stops the process when an operator fails.
  Value Run();
  /// Milliseconds from the compiled graph to machine code for all of it, before any data are touched.
  double compile_ms() const;
  /// The operators in order: "fused cell sum", "%*%".
  std::string Plan() const;

 private:
  struct State;
  explicit Expression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heddle::bench
