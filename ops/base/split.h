// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "ops/base/operator.h"

// Which operators all ranks compute together (docs/distribution.md). Placement decides by it, and the cost
// model of fusion foresees what placement decides.
namespace heddle::ops {

/// An input that an operator reads row by row.
struct RowsInput {
  ValueInfo info;
  bool split = false;  ///< Every rank has its own rows of it already.
};

/// Whether every rank computes its own rows of an operator with these inputs and this result: if an input is
/// split or worth splitting, and where rows of the result come from rows of the inputs (or of nothing), if
/// the result is (an outer product of two vectors). Worth splitting: as many bytes as `min_distributed_bytes`
/// when dense, whatever its format, and more rows than one granule (else one rank would get everything).
bool IsSplit(RowRule rule, std::span<const RowsInput> inputs, const ValueInfo& result,
             int64_t min_distributed_bytes);

/// How the ranks share out an operator.
enum class Sharing : uint8_t {
  kNone,       ///< Not: one computes it, or each for itself.
  kRowRule,    ///< By Operator::row_rule.
  kStages,     ///< By Operator::staged.
  kMovedRows,  ///< rbind: each fetches its rows of the result.
};

/// `is_split(i)`: whether the ranks have input i by rows already.
Sharing SharingOf(const Node& node, std::span<const ValueInfo> inputs,
                  const std::function<bool(size_t i)>& is_split, int64_t min_distributed_bytes);

}  // namespace heddle::ops
