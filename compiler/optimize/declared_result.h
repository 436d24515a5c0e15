// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/program.h"

namespace heddle::compiler {

/// What is wrong when a call binds this result, which is declared as a matrix, and its value is a scalar:
/// where it is certain, the compiler says so, else the run. (Scalar results: ops/scalar/declared_type.h.)
inline Status ScalarForMatrix(const Function& function, const Parameter& result) {
  return FailedPrecondition("function '{}': result '{}' is declared as a matrix, but its value is a scalar",
                            function.name, result.name)
      .WithNote("as.matrix(x) makes a 1x1 matrix of a scalar");
}

}  // namespace heddle::compiler
