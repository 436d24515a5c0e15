// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/frame.h"
#include "ops/reduction/exact_sum.h"
#include "ops/text/java_hash_map.h"
#include "ops/transform/distinct_cells.h"
#include "ops/transform/metadata.h"
#include "ops/transform/spec.h"
#include "ops/transform/words.h"

// Encoders, one file each: what they learn of a column (Fit...), and the numbers that they make of its cells.
// Errors are kFailedPrecondition, for texts where numbers must be.
namespace heddle::ops {

/// A column of a frame while it is encoded.
struct ColumnInput {
  std::string_view op;  ///< Reports the errors.
  std::string name;
  const Column& cells;
  const ColumnSpec& spec;
  const DistinctCells* distinct = nullptr;  ///< Where NeedsDistinct.
  const CellWords* words = nullptr;         ///< Of kBagOfWords.

  /// True where the encoder or the impute method asks for the distinct cells.
  static bool NeedsDistinct(const ColumnSpec& spec);
  /// Empty texts are missing.
  bool IsMissing(int64_t row) const;
  /// True where impute replaces the cell: missing ones, and by mode and constant NaN in columns of numbers.
  bool IsReplaced(int64_t row) const;
};

/// Distinct tokens in order of appearance; a constant of impute that is none of them comes last.
void FitTokens(const ColumnInput& input, ColumnMetadata* metadata);
/// Distinct words in order of appearance; those of a constant of impute that are new come last.
void FitWords(const ColumnInput& input, ColumnMetadata* metadata);
/// What FitTokens and FitWords put behind the tokens of the cells.
void AddConstant(const ColumnSpec& spec, ColumnMetadata* metadata);
/// Equal width: bin i of k is [min + i (max - min) / k, min + (i + 1) (max - min) / k], one bin where min is
/// max. Equal height: the upper bound of bin i, counted from 1, is the value at rank ceil(i n / k). Missing
/// cells count as 0, NaN do not count.
Status FitBins(const ColumnInput& input, ColumnMetadata* metadata);
/// The numbers that count, in the order of the rows, -0.0 as 0.0.
Result<std::vector<double>> BinnedNumbers(const ColumnInput& input);
/// What FitBins makes of their number, the least and the largest of them, and of those at the places
/// HeightPlaces(). `op` and `name` report that there are none.
struct BinnedRange {
  int64_t count = 0;
  double low = 0, high = 0;
};
Status SetBins(std::string_view op, std::string_view name, const ColumnSpec& spec, const BinnedRange& range,
               std::span<const double> at_places, ColumnMetadata* metadata);
/// Places among `count` numbers in ascending order, from 0; none of equal width.
std::vector<int64_t> HeightPlaces(const ColumnSpec& spec, int64_t count);

/// The mean, of an exact sum; the most frequent cell, of several the one that a HashMap of Java gives first.
Status FitImpute(const ColumnInput& input, ColumnMetadata* metadata);
/// What the mean is made of: numbers that are not missing.
struct MeanParts {
  ExactSum sum;
  int64_t count = 0;
};
Result<MeanParts> SumForMean(const ColumnInput& input);
std::string TextOfMean(const MeanParts& parts);
/// How often each distinct cell counts for the mode: those that impute replaces do not.
std::vector<int64_t> CountsForMode(const ColumnInput& input);

/// The cells as numbers, as in as.matrix; missing: NaN, where nothing is imputed.
Status PassThrough(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes);
/// The code of each token; NaN of what is none. Of kWordEmbedding it numbers a row of the embedding.
Status Recode(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes);
/// Equal width: ceil((x - min) / (max - min) k), as SystemDS computes it; equal height: the first bin whose
/// upper bound is not below the cell. Cells beyond the bins are in the first or the last; NaN of NaN.
Status Bin(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes);
/// |h| mod K + 1, h being Java's hashCode() of the cell as its column has it; NaN of missing cells.
Status Hash(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes);

/// The words of each cell that the metadata know, by their codes less one, and how often they occur.
struct WordCounts {
  std::vector<int64_t> offsets;          ///< Of row i: counts [offsets[i], offsets[i + 1]).
  std::vector<CellWords::Count> counts;  ///< Words of a row in ascending order.
};
WordCounts CountWords(const ColumnInput& input, const ColumnMetadata& metadata);

/// The cells as numbers; NaN of missing ones.
Status NumbersOf(const ColumnInput& input, std::span<double> numbers);

}  // namespace heddle::ops
