// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/programs/graph.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// The variables of the open calls, those of the innermost last.
using OpenFrames = std::vector<std::unique_ptr<VariableTable>>;

/// What a plan of `graph`, which reads variables of `frame`, finds in use on one of `ranks` ranks, in bytes:
/// the matrices and frames of `frame`, and of `around`, that the graph does not read and that are not panels;
/// in multiples of `least`.
///
/// Names of one value count once. Several ranks go by types, sizes and distributions alone, so that all have
/// the same number: there values that are alike in these count once, and elements of lists are left out.
int64_t BytesBeside(const Graph& graph, const VariableTable& frame, const OpenFrames* around, int32_t ranks,
                    int64_t least);

/// How bytes beside a plan are counted: less than `least` as nothing, and what is more as the next multiple
/// of it, so that small changes make no other plan.
int64_t InMultiplesOf(int64_t least, int64_t bytes);

}  // namespace heddle::engine
