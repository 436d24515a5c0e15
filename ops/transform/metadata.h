// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/values/frame.h"
#include "ops/transform/spec.h"

// What an encoder has learned of a column, and its form as a frame of strings, which scripts keep and write
// to files (language reference 3.15).
namespace heddle::ops {

struct ColumnMetadata {
  std::vector<std::string> tokens;     ///< Code i is that of tokens[i - 1].
  std::vector<double> lower, upper;    ///< Of kBin: the bounds of each bin, the upper ones ascending.
  std::optional<std::string> imputed;  ///< The text of the cell that takes the place of missing ones.

  /// The number of codes, 1 to that. Of kWordEmbedding they are the rows of the embedding.
  int64_t Codes(const ColumnSpec& spec) const;
};

/// One column for each of the frame, under its name; as many rows as the longest needs. In each, cells from
/// the first row on, then missing ones:
///
/// tokens:   "token·code" in the order of a HashMap of Java; the last "·" counts.
/// kBin:     "lower·upper" of each bin.
/// kHash:    the number of codes.
/// impute:   "cell·impute", the last.
///
/// kResourceExhausted.
Result<Frame> MetadataFrame(const TransformSpec& spec, const Schema& schema,
                            const std::vector<ColumnMetadata>& columns);

/// The metadata of each column of the spec, whose names are those of `schema`: those of the frame at the same
/// place, or under the same name where the spec names columns. kFailedPrecondition when they are not those of
/// the spec.
Result<std::vector<ColumnMetadata>> ReadMetadataFrame(std::string_view op, const TransformSpec& spec,
                                                      const Schema& schema, const Frame& frame);

/// What a row of the encoded matrix holds of one column of the frame.
enum class EncodedForm : uint8_t {
  kNumber,  ///< The code itself.
  kDummy,   ///< A one at the place of the code.
  kCounts,  ///< At the place of each word, how often it is in the cell.
  kVector,  ///< The row of the embedding that the code numbers.
};

/// Columns of the encoded matrix: those of column j of the frame are [first[j], first[j + 1]).
struct EncodedLayout {
  std::vector<int64_t> first;
  std::vector<EncodedForm> forms;

  /// `embedding_columns`: of the matrix that kWordEmbedding needs; 0 where none is given.
  static Result<EncodedLayout> Of(std::string_view op, const TransformSpec& spec,
                                  const std::vector<ColumnMetadata>& columns, int64_t embedding_columns);
  int64_t columns() const { return first.back(); }
  int64_t WidthOf(size_t j) const { return first[j + 1] - first[j]; }
};

/// The layout that metadata tell of, for operators that have no embedding. kFailedPrecondition where the spec
/// needs one, or when the metadata are not those of the spec.
Result<EncodedLayout> LayoutOf(std::string_view op, const TransformSpec& spec, const Frame& metadata);

}  // namespace heddle::ops
