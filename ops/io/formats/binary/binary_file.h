// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/schema.h"
#include "ops/io/formats/file_format.h"

// Heddle's own binary files (docs/files.md has the layout, byte by byte): a header, blocks of rows, an index
// of the blocks. What is read is checked against the file's size before memory is taken for it, and every
// byte is under a checksum.
namespace heddle::ops {

static_assert(std::endian::native == std::endian::little, "binary files are read and written as they lie");

/// What the cells of a matrix are in one block. kDense: all of them, row by row. kCsr: the values that are
/// not +0.0, their columns (int32), and of each row the number of values up to its end (uint32).
/// kGroups: codes of column groups, and the cells of columns without codes
/// (ops/io/formats/binary/row_coding.h).
enum class BlockLayout : uint32_t {
  kDense64 = 0,
  kDense32 = 1,
  kCsr64 = 2,
  kCsr32 = 3,
  kColumns = 4,
  kGroups64 = 5,
  kGroups32 = 6
};

class RowCoding;  // ops/io/formats/binary/row_coding.h

/// Of one column of a frame in one block.
struct ColumnPiece {
  int64_t text_bytes = 0;
  bool may_miss = false;  ///< A byte a row tells which cells are missing.
};

/// A block as the index has it.
struct BinaryBlock {
  int64_t offset = 0;  ///< In the file.
  int64_t bytes = 0;
  int64_t stored = 0;  ///< Cells of a matrix that are not +0.0.
  BlockLayout layout = BlockLayout::kDense64;
  uint32_t checksum = 0;
};

/// A binary file that is open: its header and its index hold what they promise.
class BinaryFile {
 public:
  /// kDataLoss says what is wrong with the file, or what it is instead.
  static Result<BinaryFile> Open(const ReadOptions& options, Files& files);
  /// Messages call it `path`.
  static Result<BinaryFile> Open(std::unique_ptr<InputFile> file, const std::string& path);

  const std::string& path() const { return path_; }
  Shape shape() const { return shape_; }
  int64_t size() const { return file_->size(); }
  int64_t stored() const { return stored_; }
  const std::shared_ptr<const Schema>& schema() const { return schema_; }  ///< nullptr: it holds a matrix.
  /// Of a matrix that is stored by column groups; else nullptr.
  const std::shared_ptr<const RowCoding>& coding() const { return coding_; }
  int64_t rows_of_block() const { return rows_of_block_; }
  BinaryBlock Block(int64_t block) const;
  ColumnPiece PieceOf(int64_t block, int64_t column) const;  ///< Of a frame.
  /// Number of blocks; of the rows before row `row`, with it as the first of another one.
  int64_t BlocksUpTo(int64_t row) const { return (row + rows_of_block_ - 1) / rows_of_block_; }
  int64_t FirstRow(int64_t block) const { return block * rows_of_block_; }
  int64_t EndRow(int64_t block) const { return std::min(FirstRow(block + 1), shape_.rows); }

  /// Calls visit(block, bytes) for every block that has some of the rows [begin, end), several at once. Its
  /// bytes have been checked; they are at place(block), where that is not nullptr. The status of the first
  /// block that failed.
  Status Visit(int64_t begin, int64_t end, const std::atomic<bool>* cancelled,
               const std::function<char*(int64_t block)>& place,
               const std::function<Status(int64_t block, const char* bytes)>& visit) const;
  /// What is said of a block whose checksum is right and whose content is none.
  Status Malformed(int64_t block, std::string_view what) const;

 private:
  Status ReadHeader();
  Status ReadSchema(std::string_view bytes);
  Status ReadCoding(std::string_view bytes);
  Status ReadIndex();
  Status CheckBlocks() const;
  int64_t BytesOfEntry() const;

