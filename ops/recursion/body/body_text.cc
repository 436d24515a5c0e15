// SPDX-License-Identifier: Apache-2.0
// What a body runs, for people.
#include "ops/product/few_rows.h"
#include "ops/recursion/body/body_program.h"

namespace heddle::ops {

using Item = RecursiveBody::Item;
using StepKind = BodyStep::Kind;

std::string BodyProgram::ToText() const {
  const auto of_stage = [&](const std::vector<BodyStep>& steps) {
    int lookups = 0, cells = 0, gathers = 0, moved = 0, products = 0, joined = 0, fused = 0, operators = 0,
        kernels = 0, nodes = 0;
    for (const BodyStep& step : steps) switch (step.kind) {
        case StepKind::kLookup: ++lookups; break;
        case StepKind::kPick:
        case StepKind::kPut: ++cells; break;
        case StepKind::kChildren:
          ++(body_->items[static_cast<size_t>(step.item)].pushed ? moved : gathers);
          break;
        case StepKind::kMultiply:
          ++products;
          joined += step.joined.size() > 1 ? static_cast<int>(step.joined.size()) : 0;
          break;
        case StepKind::kRegion:
          ++fused;
          for (const Item& item : body_->items) operators += item.group == step.item ? 1 : 0;
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
    const std::string form = fmt::format(" (tiles of rows to {} rows, blocks above)", kMostFewRows);
    add(products, "products" + (joined > 0 ? fmt::format(", of {} joined", joined) : "") + form);
    add(nodes, "of matrices of nodes");
    add(fused, fmt::format("fused of {} operators", operators));
    add(kernels, "operators by themselves");
    return text.empty() ? std::string("nothing") : text;
  };
  return fmt::format("ahead: {}; a level: {}", of_stage(ahead_), of_stage(level_));
}

}  // namespace heddle::ops
