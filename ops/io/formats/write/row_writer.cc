// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/row_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/frame/row_pieces.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/write/write_parts.h"
#include "ops/panels/kept_parts.h"

namespace heddle::ops {
namespace {

Value::Kind KindOf(const ValueInfo& info) {
  return info.IsFrame() ? Value::Kind::kFrame : Value::Kind::kMatrix;
}

// The totals of all rows if they are like the first ones. Of rows without zeros they are exact.
RowTotals TotalsLike(const RowTotals& first, int64_t first_rows, int64_t rows) {
  const double factor = static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(1, first_rows));
  const auto of_all = [factor](int64_t of_first) {
    return std::llround(static_cast<double>(of_first) * factor);
  };
  RowTotals totals = first;
  totals.nonzeros = of_all(first.nonzeros);
  totals.stored = of_all(first.stored);
  totals.text_bytes = of_all(first.text_bytes);
  return totals;
}

bool HasTexts(const Schema& schema) {
  return std::any_of(schema.types.begin(), schema.types.end(),
                     [](ColumnType type) { return StorageOf(type) == ColumnStorage::kTexts; });
}

}  // namespace

bool CanAppendRows(const ValueInfo& info, const std::string* path, const WriteOptions& options) {
  if (options.parts > 0 || !HasSections(info, options.format)) return false;
  const bool is_binary = options.format == FileFormat::kBinary;
  // Dictionaries, which stand in front of the rows, have cells of all of them.
  if (options.by_groups) return false;
  // The length of texts decides how many rows a block has.
  if (is_binary && info.IsFrame()) return info.schema != nullptr && !HasTexts(*info.schema);
  const bool has_cells = options.format == FileFormat::kText || options.format == FileFormat::kLibsvm ||
                         options.format == FileFormat::kMatrixMarket;
  // What is packed cannot be set right, and where a piece of it ends follows from all entries.
  if (info.IsFrame() || !(is_binary || has_cells)) return true;
  return path != nullptr && options.packing.value_or(PackingOfPath(*path)) == Packing::kNone;
}

RowWriter::RowWriter(ValueInfo info, std::string path, const WriteOptions& options, Files& files)
    : path_(std::move(path)),
      write_options_(options),
      options_(PackingFor(path_, options)),
      files_(files),
      content_{.info = std::move(info)} {}

Result<std::unique_ptr<RowWriter>> RowWriter::Begin(const ValueInfo& info, const std::string& path,
                                                    const WriteOptions& options,
                                                    const std::optional<KnownRows>& known, Files& files) {
  HEDDLE_RETURN_IF_ERROR(CheckWrite(KindOf(info), info.shape, path, options));
  if (!known && !CanAppendRows(info, &path, options))
    return Internal("write: rows cannot be appended to '{}' as they come", path);
  std::unique_ptr<RowWriter> writer(new RowWriter(info, path, options, files));
  writer->known_ = known;
  if (known) writer->found_ = known->totals;
  HEDDLE_ASSIGN_OR_RETURN(writer->file_, files.Begin(path));
  return writer;
}

Status RowWriter::GiveBeginningFor(const Value& first_rows) {
  if (first_rows.IsMatrix()) content_.info.element_type = first_rows.matrix().element_type();
  content_.totals = known_ ? known_->totals
                           : TotalsLike(TotalsOf(first_rows, 0, write_options_), first_rows.shape().rows,
                                        content_.info.shape.rows);
  if (known_) content_.coding = known_->coding;
  rows_of_unit_ = RowsOfUnit(content_, options_);
  const auto append = [this](std::string_view bytes) { return file_->Append(bytes); };
  if (known_) return GiveBeginning(content_, options_, append);
  HEDDLE_ASSIGN_OR_RETURN(beginning_, BeginningOf(content_, options_));
  return append(beginning_);
}