  std::string path_;
  std::unique_ptr<InputFile> file_;
  Shape shape_;
  int64_t rows_of_block_ = 1;
  int64_t stored_ = 0;
  int64_t blocks_begin_ = 0;
  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<const RowCoding> coding_;
  CountedBytes index_;  // As it lies in the file: a file may have as many blocks as it likes.
};

/// A block on its way into a file. EncodeBlock makes that of rows [begin, end); it is called by several
/// threads at once.
struct EncodedBlock {
  CountedBytes bytes;
  std::string_view borrowed;  ///< Instead of `bytes`, or a part of it: memory that is as the file is to be,
  Value owner;                ///< held by this where nobody else holds it.
  int64_t stored = 0;
  BlockLayout layout = BlockLayout::kDense64;
  std::vector<ColumnPiece> columns;  ///< Of a frame.

  std::string_view view() const { return borrowed.data() == nullptr ? bytes.view() : borrowed; }
};
using EncodeBlock = std::function<Status(int64_t begin, int64_t end, EncodedBlock* block)>;

/// What the end of a file tells of blocks that follow each other.
struct BinaryIndex {
  std::string entries;  ///< Their offsets count from the first of them.
  int64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t stored = 0;

  /// Blocks that follow these.
  void Append(BinaryIndex next);

 private:
  static void Move(std::string* entries, int64_t blocks, uint64_t offset);
  friend std::string BinaryEndBytes(BinaryIndex, uint64_t);
};

/// The three parts of a file, one behind the other: its header (a schema makes it a file of a frame, a coding
/// one of column groups), the blocks of all rows, what tells where the blocks are. Blocks are of
/// `rows_of_block` rows, and may be made and written a few at a time; packed as the options say.
std::string BinaryHeaderBytes(const Shape& shape, const Schema* schema, const RowCoding* coding,
                              int64_t rows_of_block);
Status GiveBinaryBlocks(int64_t rows, int64_t rows_of_block, const EncodeBlock& encode,
                        const WriteOptions& options, const ByteSink& sink, BinaryIndex* index);
Status GiveBinaryBlocks(const Value& rows, const RowCoding* coding, int64_t rows_of_block,
                        const WriteOptions& options, const ByteSink& sink, BinaryIndex* index);
/// `begin` is where the first block is.
std::string BinaryEndBytes(BinaryIndex index, uint64_t begin);

/// The block of rows [begin, end) of a matrix or frame. Columns of the block are those of a frame.
Status EncodeRows(const Matrix& matrix, int64_t begin, int64_t end, EncodedBlock* block);
Status EncodeRows(const Frame& frame, int64_t begin, int64_t end, EncodedBlock* block);
/// Cells of a matrix that are not +0.0.
int64_t CountStoredCells(const Matrix& matrix);

/// Rows so many that a block has about a megabyte: of a matrix that stores so many cells, of a frame whose
/// texts have so many bytes.
int64_t RowsOfMatrixBlock(const Shape& shape, ElementType type, int64_t stored);
int64_t RowsOfFrameBlock(const Schema& schema, int64_t rows, int64_t text_bytes);

/// Blocks and their parts begin at multiples of 8 bytes; what is between them is 0.
constexpr int64_t RoundUpTo8(int64_t bytes) { return (bytes + 7) / 8 * 8; }
/// Bytes of a block of a matrix; INT64_MAX when there are more.
int64_t BytesOfMatrixBlock(BlockLayout layout, int64_t rows, int64_t columns, int64_t stored);
/// The same of one column of a frame in a block: its cells (of texts: where each ends), texts and marks.
int64_t BytesOfColumnPiece(ColumnType type, int64_t rows, const ColumnPiece& piece);

Result<FileSummary> SummarizeBinary(const ReadOptions& options, Files& files);
/// Rows [row_begin, row_end) of the matrix in a file, stored as `format` says; of a file of column groups by
/// these.
Result<Matrix> RowsOf(const BinaryFile& file, Format format, int64_t row_begin, int64_t row_end,
                      const std::atomic<bool>* cancelled);
/// The same of a file of column groups.
Result<Matrix> CodedRowsOf(const BinaryFile& file, int64_t row_begin, int64_t row_end,
                           const std::atomic<bool>* cancelled);
Result<Matrix> ReadBinaryMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                                int64_t row_end, Files& files);
Result<Frame> ReadBinaryFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                              int64_t row_end, Files& files);

}  // namespace heddle::ops
