// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/text/double_text.h"
#include "ops/base/arguments.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/transform/arguments.h"
#include "ops/transform/assemble.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kMeta, kSpec };

// Codes of a hash name nothing: they stay what they are, of dummies as texts.
bool DecodesToTexts(const ColumnSpec& column) {
  return column.encoder == Encoder::kRecode || column.encoder == Encoder::kBin || column.dummycode;
}

Schema DecodedSchema(const TransformSpec& spec, const Schema& metadata) {
  Schema schema = metadata;
  for (size_t j = 0; j < spec.columns.size(); ++j)
    schema.types[j] = DecodesToTexts(spec.columns[j]) ? ColumnType::kString : ColumnType::kFloat64;
  return schema;
}

Status CheckDecodable(const TransformSpec& spec, const Schema& schema) {
  for (size_t j = 0; j < spec.columns.size(); ++j) {
    const ColumnSpec& one = spec.columns[j];
    if (one.IsOneColumn() || one.dummycode) continue;
    return InvalidArgument("transformdecode: column {} cannot be decoded, it has '{}'",
                           schema.NameOf(static_cast<int64_t>(j)),
                           one.encoder == Encoder::kBagOfWords ? "bag_of_words" : "word_embedding");
  }
  return OkStatus();
}

Result<ValueInfo> InferDecode(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kTarget, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kMeta, "meta"));
  const std::shared_ptr<const Schema>& metadata = context.inputs[kMeta].schema;
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec, InferSpec(context, kSpec, metadata));
  const int64_t rows = context.inputs[kTarget].shape.rows;
  if (!spec) return ValueInfo::OfFrame(rows, nullptr);
  HEDDLE_RETURN_IF_ERROR(CheckDecodable(*spec, *metadata));
  return ValueInfo::OfFrame(rows, std::make_shared<const Schema>(DecodedSchema(*spec, *metadata)));
}

// The number of a code without fraction from 0; nullopt where it is none of `count`.
std::optional<size_t> NumberOf(double whole, size_t count) {
  if (!(whole >= 1 && whole <= static_cast<double>(count))) return std::nullopt;
  return static_cast<size_t>(whole) - 1;
}

// Codes between two whole numbers are places within the bin: 1.5 is its upper bound. nullopt where the code
// names no bin.
std::optional<std::string> TextOfBin(double code, const ColumnMetadata& metadata) {
  if (std::isnan(code)) return "NaN";
  const std::optional<size_t> number = NumberOf(std::floor(code + 0.5), metadata.upper.size());
  if (!number) return std::nullopt;
  const size_t bin = *number;
  const double width = metadata.upper[bin] - metadata.lower[bin];
  return FormatDouble(metadata.lower[bin] + width / 2 + (code - static_cast<double>(bin + 1)) * width);
}

std::optional<std::string> TextOf(double code, const ColumnSpec& spec, const ColumnMetadata& metadata) {
  if (spec.encoder == Encoder::kBin) return TextOfBin(code, metadata);
  // As SystemDS has it, a fraction is cut off.
  const std::optional<size_t> number = NumberOf(std::floor(code), static_cast<size_t>(metadata.Codes(spec)));
  if (!number) return std::nullopt;
  return spec.encoder == Encoder::kRecode ? metadata.tokens[*number] : FormatDouble(code);
}

Result<Column> TextsOf(std::span<const double> codes, const ColumnSpec& spec,
                       const ColumnMetadata& metadata) {
  std::string texts;
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> missing;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (const std::optional<std::string> text = TextOf(codes[i], spec, metadata))
      texts += *text;
    else
      missing.push_back(static_cast<int64_t>(i));
    offsets.push_back(static_cast<int64_t>(texts.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(ColumnType::kString, static_cast<int64_t>(codes.size()),
                                                      static_cast<int64_t>(texts.size()), !missing.empty()));
  std::copy(offsets.begin(), offsets.end(), column.mutable_offsets());
  std::copy(texts.begin(), texts.end(), column.mutable_texts());
  for (const int64_t row : missing) column.mutable_missing()[row] = 1;
  return column;
}

Result<Value> RunDecode(const KernelCall& call) {
  const Matrix& target = call.inputs[kTarget]->matrix();
  const Frame& meta = call.inputs[kMeta]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpec, *meta.schema()));
  Status decodable = CheckDecodable(spec, *meta.schema());
  if (!decodable.ok()) return decodable.WithCode(StatusCode::kFailedPrecondition);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ColumnMetadata> metadata,
                          ReadMetadataFrame(call.node.op, spec, *meta.schema(), meta));
  HEDDLE_ASSIGN_OR_RETURN(const EncodedLayout layout,
                          EncodedLayout::Of(call.node.op, spec, metadata, /*embedding_columns=*/0));
  if (target.columns() != layout.columns())
    return FailedPrecondition("transformdecode: the target has {} columns, the metadata tell of {}",
                              target.columns(), layout.columns())
        .WithNote("target, meta and spec are those of one transformencode");
  HEDDLE_ASSIGN_OR_RETURN(const Matrix codes, CodesOfEncoded(target, layout));
  std::vector<Column> columns;
  for (size_t j = 0; j < spec.columns.size(); ++j) {
    const std::span<const double> row(codes.data() + static_cast<int64_t>(j) * target.rows(),
                                      static_cast<size_t>(target.rows()));
    HEDDLE_ASSIGN_OR_RETURN(Column column, DecodesToTexts(spec.columns[j])
                                               ? TextsOf(row, spec.columns[j], metadata[j])
                                               : Column::OfDoubles(row));
    columns.push_back(std::move(column));
  }
  return Value(
      Frame(std::make_shared<const Schema>(DecodedSchema(spec, *meta.schema())), std::move(columns)));
}

double DecodeWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const double codes = static_cast<double>(inputs[kTarget].shape.rows) *
                       static_cast<double>(std::max<int64_t>(inputs[kMeta].shape.columns, 0));
  return 8 * codes;
}

}  // namespace

/// transformdecode(target=X, meta=M, spec=text): the cells that transformencode made numbers of.
///
/// Shapes:  X is m x p as transformencode makes it, M has n columns, the result m x n: strings of tokens and
///          of the centres of bins ("NaN" of NaN), numbers else. A code that names none is a missing cell;
///          codes of a hash stay, as texts if they were dummies.
/// Errors:  in the spec; metadata that are not those of the spec; X of another width.
/// Cost:    reads X once.
extern constexpr Operator kTransformDecode = {.name = "transformdecode",
                                              .form = CallForm::kNamed,
                                              .parameters = "target meta spec",
                                              .min_inputs = 3,
                                              .max_inputs = 3,
                                              .infer = InferDecode,
                                              .row_rule = RowWise,
                                              .input_use = FirstByRows,
                                              .run = RunDecode,
                                              .may_fail = true,
                                              .takes_frames = true,
                                              .working_bytes = DecodeWorkingBytes};

}  // namespace heddle::ops
