// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/status.h"

// What the values of a fused operator's body are to its tiles.
namespace heddle::ops {

enum class BodyRole : uint8_t {
  kUnused,
  kScalar,  ///< A scalar, known before the first tile.
  kWhole,   ///< An input needed whole: a row vector, the right operand of a product.
  kRows,    ///< As many rows as the driver: a tile holds some of them.
  kFold,    ///< The aggregate of each row that is longer than a column chunk (long_rows.h).
  kRoot,    ///< A reduction over all rows.
};

struct BodyRoles {
  std::vector<BodyRole> nodes;    ///< By node of the body.
  std::vector<BodyRole> inputs;   ///< By input of the fused node: kScalar, kWhole or kRows.
  std::vector<NodeId> variables;  ///< Body node of each input; kNoNode if unused.
  int64_t rows = 0;               ///< Of the driver.
  bool reduces = false;  ///< Some root is a reduction over all rows; of all templates but the stitch all are,
                         ///< or there is one, of kRows or kFold.
};

/// How the aggregate of a row that is longer than a column chunk is made.
enum class LongRowFolds : uint8_t {
  kInChunks,  ///< When all its chunks have been seen: kFold.
  kWhole,     ///< As that of any row: along the entries of a CSR driver.
};

/// The variable that is the driver; kNoNode if it is not used.
NodeId DriverOf(const FusedOperator& fused);

/// Follows the roots down. kUnimplemented, with the reason, for a body that cannot be run by tiles: then its
/// operators must run one by one.
/// `has_long_products`: whether tiles multiply CSR rows longer than a column chunk by up to eight columns.
Result<BodyRoles> FindRoles(const FusedOperator& fused, LongRowFolds long_rows,
                            bool has_long_products = false);

}  // namespace heddle::ops
