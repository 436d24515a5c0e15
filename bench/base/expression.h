// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "core/status.h"
#include "core/values/value.h"
#include "ops/base/parallel.h"
#include "ops/device/device.h"

namespace heddle::bench {

/// A few statements of DML over given values, compiled, fused and run operator by operator in an arena: what
/// one plan costs without the control program around it.
class Expression {
 public:
  /// `results` are expressions for the results, matrices, after the statements of `code`; `inputs` are their
  /// variables, all matrices in doubles or all in floats (then as with --precision single). `fusion` as
  /// --fusion takes it. `for_device`: the plan for UseDevice.
  static Result<Expression> Compile(const std::string& code, const std::vector<std::string>& results,
                                    std::map<std::string, Value> inputs, const std::string& fusion,
                                    ops::Arena* arena, bool for_device = false);
  Expression(Expression&&) noexcept;
  ~Expression();

  /// Runs it, its results in their order; stops the process when an operator fails.
  std::vector<Value> Run();
  /// Lets the device compute the operators from now on that it has a kernel of (docs/devices.md); inputs are
  /// in its memory before a run. The others are the host's, with copies between. The first run compiles.
  Status UseDevice(ops::ComputeDevice& device);
  /// How many operators of the last run the host has computed, after UseDevice.
  int operators_on_host() const;
  /// Milliseconds from the compiled graph to machine code for all of it, before any data are touched.
  double compile_ms() const;
  /// The operators in order: "fused cell sum", "%*%", "phased 3 phases".
  std::string Plan() const;
  /// How many of them are fused or of phases, and how many are not.
  struct Operators {
    int fused = 0, others = 0;
  };
  Operators CountOperators() const;
  /// What the operators of the last run read and wrote, as bytes_moved of -stats counts it.
  int64_t BytesMoved() const;

 private:
  struct State;
  explicit Expression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heddle::bench
