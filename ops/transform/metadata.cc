// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/metadata.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "core/text/quoted.h"
#include "core/text/utf8.h"
#include "ops/base/parallel.h"
#include "ops/frame/convert.h"
#include "ops/text/java_hash_map.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kSeparator = "\u00b7";
constexpr std::string_view kImpute = "\u00b7impute";

// What is before and behind the last separator.
std::optional<std::pair<std::string_view, std::string_view>> SplitCell(std::string_view cell) {
  const size_t at = cell.rfind(kSeparator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair(cell.substr(0, at), cell.substr(at + kSeparator.size()));
}

std::optional<int64_t> CodeIn(std::string_view text) {
  int64_t code = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), code);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || code < 1) return std::nullopt;
  return code;
}

// The indexes of tokens as a java.util.HashMap gives them, in which SystemDS has them: metadata are printed
// and compared as texts.
std::vector<size_t> InJavaOrder(const std::vector<std::string>& tokens) {
  std::vector<std::pair<uint32_t, size_t>> places;
  for (size_t i = 0; i < tokens.size(); ++i) places.emplace_back(JavaBucketOf(tokens[i], tokens.size()), i);
  std::sort(places.begin(), places.end());
  std::vector<size_t> order;
  for (const auto& [bucket, index] : places) order.push_back(index);
  return order;
}

std::vector<std::string> CellsOf(const ColumnSpec& spec, const ColumnMetadata& metadata) {
  std::vector<std::string> cells;
  switch (spec.encoder) {
    case Encoder::kPassThrough: break;
    case Encoder::kRecode:
    case Encoder::kWordEmbedding:
    case Encoder::kBagOfWords:
      cells.reserve(metadata.tokens.size());
      for (const size_t i : InJavaOrder(metadata.tokens)) {
        cells.push_back(metadata.tokens[i]);
        cells.back() += kSeparator;
        AppendInteger(static_cast<int64_t>(i) + 1, &cells.back());
      }
      break;
    case Encoder::kBin:
      for (size_t i = 0; i < metadata.upper.size(); ++i)
        cells.push_back(FormatDouble(metadata.lower[i]) + std::string(kSeparator) +
                        FormatDouble(metadata.upper[i]));
      break;
    case Encoder::kHash: cells.push_back(std::to_string(spec.hash_values)); break;
  }
  if (metadata.imputed) cells.push_back(*metadata.imputed + std::string(kImpute));
  return cells;
}

// The cells, and missing ones down to `rows`.
Result<Column> FilledColumn(const std::vector<std::string>& cells, int64_t rows) {
  int64_t bytes = 0;
  for (const std::string& cell : cells) bytes += static_cast<int64_t>(cell.size());
  const auto count = static_cast<int64_t>(cells.size());
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(ColumnType::kString, rows, bytes, count < rows));
  int64_t at = 0;
  column.mutable_offsets()[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (i < count) {
      const std::string& cell = cells[static_cast<size_t>(i)];
      std::copy(cell.begin(), cell.end(), column.mutable_texts() + at);
      at += static_cast<int64_t>(cell.size());
    } else {
      column.mutable_missing()[i] = 1;
    }
    column.mutable_offsets()[i + 1] = at;
  }
  return column;
}

// Reads the cells of one column of metadata.
class CellReader {
 public:
  CellReader(std::string_view op, std::string name, const ColumnSpec& spec)
      : op_(op), name_(std::move(name)), spec_(spec) {}

  Result<ColumnMetadata> Read(const Column& column) {
    for (int64_t i = 0; i < column.rows(); ++i) {
      std::string cell;
      if (!column.IsMissing(i)) AppendCell(column, i, &cell);
      if (cell.empty()) continue;
      HEDDLE_RETURN_IF_ERROR(ReadCell(cell));
    }
    return Finish();
  }

