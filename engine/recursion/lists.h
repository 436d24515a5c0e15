// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>

#include "compiler/recursion/recognise.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Lists that a recursion reads, as variables that a plan can have (compiler::Recursion::elements). Keeps the
/// matrices of the last lists whose elements nodes look up.
class RecursionLists {
 public:
  explicit RecursionLists(const SessionOptions& options) : options_(options) {}

  /// Sets the variables that stand for elements of the lists in `callee`. False where an element is missing
  /// or no variable of a plan, or those of a list differ in size, are sparse, or are spread over ranks.
  Result<bool> TakeElements(const compiler::Recursion& recursion, VariableTable* callee);

 private:
  struct Stacked {
    std::shared_ptr<ListOf<Variable>> list;  ///< Who changes it has to copy it.
    Variable rows;                           ///< A row of cells for each element.
    int64_t height = 1;                      ///< Rows of an element.
  };
  Result<const Stacked*> StackedOf(const std::shared_ptr<ListOf<Variable>>& list);

  const SessionOptions& options_;
  std::list<Stacked> stacked_;  // The last used first.
};

}  // namespace heddle::engine
