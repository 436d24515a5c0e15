// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/spilled_rows.h"

#include <utility>

#include "core/values/column_groups_bytes.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

// Bytes of a cell of a column in its first array; texts have offsets there.
int64_t CellBytes(ColumnStorage storage) {
  switch (storage) {
    case ColumnStorage::kDoubles:
    case ColumnStorage::kIntegers:
    case ColumnStorage::kTexts: return 8;
    case ColumnStorage::kBooleans: return 1;
  }
  HEDDLE_CHECK(false, "cells of every storage have a size");
}

// Part [begin, end) of `rows` rows of an array whose rows have about as many bytes each.
void AnnounceRows(const SpillFile& file, const SpilledArray& array, int64_t begin, int64_t end,
                  int64_t rows) {
  const auto place = [&](int64_t row) {
    return static_cast<int64_t>(static_cast<double>(array.bytes()) * static_cast<double>(row) /
                                static_cast<double>(rows));
  };
  array.Announce(file, place(begin), place(end) - place(begin));
}

}  // namespace

// Puts arrays one behind the other.
class SpilledRows::Writer {
 public:
  Writer(SpillFile& file, int64_t offset) : file_(file), begin_(offset), offset_(offset) {}
  Status Write(const void* bytes, int64_t count, SpilledArray* array) {
    HEDDLE_ASSIGN_OR_RETURN(*array, SpilledArray::Write(file_, offset_, bytes, count));
    offset_ += count;
    return OkStatus();
  }
  int64_t bytes() const { return offset_ - begin_; }

 private:
  SpillFile& file_;
  const int64_t begin_;
  int64_t offset_;
};

int64_t SpilledRows::BytesFor(const Value& rows) {
  if (rows.IsMatrix() && rows.matrix().IsCompressed()) return MostFlatBytes(rows.matrix());
  if (!rows.IsFrame()) return rows.bytes();
  // Offsets of texts are one more than rows.
  return rows.bytes() + 8 * rows.frame().columns();
}

Result<std::shared_ptr<const SpilledRows>> SpilledRows::Write(std::shared_ptr<SpillFile> file, int64_t offset,
                                                              const Value& rows) {
  std::shared_ptr<SpilledRows> spilled(new SpilledRows());
  Writer writer(*file, offset);
  spilled->shape_ = rows.shape();
  HEDDLE_RETURN_IF_ERROR(rows.IsFrame() ? spilled->WriteFrame(rows.frame(), &writer)
                                        : spilled->WriteMatrix(rows.matrix(), &writer));
  spilled->file_bytes_ = writer.bytes();
  spilled->file_ = std::move(file);
  return std::shared_ptr<const SpilledRows>(std::move(spilled));
}

Status SpilledRows::WriteMatrix(const Matrix& matrix, Writer* writer) {
  is_sparse_ = matrix.IsSparse();
  element_type_ = matrix.element_type();
  const int64_t cell_bytes = BytesOf(element_type_);
  if (matrix.IsCompressed()) {
    is_compressed_ = true;
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> flat, FlattenGroups(matrix));
    return writer->Write(flat->data(), flat->bytes(), &values_);
  }
  if (!is_sparse_) return writer->Write(matrix.data<char>(), matrix.cells() * cell_bytes, &values_);
  const int64_t* const offsets = matrix.row_offsets();
  first_entry_ = matrix.rows() == 0 ? 0 : offsets[0];
  HEDDLE_RETURN_IF_ERROR(
      writer->Write(offsets, matrix.rows() == 0 ? 0 : (matrix.rows() + 1) * 8, &row_offsets_));
  HEDDLE_RETURN_IF_ERROR(
      writer->Write(matrix.column_indexes() + first_entry_, matrix.stored() * 4, &column_indexes_));
  return writer->Write(matrix.values<char>() + first_entry_ * cell_bytes, matrix.stored() * cell_bytes,
                       &values_);
}

Status SpilledRows::WriteFrame(const Frame& frame, Writer* writer) {
  schema_ = frame.schema();
  columns_.resize(static_cast<size_t>(frame.columns()));
  for (int64_t j = 0; j < frame.columns() && frame.rows() > 0; ++j) {
    const Column column = frame.column(j);
    SpilledColumn& spilled = columns_[static_cast<size_t>(j)];
    spilled.may_miss = column.MayMiss();
    const bool is_texts = column.storage() == ColumnStorage::kTexts;
    const int64_t cells = frame.rows() + (is_texts ? 1 : 0);
    HEDDLE_RETURN_IF_ERROR(
        writer->Write(column.booleans(), cells * CellBytes(column.storage()), &spilled.cells));
    if (is_texts) {
      spilled.first_text_byte = column.offsets()[0];
      HEDDLE_RETURN_IF_ERROR(
          writer->Write(column.texts() + spilled.first_text_byte, column.text_bytes(), &spilled.texts));
    }
    if (spilled.may_miss)
      HEDDLE_RETURN_IF_ERROR(writer->Write(column.missing(), frame.rows(), &spilled.missing));
  }
  return OkStatus();
}

Result<Matrix> SpilledRows::ReadGroups(int64_t begin, int64_t end) const {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> flat, Buffer::Allocate(values_.bytes()));
  HEDDLE_RETURN_IF_ERROR(values_.Read(*file_, 0, values_.bytes(), flat->data()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix all, UnflattenGroups({static_cast<const char*>(flat->data()),
                                                             static_cast<size_t>(values_.bytes())}));
  return all.Rows(begin, end);
}

