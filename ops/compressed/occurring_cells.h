// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/operator.h"

// Which tuples the rows of a compressed matrix have, and how often: what operators need that look at cells as
// a set, in any order.
namespace heddle::ops {

/// CountTuples on all threads. Of all rows the counts stay with the codes (Codes::KeepCounts), and with those
/// of all matrices that share them.
std::vector<int64_t> CountRowsOfTuples(const ColumnGroup& group, int64_t begin, int64_t end);
/// Whether CountRowsOfTuples reads no codes of any group; false where one is uncompressed.
bool KnowsCounts(const Matrix& compressed);

/// A byte for each row: whether it has a cell that is not zero (NaN is not zero).
std::vector<char> RowsWithNonzeros(const Matrix& compressed);
/// The same of columns.
std::vector<char> ColumnsWithNonzeros(const Matrix& compressed);

/// Runs the operator of the call with a column of the distinct cells of its first input in place of it, where
/// that is compressed without uncompressed groups: for operators whose result is a function of the set of all
/// cells. Sizes in `input_infos` stay those of the input.
Result<std::optional<Value>> RunOnOccurringCells(const KernelCall& call);

}  // namespace heddle::ops
