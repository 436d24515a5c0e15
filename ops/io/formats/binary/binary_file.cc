// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/binary/binary_file.h"

#include <atomic>

#include "core/values/sizes.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/compressed/compression_records.h"
#include "ops/io/checksums/crc32c.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/binary/row_coding.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kSequenceFile = "SEQ";  // Hadoop's, in which SystemDS keeps its blocks

// What a file is that does not begin as a binary file does.
Status IsForeign(const std::string& path, std::string_view beginning) {
  if (beginning.starts_with(kSequenceFile))
    return DataLoss("cannot read '{}': it is a binary file of SystemDS, which Heddle does not read", path)
        .WithNote("let SystemDS write it as format=\"csv\" or format=\"text\"");
  if (beginning.starts_with(kBinaryMark.substr(0, 4)))
    return DataLoss("cannot read '{}': its line ends were changed, as when a binary file is copied as text",
                    path);
  return DataLoss("cannot read '{}': it is no binary file of Heddle", path)
      .WithNote("format= says what it is: csv, text, mm or libsvm");
}

Result<std::string> Beginning(const InputFile& file) {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(
      const std::string_view bytes,
      file.Read(0, std::min<int64_t>(file.size(), static_cast<int64_t>(kBinaryMark.size())), &buffer));
  return std::string(bytes);
}

// Takes the first bytes of a schema.
bool Take(std::string_view* bytes, size_t count, std::string_view* taken) {
  if (bytes->size() < count) return false;
  *taken = bytes->substr(0, count);
  bytes->remove_prefix(count);
  return true;
}

}  // namespace

bool IsBinaryOfSystemDs(std::string_view beginning) {
  // A table may begin with these three letters, but not with a version, a byte below a blank, behind them.
  return beginning.starts_with(kSequenceFile) && beginning.size() > kSequenceFile.size() &&
         static_cast<uint8_t>(beginning[kSequenceFile.size()]) < '\t';
}

Result<BinaryFile> BinaryFile::Open(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> opened, files.Open(options.path));
  return Open(std::move(opened), options.path);
}

Result<BinaryFile> BinaryFile::Open(std::unique_ptr<InputFile> opened, const std::string& path) {
  BinaryFile file;
  file.path_ = path;
  file.file_ = std::move(opened);
  HEDDLE_ASSIGN_OR_RETURN(const std::string beginning, Beginning(*file.file_));
  if (beginning != kBinaryMark) return IsForeign(path, beginning);
  HEDDLE_RETURN_IF_ERROR(file.ReadHeader());
  HEDDLE_RETURN_IF_ERROR(file.ReadIndex());
  return file;
}

Status BinaryFile::ReadHeader() {
  const Status cut = DataLoss("cannot read '{}': it is cut off behind {} bytes", path_, size());
  const Status damaged = DataLoss("cannot read '{}': its header is damaged", path_);
  if (size() < kHeaderBytes + kEndBytes) return cut;
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(std::string_view bytes, file_->Read(0, kHeaderBytes, &buffer));
  const BinaryHeader header = Load<BinaryHeader>(bytes.data());
  // Said first: what a later version keeps under its checksum is its own affair.
  if (header.version != kBinaryVersion)
    return DataLoss("cannot read '{}': it is a binary file of version {}, this Heddle reads version {}",
                    path_, header.version, kBinaryVersion)
        .WithNote("a newer Heddle reads it, and writes it in another format");
  if (header.schema_bytes > static_cast<uint64_t>(size() - kHeaderBytes - kEndBytes)) return cut;
  CountedBytes schema_buffer;
  HEDDLE_ASSIGN_OR_RETURN(
      const std::string_view schema,
      file_->Read(kHeaderBytes, static_cast<int64_t>(header.schema_bytes), &schema_buffer));
  if (Crc32c(schema, Crc32c(bytes.substr(0, offsetof(BinaryHeader, checksum)))) != header.checksum)
    return damaged;
  const bool sizes_are_right = header.rows <= kMostLength && header.columns <= kMostLength &&
                               header.rows_of_block >= 1 && header.rows_of_block <= kMostRowsOfBlock;
  shape_ = {static_cast<int64_t>(header.rows), static_cast<int64_t>(header.columns)};
  if (!sizes_are_right || shape_.Cells() == INT64_MAX ||
      (shape_.Cells() == 0 && std::max(shape_.rows, shape_.columns) > kMostLengthOfEmpty) ||
      header.kind < kMatrixKind || header.kind > kFrameKind || header.schema_bytes % 8 != 0)
    return damaged;
  if (header.compression > kColumnGroups ||
      (header.compression == kColumnGroups && header.kind != kMatrixKind))
    return DataLoss("cannot read '{}': its blocks are compressed in a way that this Heddle does not know",
                    path_);
  rows_of_block_ = static_cast<int64_t>(header.rows_of_block);
  blocks_begin_ = kHeaderBytes + static_cast<int64_t>(header.schema_bytes);
  if (header.compression == kColumnGroups) return ReadCoding(schema);
  return header.kind == kFrameKind ? ReadSchema(schema) : OkStatus();
}

