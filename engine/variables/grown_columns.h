// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/values/matrix.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Matrices that X = cbind(X, v) makes wider round by round, as pieces side by side: putting v beside the
/// rows of X would copy all of X each time. Pieces of about the same width are joined, as in a binary
/// counter, so that n columns cost n log n and are log n pieces. Who reads the cells has them put together
/// before.
///
/// A variable that grows says so (Variable::is_growing): its info is right, its value is here.
class GrownColumns {
 public:
  /// Puts a dense piece beside the variable `name` of `frame`, a dense matrix of as many rows. Not of a
  /// variable that is not whole.
  Status Append(VariableTable* frame, const std::string& name, const Matrix& piece);
  bool empty() const { return grown_.empty(); }
  /// Whether `holds` for one of the variables of `frame` that grow.
  bool Any(const VariableTable* frame, const std::function<bool(const std::string& name)>& holds) const;
  /// Gives all variables that grow their value.
  Status Settle();
  /// Forgets all variables, which are gone.
  void Clear() { grown_.clear(); }

 private:
  struct Grown {
    VariableTable* frame;
    std::string name;
    std::vector<Matrix> pieces;
  };
  Grown* Find(const VariableTable* frame, const std::string& name);

  std::vector<Grown> grown_;
};

}  // namespace heddle::engine
