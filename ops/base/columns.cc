// SPDX-License-Identifier: Apache-2.0
#include "ops/base/columns.h"

namespace heddle::ops {

Status RunColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], FindOperator(call.node.op)->run(call.WholeCall()));
  return OkStatus();
}

InputUse ResultColumns(const Node& node, std::span<const ValueInfo> inputs, int i) {
  const ValueInfo& input = inputs[static_cast<size_t>(i)];
  const bool has_them =
      input.IsMatrix() && input.shape.columns > 1 && input.shape.columns == node.info.shape.columns;
  return has_them ? InputUse::kRows : InputUse::kWhole;
}

}  // namespace heddle::ops
