// SPDX-License-Identifier: Apache-2.0
// Rows that are made when they are read, which may be after the run.
#include <string>
#include <utility>
#include <vector>

#include "actor/task_body.h"
#include "ops/base/operator.h"
#include "ops/panels/panel_store.h"

namespace heddle::actor {

Result<Value> KernelBody::MakeLazy(const Prepared& prepared, std::span<const Value* const> inputs) const {
  const Task& task = *prepared.task;
  if (context_.panels == nullptr || prepared.node == nullptr)
    return Internal("task {} has nowhere to keep panels", task.id.index());
  std::vector<Value> values;
  std::vector<bool> is_given;
  for (const Value* const input : inputs) {
    values.push_back(input == nullptr ? Value() : *input);
    is_given.push_back(input != nullptr);
  }
  ops::RowOrigin origin;
  if (prepared.op != nullptr && prepared.op->row_origin != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(origin, prepared.op->row_origin(*prepared.node, inputs, context_));
  }
  // The plan has the node; the context is that of this run, with its seeds.
  auto make = [plan = plan_, &kernels = kernels_, context = context_, node = prepared.node, op = prepared.op,
               infos = prepared.input_infos, values = std::move(values), is_given = std::move(is_given),
               fingerprint = origin.fingerprint, first = task.row_begin,
               total = task.total_rows](int64_t begin, int64_t end) -> Result<Value> {
    std::vector<const Value*> given;
    for (size_t i = 0; i < values.size(); ++i) given.push_back(is_given[i] ? &values[i] : nullptr);
    ops::KernelContext own = context;
    own.cancelled = context.panels->cancelled();  // Of the run that reads them.
    Value rows;
    const Status status = kernels.Run({.node = *node,
                                       .phase = Phase::kWhole,
                                       .inputs = given,
                                       .input_infos = infos,
                                       .row_begin = first + begin,
                                       .row_end = first + end,
                                       .total_rows = total,
                                       .context = own,
                                       .op = op},
                                      {&rows, 1});
    // Rows of another version of a file are none of this value.
    if (op != nullptr && op->row_origin != nullptr) {
      const Result<ops::RowOrigin> now = op->row_origin(*node, given, own);
      if (now.ok() && now->fingerprint != fingerprint)
        return DataLoss("cannot read '{}': it changed while the script ran", given[0]->scalar().ToText())
            .At(node->position);
    }
    if (!status.ok()) return status.At(node->position);
    return rows;
  };
  const ValueInfo& info = prepared.node->info;
  return Value(context_.panels->Lazy({task.row_end - task.row_begin, info.shape.columns}, info.IsFrame(),
                                     std::move(make), origin.is_costly, std::move(origin.fingerprint)));
}

}  // namespace heddle::actor
