// SPDX-License-Identifier: Apache-2.0
// What a body runs, for people.
#include "ops/product/few_rows.h"
#include "ops/recursion/body/body_program.h"

namespace heddle::ops {

using StepKind = BodyStep::Kind;

std::string BodyProgram::ToText() const {
  const auto of_stage = [&](const std::vector<BodyStep>& steps) {
    int lookups = 0, cells = 0, gathers = 0, moved = 0, products = 0, stacked = 0, fused = 0, operators = 0,
        kernels = 0, nodes = 0;
    for (const BodyStep& step : steps) switch (step.kind) {
        case StepKind::kLookup: ++lookups; break;
        case StepKind::kPick:
        case StepKind::kPut: ++cells; break;
        case StepKind::kChildren:
          ++(body_->values[static_cast<size_t>(step.value)].with_child ? moved : gathers);
          break;
        case StepKind::kMultiply:
          ++products;
          stacked += step.stacked.size() > 1 ? static_cast<int>(step.stacked.size()) : 0;
          break;
        case StepKind::kRegion:
          ++fused;
          for (const BodyValue& value : body_->values)
            operators += value.fused_operator == step.value ? 1 : 0;
          break;
        case StepKind::kTranspose:
        case StepKind::kNodeProduct: ++nodes; break;
        case StepKind::kKernel: ++kernels; break;
        case StepKind::kNumbers:
        case StepKind::kView:
        case StepKind::kCopy:
        case StepKind::kConvert: break;
      }
    std::string text;
    const auto add = [&](int count, const std::string& what) {
      if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    };
    add(lookups, "rows looked up");
    add(cells, "cells by a number of the node");
    add(gathers, "results of children");
    add(moved, "products computed with the children");
    const std::string kernels_of_rows =
        fmt::format(" (tiles of rows to {} rows, blocks above)", kMostFewRows);
    add(products, "products" + (stacked > 0 ? fmt::format(", of {} joined", stacked) : "") + kernels_of_rows);
    add(nodes, "of matrices of nodes");
    add(fused, fmt::format("fused of {} operators", operators));
    add(kernels, "operators by themselves");
    return text.empty() ? std::string("nothing") : text;
  };
  return fmt::format("ahead: {}; a level: {}", of_stage(class_steps_), of_stage(batch_steps_));
}

}  // namespace heddle::ops
