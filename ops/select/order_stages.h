// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"
#include "ops/cells/row_order.h"

namespace heddle::ops {

/// What a call of order() asks for.
struct OrderRequest {
  RowOrder order;
  bool gives_numbers = false;  ///< The numbers of the rows, not the rows.
};

/// Of a call whose target has that shape. kFailedPrecondition for what is none of its columns.
Result<OrderRequest> RequestOfOrder(const KernelCall& call, const Shape& target);

/// For each of the rows in their order its keys, and its number, counted from 1, where X has `rows_before`
/// others in front of it. Without columns in `order` the numbers alone.
Result<Matrix> NumberedKeys(const Matrix& x, const RowOrder& order, const std::vector<KeyedRow>& rows,
                            int64_t rows_before);

/// order() of rows that lie on several ranks. Each sorts its own; from samples all find where the result is
/// cut (ops/cells/global_places.h); each row goes to the rank that has its place of the result, which merges.
extern const StagedForm kOrderStages;

}  // namespace heddle::ops
