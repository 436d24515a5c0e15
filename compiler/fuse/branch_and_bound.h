// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/select.h"

namespace heddle::compiler::fusion {

/// The cheapest assignment, depth first, from the points of the roots down: what is decided first settles
/// whole operators, so that the bound of a partial plan soon is close to its cost. When time is up, the
/// smallest bound of what was left out is what nobody can beat (result->lower_bound).
///
/// Where all points of a cut set are 1, the cost is a sum of its two sides: the best of the side that is
/// still open is the same whatever the other one is, so it is found once.
void BranchAndBound(PlanCost& cost, const SearchOptions& options, SearchResult* result);

}  // namespace heddle::compiler::fusion
