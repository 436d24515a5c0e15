// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/values/matrix.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Matrices that a loop makes wider, X = cbind(X, v), as pieces that stand side by side: one matrix would be
/// copied whole for each v. Pieces of about the same width are joined, as the digits of a binary counter are,
/// so that n columns are at most log n pieces and are copied log n times. Before anybody reads cells of X the
/// pieces are joined to one matrix (Settle).
///
/// Meanwhile Variable::is_growing is true: its info is that of all columns, and its value is empty.
class GrownColumns {
 public:
  /// Adds a dense piece at the right of the variable `name` of `frame`, a dense matrix of as many rows, which
  /// is whole on this rank.
  Status Append(VariableTable* frame, const std::string& name, const Matrix& piece);
  bool empty() const { return grown_.empty(); }
  /// Whether `holds` is true for the name of one of the variables of `frame` that grow.
  bool Any(const VariableTable* frame, const std::function<bool(const std::string& name)>& holds) const;
  /// Joins the pieces: all variables have their values again.
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
