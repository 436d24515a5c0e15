// SPDX-License-Identifier: Apache-2.0
#include "core/programs/frames_of_plan.h"

namespace heddle {

int64_t ColumnsOfFrames(const Plan& plan) {
  int64_t columns = 0;
  const auto add = [&](const ValueInfo& info) {
    if (info.schema != nullptr) columns += info.schema->columns();
  };
  for (const Node& node : plan.graph.nodes)
    for (const ValueInfo& info : ResultsOf(node)) add(info);
  for (const Register& made : plan.registers) add(made.info);
  for (const std::vector<Binding>* const bindings : {&plan.live_in, &plan.live_out})
    for (const Binding& binding : *bindings) add(binding.info);
  return columns;
}

}  // namespace heddle