Status RowWriter::Add(const Value& rows) {
  const int64_t count = rows.shape().rows, all = content_.info.shape.rows;
  if (next_row_ + waiting_rows_ + count > all)
    return Internal("write: more than the {} rows of the value", all);
  if (rows_of_unit_ == 0) HEDDLE_RETURN_IF_ERROR(GiveBeginningFor(rows));
  if (!known_) {
    found_.Add(TotalsOf(rows, next_row_ + waiting_rows_, write_options_));
    // Only rows that have come before decide whether a line is the first one.
    content_.totals.first_filled = found_.first_filled;
  }
  int64_t at = 0;
  if (waiting_rows_ > 0) {
    at = std::min(rows_of_unit_ - waiting_rows_, count);
    HEDDLE_ASSIGN_OR_RETURN(const Value head, SliceRows(rows, 0, at));
    const Value* const pieces[] = {&waiting_, &head};
    HEDDLE_ASSIGN_OR_RETURN(waiting_, JoinRows(pieces));
    waiting_rows_ += at;
    if (waiting_rows_ < rows_of_unit_ && next_row_ + waiting_rows_ < all) return OkStatus();
    HEDDLE_RETURN_IF_ERROR(Give(std::exchange(waiting_, Value())));
    waiting_rows_ = 0;
  }
  const bool is_end = next_row_ + count - at == all;
  const int64_t end = is_end ? count : at + (count - at) / rows_of_unit_ * rows_of_unit_;
  if (at < end) {
    HEDDLE_ASSIGN_OR_RETURN(const Value units, SliceRows(rows, at, end));
    HEDDLE_RETURN_IF_ERROR(Give(units));
  }
  if (end == count) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(Value rest, SliceRows(rows, end, count));
  HEDDLE_ASSIGN_OR_RETURN(waiting_, WithMemoryOfItsOwn(std::move(rest)));
  waiting_rows_ = count - end;
  return OkStatus();
}

Status RowWriter::Give(const Value& rows) {
  const ByteSink append = [this](std::string_view bytes) {
    bytes_of_sections_ += static_cast<int64_t>(bytes.size());
    return file_->Append(bytes);
  };
  const int64_t begin = next_row_;
  next_row_ += rows.shape().rows;
  return GiveSection(rows, begin, content_, options_, append, &index_);
}

Status RowWriter::Finish() {
  const int64_t all = content_.info.shape.rows;
  if (next_row_ != all) return Internal("write: {} of the {} rows of the value were added", next_row_, all);
  FileContent whole = content_;
  whole.totals = found_;
  if (rows_of_unit_ == 0) {
    content_.totals = whole.totals;
    rows_of_unit_ = RowsOfUnit(whole, options_);
    HEDDLE_ASSIGN_OR_RETURN(beginning_, BeginningOf(whole, options_));
    HEDDLE_RETURN_IF_ERROR(file_->Append(beginning_));
  }
  const bool is_right = RowsOfUnit(whole, options_) == rows_of_unit_;
  HEDDLE_ASSIGN_OR_RETURN(const std::string end,
                          EndOf(is_right ? whole : content_, bytes_of_sections_, index_, options_));
  HEDDLE_RETURN_IF_ERROR(file_->Append(end));
  const bool is_binary_matrix = write_options_.format == FileFormat::kBinary && !whole.info.IsFrame();
  if (known_ && is_binary_matrix && index_.stored != static_cast<uint64_t>(found_.stored))
    return Internal("write: the rows of '{}' are others than those that were counted", path_);
  if (!is_right) return WriteAgain(whole.totals);
  if (!known_) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(whole, options_));
    if (beginning != beginning_)
      HEDDLE_RETURN_IF_ERROR(file_->ReplaceBeginning(static_cast<int64_t>(beginning_.size()), beginning));
  }
  HEDDLE_RETURN_IF_ERROR(file_->Commit());
  const WrittenValue written{.kind = KindOf(whole.info),
                             .shape = whole.info.shape,
                             .nonzeros = found_.nonzeros,
                             .schema = whole.info.schema};
  return WriteMetadata(written, path_, write_options_, files_);
}

// The blocks of a binary file turned out to need another height: they are read from the file that has been
// made, and written anew.
Status RowWriter::WriteAgain(const RowTotals& totals) {
  constexpr int64_t kBytesAtOnce = int64_t{1} << 20;  // Of what the plan counts for a write (HeldByWrite).
  const Shape& shape = content_.info.shape;
  HEDDLE_ASSIGN_OR_RETURN(const BinaryFile made, BinaryFile::Open(file_->Written(), path_));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<RowWriter> again,
                          Begin(content_.info, path_, write_options_, KnownRows{.totals = totals}, files_));
  const int64_t row_bytes = std::max<int64_t>(1, shape.columns * int64_t{sizeof(double)});
  const int64_t rows_at_once = std::max<int64_t>(1, kBytesAtOnce / row_bytes);
  for (int64_t begin = 0; begin < shape.rows; begin += rows_at_once) {
    const int64_t end = std::min(begin + rows_at_once, shape.rows);
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix rows, RowsOf(made, ChooseFormat(shape, totals.stored), begin, end, write_options_.cancelled));
    HEDDLE_ASSIGN_OR_RETURN(rows, ToElementType(rows, content_.info.element_type));
    HEDDLE_RETURN_IF_ERROR(again->Add(Value(std::move(rows))));
  }
  return again->Finish();
}

}  // namespace heddle::ops
