// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {

/// A reduction as `workers` workers run it: "partial" on the rows of each, the lists joined from the last
/// worker's to the first's, then "finish". Everything is whole for one worker.
inline Value RunPhases(Invocation& call, int64_t rows, int workers) {
  const Result<ValueInfo> inferred = call.Infer();
  EXPECT_TRUE(inferred.ok());
  if (!inferred.ok()) return Value(Scalar(0.0));
  call.node.info = *inferred;
  std::vector<Matrix> lists;
  int64_t count = 0;
  for (int worker = workers - 1; worker >= 0; --worker) {
    const int64_t begin = CutRow(rows, worker, workers), end = CutRow(rows, worker + 1, workers);
    std::vector<Value> pieces(call.inputs.size());
    std::vector<const Value*> pointers;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      pointers.push_back(call.inputs[i] ? &pieces[i] : nullptr);
      if (!call.inputs[i]) continue;
      pieces[i] = *call.inputs[i];
      if (call.op->input_use(call.node, call.infos, static_cast<int>(i)) == InputUse::kRows)
        pieces[i] = Value(call.inputs[i]->matrix().Rows(begin, end));
    }
    const Result<Value> partial = call.op->run({.node = call.node,
                                                .phase = Phase::kPartial,
                                                .inputs = pointers,
                                                .input_infos = call.infos,
                                                .row_begin = begin,
                                                .row_end = end,
                                                .total_rows = rows,
                                                .context = call.context});
    EXPECT_TRUE(partial.ok()) << partial.status().ToString();
    if (!partial.ok()) return Value(Scalar(0.0));
    lists.push_back(partial->matrix());
    count += lists.back().rows();
  }
  Result<Matrix> all = Matrix::Dense(count, lists[0].columns());
  double* out = all->mutable_data();
  for (const Matrix& list : lists) out = std::copy_n(list.data(), list.cells(), out);
  const Value nodes(*std::move(all));
  const Value* const pointer = &nodes;
  Result<Value> result = call.op->run({.node = call.node,
                                       .phase = Phase::kFinish,
                                       .inputs = {&pointer, 1},
                                       .input_infos = call.infos,
                                       .row_begin = 0,
                                       .row_end = rows,
                                       .total_rows = rows,
                                       .context = call.context});
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? *std::move(result) : Value(Scalar(0.0));
}

}  // namespace heddle::ops::testing
