// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/status.h"
#include "ops/recursion/body/recursive_body.h"

namespace heddle::compiler {

/// Makes fused operators of the cell-wise values of a body (BodyValue::fused_operator): values of one stage
/// and width between the same products become one loop over the rows of a batch, which also folds rows,
/// sum(x). `fusion`: the mode of a job's options ("off", "random:SEED", ...). Needs: values in the order of
/// their depths. Keeps: every bit.
Status FuseValues(std::string_view fusion, ops::RecursiveBody* body);

/// Marks products of a child's result with a parameter as computed with the child (BodyValue::with_child):
/// for each node, all nodes of a batch together, instead of for each parent. Only where the body multiplies
/// that result of all its children: then every product is read in a tree, and products are shared where nodes
/// share children.
void MoveProductsToChildren(ops::RecursiveBody* body);

}  // namespace heddle::compiler
