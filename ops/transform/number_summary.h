// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/value.h"
#include "ops/transform/encoders.h"

// What is known of the numbers of a column, of which a rank has some rows.
namespace heddle::ops {

inline bool HasMean(const ColumnSpec& spec) { return spec.impute == ImputeMethod::kMean; }
/// True where an encoder or the impute method asks for the numbers of all rows.
inline bool NeedsNumbers(const ColumnSpec& spec) { return spec.encoder == Encoder::kBin || HasMean(spec); }

struct NumberSummary {
  bool has_failed = false;  ///< Some cell is no number.
  BinnedRange range;        ///< Of kBin.
  MeanParts mean;           ///< Of kMean.

  /// Those of other rows of the column, in any order.
  void Append(const NumberSummary& next);
};

/// The summaries of all columns that need one, of one rank as a row, which travels. The rows of all ranks are
/// a matrix. A row also tells how many samples its rank has.
Result<Value> SummaryRow(const TransformSpec& spec, const std::vector<NumberSummary>& columns,
                         int64_t samples);
int64_t SamplesOf(const Matrix& rows, int64_t rank);
std::vector<NumberSummary> SummariesOf(const TransformSpec& spec, const Matrix& rows, int64_t rank);
/// Those of all ranks together.
std::vector<NumberSummary> SummariesOfAll(const TransformSpec& spec, const Matrix& rows);

}  // namespace heddle::ops