Status BinaryFile::ReadCoding(std::string_view bytes) {
  Result<std::shared_ptr<const RowCoding>> coding = RowCoding::Parse(bytes, shape_.columns);
  // Rows of a block have numbers of 16 bits.
  const bool blocks_are_right = rows_of_block_ % 2 == 0 && rows_of_block_ <= kSegmentRows;
  if (coding.ok() && !blocks_are_right) return DataLoss("cannot read '{}': its header is damaged", path_);
  if (coding.status().code() == StatusCode::kDataLoss)
    return DataLoss("cannot read '{}': {}", path_, coding.status().message());
  HEDDLE_ASSIGN_OR_RETURN(coding_, std::move(coding));
  return OkStatus();
}

Status BinaryFile::ReadSchema(std::string_view bytes) {
  const Status damaged = DataLoss("cannot read '{}': its schema is damaged", path_);
  auto schema = std::make_shared<Schema>();
  std::string_view types, names, length, name;
  if (!Take(&bytes, 1, &names) || !Take(&bytes, static_cast<size_t>(shape_.columns), &types)) return damaged;
  for (const char type : types) {
    if (static_cast<uint8_t>(type) >= kColumnTypes) return damaged;
    schema->types.push_back(static_cast<ColumnType>(type));
  }
  for (int64_t j = 0; names[0] != 0 && j < shape_.columns; ++j) {
    if (!Take(&bytes, sizeof(uint32_t), &length) || !Take(&bytes, Load<uint32_t>(length.data()), &name))
      return damaged;
    schema->names.emplace_back(name);
  }
  schema_ = std::move(schema);
  return OkStatus();
}

int64_t BinaryFile::BytesOfEntry() const {
  return kEntryBytes + (schema_ == nullptr ? 0 : schema_->columns() * kPieceBytes);
}

Status BinaryFile::ReadIndex() {
  const Status cut = DataLoss("cannot read '{}': it is cut off, or its index is damaged", path_)
                         .WithNote("the index stands at the end of the file");
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, file_->Read(size() - kEndBytes, kEndBytes, &buffer));
  const BinaryEnd end = Load<BinaryEnd>(bytes.data());
  if (std::string_view(end.mark, sizeof(end.mark)) != kBinaryEndMark) return cut;
  const int64_t blocks = BlocksUpTo(shape_.rows);
  const int64_t index_bytes = SaturatingProduct(blocks, BytesOfEntry());
  const int64_t most = size() - kEndBytes - blocks_begin_;
  if (index_bytes > most || static_cast<int64_t>(end.index) != size() - kEndBytes - index_bytes) return cut;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view index,
                          file_->Read(static_cast<int64_t>(end.index), index_bytes, &index_));
  // A file in memory gives its own bytes.
  if (index.data() != index_.data()) {
    HEDDLE_RETURN_IF_ERROR(index_.Renew(index_bytes, path_));
    std::copy(index.begin(), index.end(), index_.data());
  }
  if (Crc32c(bytes.substr(0, offsetof(BinaryEnd, checksum)), Crc32c(index_.view())) != end.checksum)
    return cut;
  stored_ = static_cast<int64_t>(end.stored);
  return CheckBlocks();
}

