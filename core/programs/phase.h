// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// Which part of the work of its node a task does. The first four are the operator's own
/// (ops/base/operator.h), the others move values between ranks and kernels know nothing of them
/// (scheduler/README.md).
enum class Phase : uint8_t {
  kWhole,    ///< The operator, all of it.
  kPartial,  ///< Of a reduction: rows to a list of tree nodes.
  kFinish,   ///< Of a reduction: the nodes of all ranks to the result.
  kStage,    ///< Of an operator that all ranks compute together: one of its stages (ops/base/stages.h).
  kSlice,    ///< Rows of the input.
  kGather,   ///< The rows of all inputs, one below the other.
  kShape,    ///< Rows and columns of the input.
  kReady,    ///< Nothing: says that its rank is so far.
  kPanels,  ///< The rows of all acts, or those that the operator makes, as panels (core/values/row_panels.h).
  kTransfer,  ///< The input in the memory of another device: of the task's, or of the host (plans with
              ///< devices).
};
/// As plans and statistics spell it: "partial"; empty for kWhole.
std::string_view Name(Phase phase);

}  // namespace heddle
