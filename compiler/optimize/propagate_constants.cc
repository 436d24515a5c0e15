// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/pass.h"
#include "compiler/optimize/static_pass.h"

namespace heddle::compiler {

Status PropagateConstants(Program* program) {
  Diagnostics reported_before;
  LiveInValues values;
  Program copy = *program;  // sizes that are known stay as they are, whatever told them
  PropagateShapes(&copy, &reported_before, &values);
  ForEachBlock(program, [&](Block& block) {
    for (NodeId id = 0; id < block.graph.size(); ++id) {
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
