// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema.h"
#include "core/status.h"

// What a script wants of the transforms: a JSON object (language reference 3.15) as plain data.
namespace heddle::ops {

/// What makes numbers of the cells of a column.
enum class Encoder : uint8_t { kPassThrough, kRecode, kBin, kHash };
enum class BinMethod : uint8_t { kEqualWidth, kEqualHeight };
enum class ImputeMethod : uint8_t { kMean, kMode, kConstant };

struct ColumnSpec {
  Encoder encoder = Encoder::kPassThrough;
  bool dummycode = false;  ///< The codes become columns of zeros and ones.
  bool omit = false;       ///< Rows in which the cell is missing are left out.
  BinMethod bin_method = BinMethod::kEqualWidth;
  int64_t bins = 1;         ///< Of kBin.
  int64_t hash_values = 0;  ///< Of kHash: codes are 1 to that.
  std::optional<ImputeMethod> impute;
  std::string constant;  ///< Of kConstant: the text of the cell that replaces missing ones.
};

struct TransformSpec {
  std::vector<ColumnSpec> columns;  ///< One for each column of the frame.
  bool by_name = true;              ///< The script names columns, instead of counting them.

  bool HasDummycode() const;
  bool HasOmit() const;
};

/// The spec for a frame of these columns; columns beyond the last are ignored. Keys and names need no quotes.
/// `op` is the function that reports errors: kInvalidArgument, kUnimplemented for the encoders that need a
/// function or an embedding.
Result<TransformSpec> ParseTransformSpec(std::string_view op, std::string_view text, const Schema& schema);

}  // namespace heddle::ops