BinaryBlock BinaryFile::Block(int64_t block) const {
  const auto entry = Load<BinaryEntry>(index_.view().data() + block * BytesOfEntry());
  return {.offset = static_cast<int64_t>(entry.offset),
          .bytes = static_cast<int64_t>(entry.bytes),
          .stored = static_cast<int64_t>(entry.stored),
          .layout = static_cast<BlockLayout>(entry.layout),
          .checksum = entry.checksum};
}

ColumnPiece BinaryFile::PieceOf(int64_t block, int64_t column) const {
  const auto piece =
      Load<uint64_t>(index_.view().data() + block * BytesOfEntry() + kEntryBytes + column * kPieceBytes);
  return {.text_bytes = static_cast<int64_t>(piece >> 1), .may_miss = (piece & 1) != 0};
}

// Blocks follow each other without gaps from the header to the index, each as long as what it holds: so all
// of them together are no more than the file.
Status BinaryFile::CheckBlocks() const {
  int64_t offset = blocks_begin_, stored = 0;
  for (int64_t b = 0; b < BlocksUpTo(shape_.rows); ++b) {
    const BinaryBlock block = Block(b);
    const int64_t rows = EndRow(b) - FirstRow(b);
    int64_t bytes = 0;
    bool known = block.layout <= BlockLayout::kGroups32 &&
                 (block.layout == BlockLayout::kColumns) == (schema_ != nullptr) &&
                 (block.layout >= BlockLayout::kGroups64) == (coding_ != nullptr) && block.stored >= 0;
    if (known && schema_ != nullptr) known = block.stored == 0;
    if (known && schema_ == nullptr) {
      known = block.stored <= rows * shape_.columns;
      bytes = coding_ == nullptr ? BytesOfMatrixBlock(block.layout, rows, shape_.columns, block.stored)
                                 : std::clamp(block.bytes, coding_->LeastBytes(rows, block.layout),
                                              coding_->MostBytes(rows, block.layout));
    }
    for (int64_t j = 0; known && schema_ != nullptr && j < shape_.columns; ++j)
      bytes = SaturatingSum(bytes,
                            BytesOfColumnPiece(schema_->types[static_cast<size_t>(j)], rows, PieceOf(b, j)));
    if (!known || block.offset != offset || block.bytes != bytes || bytes > size() - offset)
      return Malformed(b, "the index does not agree with itself");
    offset += bytes;
    stored += block.stored;
  }
  if (offset != size() - kEndBytes - static_cast<int64_t>(index_.view().size()) || stored != stored_)
    return DataLoss("cannot read '{}': the index does not agree with itself", path_);
  return OkStatus();
}

Status BinaryFile::Malformed(int64_t block, std::string_view what) const {
  return DataLoss("cannot read '{}': rows {} to {}: {}", path_, FirstRow(block) + 1, EndRow(block), what);
}

Result<FileSummary> SummarizeBinary(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const BinaryFile file, BinaryFile::Open(options, files));
  const bool is_frame = file.schema() != nullptr;
  if (is_frame != (options.data_type == DataType::kFrame))
    return DataLoss("cannot read '{}': it holds a {}, not a {}", options.path, is_frame ? "frame" : "matrix",
                    Name(options.data_type))
        .WithNote(is_frame ? "say data_type=\"frame\""
                           : "read it as a matrix; as.frame() makes a frame of it");
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, file.shape()));
  if (is_frame) HEDDLE_RETURN_IF_ERROR(CheckSaidTypes(options, *file.schema()));
  FileSummary summary;
  summary.shape = file.shape();
  summary.schema = file.schema();
  summary.stored = file.stored();
  if (file.coding() != nullptr) summary.column_groups = GroupsText(file.coding()->groups());
  summary.format = is_frame ? Format::kDense : ChooseFormat(file.shape(), file.stored());
  for (int64_t b = 0; b < file.BlocksUpTo(file.shape().rows); ++b)
    summary.chunk_rows.push_back(file.FirstRow(b));
  summary.chunk_rows.push_back(file.shape().rows);
  summary.text_bytes = file.size();
  return summary;
}