 private:
  Status ReadCell(std::string_view cell) {
    const auto parts = SplitCell(cell);
    if (cell.ends_with(kImpute)) {
      metadata_.imputed = parts->first;
      return OkStatus();
    }
    switch (spec_.encoder) {
      case Encoder::kPassThrough: return OkStatus();  // The spec speaks of fewer columns.
      case Encoder::kRecode:
      case Encoder::kWordEmbedding:
      case Encoder::kBagOfWords: {
        const std::optional<int64_t> code = parts ? CodeIn(parts->second) : std::nullopt;
        if (!code) return Unfit(cell, "token\u00b7code");
        codes_.emplace_back(*code, parts->first);
        return OkStatus();
      }
      case Encoder::kBin: {
        const auto lower = parts ? ParseDouble(parts->first) : std::nullopt;
        const auto upper = parts ? ParseDouble(parts->second) : std::nullopt;
        if (!lower || !upper) return Unfit(cell, "lower\u00b7upper");
        if (!metadata_.upper.empty() && !(metadata_.upper.back() <= *upper))
          return FailedPrecondition("{}: the bins of column {} in the metadata are not in ascending order",
                                    op_, name_);
        metadata_.lower.push_back(*lower);
        metadata_.upper.push_back(*upper);
        return OkStatus();
      }
      case Encoder::kHash:
        if (CodeIn(cell) != spec_.hash_values)
          return FailedPrecondition(
              "{}: column {} of the metadata was hashed to {} codes, K of the spec is {}", op_, name_,
              ShownInLine(cell, 40), spec_.hash_values);
        return OkStatus();
    }
    HEDDLE_CHECK(false, "cells of every encoder are read");
  }

  Result<ColumnMetadata> Finish() {
    if (spec_.encoder == Encoder::kBin && metadata_.upper.empty())
      return FailedPrecondition("{}: column {} of the metadata has no bins", op_, name_);
    if (spec_.impute == ImputeMethod::kConstant) metadata_.imputed = spec_.constant;
    if (spec_.impute && !metadata_.imputed)
      return FailedPrecondition("{}: column {} of the metadata does not say what replaces missing cells", op_,
                                name_)
          .WithNote("it is what transformencode makes with a spec that imputes this column");
    std::sort(codes_.begin(), codes_.end());
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (codes_[i].first != static_cast<int64_t>(i) + 1)
        return FailedPrecondition("{}: the codes of column {} in the metadata are not 1 to {}", op_, name_,
                                  codes_.size());
      metadata_.tokens.push_back(std::move(codes_[i].second));
    }
    return std::move(metadata_);
  }

  Status Unfit(std::string_view cell, std::string_view form) const {
    return FailedPrecondition("{}: '{}' in column {} of the metadata is not of the form {}", op_,
                              ShownInLine(cell, 40), name_, form)
        .WithNote("the metadata are what transformencode makes with the same encoders");
  }

  const std::string_view op_;
  const std::string name_;
  const ColumnSpec& spec_;
  ColumnMetadata metadata_;
  std::vector<std::pair<int64_t, std::string>> codes_;
};

// The column of the metadata for column j of the spec; -1 where it needs none and there is none.
Result<int64_t> PlaceOf(std::string_view op, const TransformSpec& spec, const Schema& schema,
                        const Schema& metadata, int64_t j) {
  const ColumnSpec& column = spec.columns[static_cast<size_t>(j)];
  const bool needs_any = column.encoder != Encoder::kPassThrough || column.impute;
  if (spec.by_name) {
    for (int64_t k = 0; k < metadata.columns(); ++k)
      if (metadata.NameOf(k) == schema.NameOf(j)) return k;
    if (!needs_any) return -1;
    return FailedPrecondition("{}: the metadata have no column '{}'", op, schema.NameOf(j));
  }
  if (j >= metadata.columns() && !needs_any) return -1;
  if (j >= metadata.columns())
    return FailedPrecondition("{}: the metadata have {} column{}, column {} is missing", op,
                              metadata.columns(), metadata.columns() == 1 ? "" : "s", j + 1);
  return j;
}

}  // namespace