Status SpilledRows::ReadCells(int64_t begin, int64_t end, void* cells) const {
  if (is_compressed_) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix rows, ReadGroups(begin, end));
    DecodeCells(rows, cells);
    return OkStatus();
  }
  const int64_t row_bytes = shape_.columns * BytesOf(element_type_);
  return values_.Read(*file_, begin * row_bytes, (end - begin) * row_bytes, cells);
}

Status SpilledRows::ReadEntryRange(int64_t begin, int64_t end, int64_t* first, int64_t* last) const {
  *first = *last = 0;
  if (begin == end) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(row_offsets_.Read(*file_, begin * 8, 8, first));
  HEDDLE_RETURN_IF_ERROR(row_offsets_.Read(*file_, end * 8, 8, last));
  *first -= first_entry_;
  *last -= first_entry_;
  return OkStatus();
}

Status SpilledRows::ReadOffsets(int64_t begin, int64_t end, int64_t* offsets) const {
  HEDDLE_RETURN_IF_ERROR(row_offsets_.Read(*file_, begin * 8, (end - begin + 1) * 8, offsets));
  for (int64_t row = 0; row <= end - begin; ++row) offsets[row] -= first_entry_;
  return OkStatus();
}

Status SpilledRows::ReadEntries(int64_t begin, int64_t end, int32_t* column_indexes, void* values) const {
  const int64_t cell_bytes = BytesOf(element_type_);
  HEDDLE_RETURN_IF_ERROR(column_indexes_.Read(*file_, begin * 4, (end - begin) * 4, column_indexes));
  return values_.Read(*file_, begin * cell_bytes, (end - begin) * cell_bytes, values);
}

Result<Column> SpilledRows::ReadColumn(size_t column, int64_t begin, int64_t end) const {
  const SpilledColumn& spilled = columns_[column];
  const ColumnType type = schema_->types[column];
  const int64_t cell_bytes = CellBytes(StorageOf(type));
  const int64_t rows = end - begin;
  if (StorageOf(type) != ColumnStorage::kTexts) {
    HEDDLE_ASSIGN_OR_RETURN(Column read, Column::Make(type, rows, 0, spilled.may_miss));
    HEDDLE_RETURN_IF_ERROR(
        spilled.cells.Read(*file_, begin * cell_bytes, rows * cell_bytes, read.mutable_booleans()));
    if (spilled.may_miss)
      HEDDLE_RETURN_IF_ERROR(spilled.missing.Read(*file_, begin, rows, read.mutable_missing()));
    return read;
  }
  // How many bytes the texts have is known from the first and the last offset.
  int64_t first = 0;
  int64_t last = 0;
  if (rows > 0) {
    HEDDLE_RETURN_IF_ERROR(spilled.cells.Read(*file_, begin * 8, 8, &first));
    HEDDLE_RETURN_IF_ERROR(spilled.cells.Read(*file_, end * 8, 8, &last));
  }
  HEDDLE_ASSIGN_OR_RETURN(Column read, Column::Make(type, rows, last - first, spilled.may_miss));
  int64_t* const offsets = read.mutable_offsets();
  offsets[0] = 0;
  if (rows > 0) HEDDLE_RETURN_IF_ERROR(spilled.cells.Read(*file_, begin * 8, (rows + 1) * 8, offsets));
  for (int64_t row = 0; row <= rows && rows > 0; ++row) offsets[row] -= first;
  HEDDLE_RETURN_IF_ERROR(
      spilled.texts.Read(*file_, first - spilled.first_text_byte, last - first, read.mutable_texts()));
  if (spilled.may_miss)
    HEDDLE_RETURN_IF_ERROR(spilled.missing.Read(*file_, begin, rows, read.mutable_missing()));
  return read;
}

Result<Value> SpilledRows::Read(int64_t begin, int64_t end) const {
  const int64_t rows = end - begin;
  if (IsFrame()) {
    std::vector<Column> columns;
    columns.reserve(columns_.size());
    for (size_t j = 0; j < columns_.size(); ++j) {
      HEDDLE_ASSIGN_OR_RETURN(Column column, ReadColumn(j, begin, end));
      columns.push_back(std::move(column));
    }
    return Value(Frame(schema_, std::move(columns)));
  }
  if (is_compressed_) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix groups, ReadGroups(begin, end));
    return Value(std::move(groups));
  }
  if (!is_sparse_) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, Matrix::Dense(rows, shape_.columns, element_type_));
    HEDDLE_RETURN_IF_ERROR(ReadCells(begin, end, dense.mutable_data<char>()));
    return Value(std::move(dense));
  }
  int64_t first = 0;
  int64_t last = 0;
  HEDDLE_RETURN_IF_ERROR(ReadEntryRange(begin, end, &first, &last));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(rows, shape_.columns, last - first, element_type_));
  if (rows > 0) HEDDLE_RETURN_IF_ERROR(ReadOffsets(begin, end, sparse.mutable_row_offsets()));
  for (int64_t row = 0; row <= rows; ++row) sparse.mutable_row_offsets()[row] -= first;
  HEDDLE_RETURN_IF_ERROR(
      ReadEntries(first, last, sparse.mutable_column_indexes(), sparse.mutable_values<char>()));
  return Value(std::move(sparse));
}

void SpilledRows::Announce(int64_t begin, int64_t end) const {
  if (begin >= end) return;
  AnnounceRows(*file_, row_offsets_, begin, end, shape_.rows);
  AnnounceRows(*file_, column_indexes_, begin, end, shape_.rows);
  AnnounceRows(*file_, values_, begin, end, shape_.rows);
  for (const SpilledColumn& column : columns_)
    for (const SpilledArray* array : {&column.cells, &column.texts, &column.missing})
      AnnounceRows(*file_, *array, begin, end, shape_.rows);
}

}  // namespace heddle::ops