Status BinaryFile::Visit(int64_t begin, int64_t end, const std::atomic<bool>* cancelled,
                         const std::function<char*(int64_t block)>& place,
                         const std::function<Status(int64_t block, const char* bytes)>& visit) const {
  if (begin >= end) return OkStatus();
  const int64_t first = begin / rows_of_block_;
  FirstFailure failure;
  // Threads take the blocks in their order, so that the file is read forward.
  std::atomic<int64_t> next = first;
  ParallelFor(BlocksUpTo(end) - first, 1, [&](int64_t from, int64_t to) {
    CountedBytes buffer;
    for (int64_t i = from; i < to; ++i) {
      if (IsCancelled(cancelled)) return;
      const int64_t b = next.fetch_add(1);
      const BinaryBlock block = Block(b);
      Status status = [&]() -> Status {
        std::string_view bytes;
        if (char* const own = place(b); own != nullptr) {
          HEDDLE_RETURN_IF_ERROR(file_->ReadInto(block.offset, block.bytes, own));
          bytes = {own, static_cast<size_t>(block.bytes)};
        } else {
          HEDDLE_ASSIGN_OR_RETURN(bytes, file_->Read(block.offset, block.bytes, &buffer));
        }
        if (Crc32c(bytes) != block.checksum) return Malformed(b, "they are damaged, their checksum is wrong");
        return visit(b, bytes.data());
      }();
      if (!status.ok()) return failure.Add(b, status);
    }
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return failure.status();
}

int64_t BytesOfMatrixBlock(BlockLayout layout, int64_t rows, int64_t columns, int64_t stored) {
  const bool wide = layout == BlockLayout::kDense64 || layout == BlockLayout::kCsr64;
  const int64_t cell = wide ? 8 : 4;
  const bool dense = layout == BlockLayout::kDense64 || layout == BlockLayout::kDense32;
  const int64_t bytes = dense ? SaturatingProduct(SaturatingProduct(rows, columns), cell)
                              : SaturatingSum(SaturatingProduct(stored, cell + 4), rows * 4);
  return bytes > INT64_MAX - 8 ? INT64_MAX : RoundUpTo8(bytes);
}

int64_t BytesOfColumnPiece(ColumnType type, int64_t rows, const ColumnPiece& piece) {
  const bool texts = StorageOf(type) == ColumnStorage::kTexts;
  const int64_t cells = RoundUpTo8(rows * (StorageOf(type) == ColumnStorage::kBooleans ? 1 : 8));
  if (piece.text_bytes > INT64_MAX - 8) return INT64_MAX;
  const int64_t behind =
      SaturatingSum(texts ? RoundUpTo8(piece.text_bytes) : 0, piece.may_miss ? RoundUpTo8(rows) : 0);
  return SaturatingSum(cells, behind);
}

namespace {

// If a row has that many bytes.
int64_t RowsOfBlock(int64_t rows, double bytes_of_row) {
  constexpr double kBytesOfBlock = 1 << 20;
  const double fit = kBytesOfBlock / std::max(bytes_of_row, 1.0);
  const auto most = std::max<int64_t>(1, static_cast<int64_t>(std::min<double>(fit, kMostRowsOfBlock)));
  return std::clamp<int64_t>(rows, 1, most);
}

}  // namespace

int64_t RowsOfMatrixBlock(const Shape& shape, ElementType type, int64_t stored) {
  const double cell = type == ElementType::kFloat64 ? sizeof(double) : sizeof(float);
  const double of_row = static_cast<double>(stored) / static_cast<double>(std::max<int64_t>(1, shape.rows));
  return RowsOfBlock(shape.rows, std::min(static_cast<double>(shape.columns) * cell,
                                          of_row * (cell + sizeof(int32_t)) + sizeof(uint32_t)));
}

int64_t RowsOfFrameBlock(const Schema& schema, int64_t rows, int64_t text_bytes) {
  const double bytes = static_cast<double>(FixedBytes(schema, rows)) + static_cast<double>(text_bytes);
  return RowsOfBlock(rows, bytes / static_cast<double>(std::max<int64_t>(1, rows)));
}

}  // namespace heddle::ops
