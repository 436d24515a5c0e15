// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "ops/base/operator.h"
#include "ops/base/stages.h"

// Which operators all ranks compute together (docs/distribution.md). Placement decides by it, and the cost
// model of fusion foresees what placement decides.
namespace heddle::ops {

/// About how many bytes a value has; of one whose size is not known, those of a scalar. How many entries a
/// CSR matrix has is no part of what a plan knows: a tenth of its cells.
double BytesToMove(const ValueInfo& info);

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

/// Whether a matrix is worth splitting by columns: as many bytes when dense, more columns than rows and more
/// than one granule of them.
bool IsWide(const ValueInfo& info, int64_t min_distributed_bytes);

/// How the ranks share out an operator.
enum class Sharing : uint8_t {
  kNone,       ///< Not: one computes it, or each for itself.
  kRowRule,    ///< By Operator::row_rule.
  kStages,     ///< By Operator::staged; of one that has a row rule, too, the result is made on the last rank.
  kMovedRows,  ///< rbind: each fetches its rows of the result.
};

/// `is_split(i)`: whether the ranks have input i by rows already.
Sharing SharingOf(const Node& node, std::span<const ValueInfo> inputs,
                  const std::function<bool(size_t i)>& is_split, int64_t min_distributed_bytes);

/// A way in which ranks can compute an operator in stages.
struct StagedWay {
  RankGrid grid;
  double cost = 0;        ///< In any unit, the same of all ways that are compared.
  double held_bytes = 0;  ///< By a rank at once.
};
/// Whether `way` is to be taken in place of `other`: it costs less, of ways for which a rank has memory
/// (`most_held` bytes); such a way before any other; of others the one that holds less.
bool IsBetter(const StagedWay& way, const StagedWay& other, double most_held);
/// The best of the grids on which ranks can compute a form in this call, of equal ones that with most
/// columns; `cost_of` says what one costs. A form that uses no grid has one column.
StagedWay BestGrid(const StagedForm& form, const Node& node, std::span<const ValueInfo> inputs, int32_t ranks,
                   double most_held, const std::function<double(const RankGrid& grid)>& cost_of);

/// About the bytes that a rank holds of the inputs and results of an operator that its row rule shares out:
/// its own rows, and all of the inputs that it does not read by rows.
double HeldByRowRule(const Node& node, std::span<const ValueInfo> inputs, int ranks);

/// How many of them it may hold where there is another way: the memory of a rank where that is known (not 0).
/// Else three times what it has when all of them are shared out evenly, so that more ranks can always hold
/// more; and `min_distributed_bytes` in any case.
double MostHeldBytes(double all_bytes, int ranks, int64_t min_distributed_bytes, int64_t memory_bytes);
double MostHeldBytes(const Node& node, std::span<const ValueInfo> inputs, int ranks,
                     int64_t min_distributed_bytes, int64_t memory_bytes);

}  // namespace heddle::ops
