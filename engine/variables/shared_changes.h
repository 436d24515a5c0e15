// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "engine/variables/variables.h"

// Changes of frames and lists that the iterations of a parfor made on one rank, as a value that the other
// ranks receive and apply. (Changes of matrices are matrices: merge_cells.h.)
namespace heddle::engine {

/// Calls `visit` for each scalar, matrix and frame in a variable: itself, or the elements of a list, and of
/// the lists in it, in order.
void ForEachValue(const Variable& variable, const std::function<void(const Variable&)>& visit);
/// The same variable, each of these replaced by what `map` makes of it.
Variable WithValues(const Variable& variable, const std::function<Variable(const Variable&)>& map);

/// The changes that made `after` of `before`, both of them whole, as a list to be sent: of a frame a list of
/// column, rows and cells for each column that has changed cells; of a list one of position, name and value
/// for each element that is another one. Errors of ChangedCells, and those of lists too deep.
Result<Variable> ChangesOf(const Variable& before, const Variable& after);
/// `before` with such changes of several ranks, of other cells or elements each. Elements that a list gets
/// are held by every rank. kInternal for places that `before` does not have.
Result<Variable> WithChanges(const Variable& before, std::span<const Variable> changes);

}  // namespace heddle::engine
