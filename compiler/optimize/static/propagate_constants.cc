// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/pass.h"
#include "compiler/optimize/static/static_pass.h"
#include "core/programs/for_each_block.h"

namespace heddle::compiler {

Status PropagateConstants(Program* program) {
  const LiveInValues values = FindLiveInValues(program);
  ForEachBlock(*program, [&](Block& block) {
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      if (!block.graph[id].Is("variable")) continue;
      const auto known = values.find({block.id, id});
      if (known == values.end() || !known->second) continue;
      Node& node = block.graph[id];
      node.op = "literal";
      node.attributes.clear();
      node.SetAttribute("value", *known->second);
      node.info = ValueInfo::OfScalar(known->second->type());
    }
  });
  return OkStatus();
}

}  // namespace heddle::compiler
