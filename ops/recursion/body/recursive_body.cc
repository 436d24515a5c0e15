// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/recursive_body.h"

namespace heddle::ops {

std::optional<std::vector<ValueInfo>> ResultsOf(const RecursiveBody& body) {
  std::vector<ValueInfo> infos;
  for (const int32_t id : body.results) {
    const ValueInfo& info = body.values[static_cast<size_t>(id)].node.info;
    if (!info.IsScalar() && !(info.IsMatrix() && info.shape.IsKnown())) return std::nullopt;
    infos.push_back(info.IsScalar() ? ValueInfo::OfScalar(ValueType::kDouble) : info);
  }
  return infos;
}

}  // namespace heddle::ops
