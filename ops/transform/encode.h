// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "core/values/matrix.h"
#include "ops/base/stages.h"
#include "ops/frame/part_failures.h"
#include "ops/transform/assemble.h"
#include "ops/transform/encoders.h"
#include "ops/transform/metadata.h"
#include "ops/transform/spec.h"

// What transformencode and transformapply do of a frame, or of some of its rows.
namespace heddle::ops {

enum EncodeInput { kTarget, kSpec };  // Of transformencode.

/// kInvalidArgument for what only the other operator can do, or the compiler has to.
Status CheckEncoders(const Node& node, const TransformSpec& spec, bool has_embedding);

/// Column j of a frame as encoders read it; must not be moved.
class EncodedColumn {
 public:
  EncodedColumn(std::string_view op, const Frame& frame, const ColumnSpec& spec, int64_t j);
  EncodedColumn(const EncodedColumn&) = delete;
  EncodedColumn& operator=(const EncodedColumn&) = delete;
  /// Finds the distinct cells and words that the encoder asks for.
  Status Find(const std::atomic<bool>* cancelled);
  /// Those that somebody has found before, and back.
  void SetDistinct(DistinctCells distinct) { distinct_ = std::move(distinct); }
  DistinctCells TakeDistinct() && { return std::move(distinct_); }
  const ColumnInput& input() const { return input_; }

 private:
  Column cells_;
  DistinctCells distinct_;
  CellWords words_;
  ColumnInput input_;
};

/// What is known of columns before they are encoded, by their places.
struct KnownColumns {
  std::vector<char> skipped;            ///< 1: the column is left out, and then there is no result.
  std::vector<DistinctCells> distinct;  ///< Empty of those that nobody has looked at.
};

/// The rows of the result that the rows of the call's target make by these metadata.
struct EncodedRows {
  Value matrix;                       ///< A frame without cells where some column failed or was left out.
  std::vector<PartFailure> failures;  ///< By columns; of one first the cells that are no numbers.
};
Result<EncodedRows> EncodeRows(const KernelCall& call, const TransformSpec& spec, KnownColumns known,
                               Format format, std::vector<ColumnMetadata>* metadata);

/// transformencode of a frame whose rows are on several ranks.
extern const StagedForm kEncodeStages;

}  // namespace heddle::ops
