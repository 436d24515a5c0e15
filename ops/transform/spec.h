// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/schema.h"

// What a script wants of the transforms: a JSON object (language reference 3.15) as plain data.
namespace heddle::ops {

/// What makes numbers of the cells of a column.
enum class Encoder : uint8_t { kPassThrough, kRecode, kBin, kHash, kWordEmbedding, kBagOfWords };
enum class BinMethod : uint8_t { kEqualWidth, kEqualHeight };
enum class ImputeMethod : uint8_t { kMean, kMode, kConstant };

struct ColumnSpec {
  Encoder encoder = Encoder::kPassThrough;
  bool dummycode = false;  ///< The codes become columns of zeros and ones.
  bool omit = false;       ///< Rows in which the cell is missing are left out.
  bool function = false;   ///< TransformSpec::function makes the encoded columns.
  BinMethod bin_method = BinMethod::kEqualWidth;
  int64_t bins = 1;         ///< Of kBin.
  int64_t hash_values = 0;  ///< Of kHash: codes are 1 to that.
  std::optional<ImputeMethod> impute;
  std::string constant;  ///< Of kConstant: the text of the cell that replaces missing ones.

  /// The metadata list tokens and their codes.
  bool HasTokens() const {
    return encoder == Encoder::kRecode || encoder == Encoder::kWordEmbedding ||
           encoder == Encoder::kBagOfWords;
  }
  /// A cell becomes one number; else as many as there are codes, or as the embedding has columns.
  bool IsOneColumn() const {
    return !dummycode && encoder != Encoder::kWordEmbedding && encoder != Encoder::kBagOfWords;
  }
};

struct TransformSpec {
  std::vector<ColumnSpec> columns;  ///< One for each column of the frame.
  bool by_name = true;              ///< The script names columns, instead of counting them.
  std::string function;             ///< Name of the function of "udf"; empty: none.

  bool HasOmit() const;
  bool HasOneColumnEach() const;
};

/// The spec for a frame of these columns; columns beyond the last are ignored. Keys and names need no quotes.
/// `op` is the function that reports errors: kInvalidArgument.
Result<TransformSpec> ParseTransformSpec(std::string_view op, std::string_view text, const Schema& schema);

/// What is wrong with a spec whatever the columns of the frame.
Status CheckTransformSpec(std::string_view op, std::string_view text);

/// The function that "udf" of a spec names, and how many columns it is for; nullopt where there is none or
/// the text is no spec.
struct ColumnFunction {
  std::string name;
  int64_t columns;
};
std::optional<ColumnFunction> ColumnFunctionOf(std::string_view text);

}  // namespace heddle::ops
