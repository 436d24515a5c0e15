// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/status.h"
#include "ops/recursion/body/recursive_body.h"

namespace heddle::compiler {

/// Puts cell-wise items of a body together to fused operators (RecursiveBody::Item::group): those of one
/// stage and width between the same products, so that one loop over the rows of a batch takes the place of as
/// many operators; and sums of their rows. `fusion`: as of a job's options ("off", "random:SEED", ...). Items
/// come in the order of their depths. Keeps every bit.
Status FuseItems(std::string_view fusion, ops::RecursiveBody* body);

/// Marks products of a child's result alone with a parameter (RecursiveBody::Item::pushed): they are computed
/// once for each node, all nodes of a batch together, instead of once for each parent. Only where the body
/// multiplies that result of all its children: then no product is computed in vain in a tree, and fewer in a
/// graph whose nodes share children.
void PushProductsDown(ops::RecursiveBody* body);

}  // namespace heddle::compiler
