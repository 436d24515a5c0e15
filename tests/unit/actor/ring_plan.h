// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actor/message.h"
#include "tests/simulation/plan_writer.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {

/// Every rank adds its x to a sum that goes around: rank 0 -> 1 -> ... -> 0, `rounds` times; rank 0 keeps it
/// as the variable "sum".
inline std::shared_ptr<const Plan> Ring(uint32_t ranks, int rounds,
                                        const std::string& op_of_last_rank = "add", uint64_t key = 0) {
  PlanWriter writer(static_cast<int32_t>(ranks));
  const NodeId x = AddNode(writer.graph(), "variable", {}, "x");
  std::vector<RegisterId> own;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const size_t task = writer.Add(TaskKind::kSource, rank, kCompute, {});
    writer.task(task).node = x;
    own.push_back(writer.Output(task));
  }
  RegisterId sum = own[0];
  NodeId node = x;
  for (int round = 0; round < rounds; ++round) {
    for (uint32_t step = 1; step <= ranks; ++step) {
      const uint32_t rank = step % ranks;
      const size_t copy = writer.Add(TaskKind::kCopy, rank, kNetwork, {sum});
      writer.task(copy).node = node;
      const RegisterId here = writer.Output(copy);
      node = AddNode(writer.graph(), rank + 1 == ranks ? op_of_last_rank : "add", {x, node});
      const size_t add = writer.Add(TaskKind::kCompute, rank, kCompute, {own[rank], here});
      writer.task(add).node = node;
      sum = writer.Output(add);
    }
  }
  const NodeId assign = AddNode(writer.graph(), "assign", {node}, "sum");
  const size_t sink = writer.Add(TaskKind::kSink, 0, kHost, {sum});
  writer.task(sink).node = assign;
  if (key != 0) writer.SetKey(key);
  return std::make_shared<const Plan>(writer.Finish());
}

/// Rank 1 takes x from rank 0 and keeps it as y; and the message of run 1 by which rank 0 says that x is
/// there.
inline std::pair<std::shared_ptr<const Plan>, Message> OneCopy() {
  PlanWriter writer(2);
  const NodeId x = AddNode(writer.graph(), "variable", {}, "x");
  const NodeId y = AddNode(writer.graph(), "assign", {x}, "y");
  const size_t source = writer.Add(TaskKind::kSource, 0, kCompute, {});
  const RegisterId made = writer.Output(source);
  const size_t copy = writer.Add(TaskKind::kCopy, 1, kNetwork, {made});
  const RegisterId here = writer.Output(copy);
  const size_t sink = writer.Add(TaskKind::kSink, 1, kCompute, {here});
  writer.task(source).node = writer.task(copy).node = x;
  writer.task(sink).node = y;
  const Message ready{.destination = writer.task(copy).id,
                      .source = writer.task(source).id,
                      .run = 1,
                      .register_id = made,
                      .type = MessageType::kReady};
  return {std::make_shared<const Plan>(writer.Finish()), ready};
}

}  // namespace heddle::actor
