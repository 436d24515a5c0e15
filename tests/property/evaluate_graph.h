// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/programs/graph.h"
#include "core/values/value.h"

namespace heddle::compiler::testing_support {

using Variables = std::map<std::string, Value, std::less<>>;

/// Runs an inferred graph operator by operator on whole values, as an unfused plan of one worker does, and
/// returns what it assigns. Fails the test and returns nothing when an operator fails.
Variables EvaluateGraph(const Graph& graph, const Variables& live_in);

}  // namespace heddle::compiler::testing_support