int64_t ColumnMetadata::Codes(const ColumnSpec& spec) const {
  switch (spec.encoder) {
    case Encoder::kPassThrough: return 0;
    case Encoder::kRecode:
    case Encoder::kWordEmbedding:
    case Encoder::kBagOfWords: return static_cast<int64_t>(tokens.size());
    case Encoder::kBin: return static_cast<int64_t>(upper.size());
    case Encoder::kHash: return spec.hash_values;
  }
  HEDDLE_CHECK(false, "every encoder has codes or none");
}

Result<Frame> MetadataFrame(const TransformSpec& spec, const Schema& schema,
                            const std::vector<ColumnMetadata>& columns) {
  std::vector<std::vector<std::string>> cells(columns.size());
  ParallelFor(static_cast<int64_t>(columns.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto j = static_cast<size_t>(begin); j < static_cast<size_t>(end); ++j)
      cells[j] = CellsOf(spec.columns[j], columns[j]);
  });
  size_t rows = 0;
  for (const std::vector<std::string>& column : cells) rows = std::max(rows, column.size());
  std::vector<Column> filled;
  for (const std::vector<std::string>& column : cells) {
    HEDDLE_ASSIGN_OR_RETURN(Column one, FilledColumn(column, static_cast<int64_t>(rows)));
    filled.push_back(std::move(one));
  }
  auto texts = std::make_shared<Schema>(schema);
  std::fill(texts->types.begin(), texts->types.end(), ColumnType::kString);
  return Frame(std::move(texts), std::move(filled));
}

Result<std::vector<ColumnMetadata>> ReadMetadataFrame(std::string_view op, const TransformSpec& spec,
                                                      const Schema& schema, const Frame& frame) {
  std::vector<ColumnMetadata> columns;
  for (int64_t j = 0; j < static_cast<int64_t>(spec.columns.size()); ++j) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t place, PlaceOf(op, spec, schema, *frame.schema(), j));
    ColumnMetadata metadata;
    if (place >= 0) {
      CellReader reader(op, schema.NameOf(j), spec.columns[static_cast<size_t>(j)]);
      HEDDLE_ASSIGN_OR_RETURN(metadata, reader.Read(frame.column(place)));
    }
    columns.push_back(std::move(metadata));
  }
  return columns;
}

Result<EncodedLayout> EncodedLayout::Of(std::string_view op, const TransformSpec& spec,
                                        const std::vector<ColumnMetadata>& columns,
                                        int64_t embedding_columns) {
  EncodedLayout layout;
  layout.first.push_back(0);
  for (size_t j = 0; j < columns.size(); ++j) {
    const ColumnSpec& one = spec.columns[j];
    layout.forms.push_back(one.encoder == Encoder::kBagOfWords      ? EncodedForm::kCounts
                           : one.encoder == Encoder::kWordEmbedding ? EncodedForm::kVector
                           : one.dummycode                          ? EncodedForm::kDummy
                                                                    : EncodedForm::kNumber);
    const int64_t width = one.IsOneColumn()                        ? 1
                          : one.encoder == Encoder::kWordEmbedding ? embedding_columns
                                                                   : columns[j].Codes(one);
    layout.first.push_back(layout.first.back() + width);
  }
  if (layout.columns() > std::numeric_limits<int32_t>::max())
    return ResourceExhausted("{}: the result would have {} columns", op, layout.columns())
        .WithNote("dummycode makes a column of each token; hash limits their number");
  return layout;
}

Result<EncodedLayout> LayoutOf(std::string_view op, const TransformSpec& spec, const Frame& metadata) {
  const auto embeds = [](const ColumnSpec& one) { return one.encoder == Encoder::kWordEmbedding; };
  if (std::any_of(spec.columns.begin(), spec.columns.end(), embeds))
    return FailedPrecondition("{}: the columns of 'word_embedding' are as many as those of the embedding", op)
        .WithNote("ncol() of the embedding tells; leave the column out of the spec");
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ColumnMetadata> columns,
                          ReadMetadataFrame(op, spec, *metadata.schema(), metadata));
  return EncodedLayout::Of(op, spec, columns, /*embedding_columns=*/0);
}

}  // namespace heddle::ops
