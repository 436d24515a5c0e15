// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/operator.h"

// The members of the family in ops/select/select.cc that have files of their own.
namespace heddle::ops {

/// table(A, B, W, d1, d2): contingency table, ops/select/table.cc.
extern const Operator kTableOperator;
/// table_backward(A, B, W, dF): the adjoint of its weights, ops/select/table.cc.
extern const Operator kTableBackwardOperator;
/// removeEmpty(target, select, margin, empty.return): ops/select/remove_empty.cc.
extern const Operator kRemoveEmptyOperator;
/// order(target, by, decreasing, index.return): stable sort of rows, ops/select/order.cc.
extern const Operator kOrderOperator;

}  // namespace heddle::ops
