// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"
#include "ops/io/files/files.h"
#include "ops/io/files/packing.h"

namespace heddle::ops {

enum class FileFormat : uint8_t {
  kText,
  kMatrixMarket,
  kCsv,
  kLibsvm,
  kBinary,
  kJsonl,
  kArff,
  kNpy,
  kNpz,
  kHdf5,
  kParquet,
  kArrow,
  kMat,
  kOctave,
  kRds
};

/// How to read one file: what the script, its .mtd and its first lines say (language reference 4.1, 4.3).
struct ReadOptions {
  std::string path;
  DataType data_type = DataType::kMatrix;
  bool data_type_said = false;  ///< By metadata or script.
  ValueType value_type = ValueType::kDouble;
  std::string schema;  ///< Of a frame: names of column types with commas between and after them; "": strings.
  std::optional<FileFormat> format;
  bool guessed = false;  ///< The format: neither script nor metadata say it.
  int64_t rows = kUnknown;
  int64_t columns = kUnknown;
  int64_t nonzeros = kUnknown;
  std::optional<bool> header;
  std::string separator;  ///< "" until found out
  /// csv: any number of blanks separates two fields and none is empty. Found by looking: a script that gives
  /// a separator means one.
  bool any_blanks = false;
  bool fill = true;
  double default_value = 0;
  std::vector<std::string> missing_texts;  ///< naStrings: read as NaN
  /// Frames in csv: empty cells of numbers and booleans are missing, as those of texts are; read() has 0 and
  /// FALSE in their place.
  bool any_cell_may_miss = false;
  std::string index_separator = ":";
  std::optional<bool> zero_based;  ///< libsvm: whether indexes begin at 0; else an index 0 tells.
  std::string dataset;             ///< Of a file that holds several: its name; "": the only one.
  bool transposed = false;         ///< Of formats of arrays: with its indexes in the other order.
  bool by_groups = false;  ///< Who reads knows compressed matrices: of a file of column groups one comes.
  int64_t chunk_bytes = int64_t{1} << 20;        ///< Of the chunks that a file of lines is cut into, about.
  const std::atomic<bool>* cancelled = nullptr;  ///< Polled between pieces; then kCancelled.
};

/// What the attributes of a `read` node and the text of a .mtd say: the type of the value, and of a scalar
/// its value type. kMatrix where nothing is said.
struct FileType {
  DataType data_type = DataType::kMatrix;
  ValueType value_type = ValueType::kDouble;
};
FileType FileTypeOf(const Node& node);
/// matrix, frame, scalar or list, in any case; kUnknown for anything else.
DataType FindDataTypeOfFile(std::string_view name);
FileType FileTypeInMetadata(std::string_view metadata);

/// Options from the attributes of a `read` node and, where it exists, `<path>.mtd`; then from the file's own
/// beginning. kInvalidArgument: unknown option value, contradiction between script and metadata. kDataLoss:
/// malformed metadata.
Result<ReadOptions> ResolveReadOptions(const Node& node, const std::string& path, Files& files);

/// Rows [begin, end); none where nothing was added.
struct RowRange {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;

  void Add(int64_t row) {
    begin = std::min(begin, row);
    end = std::max(end, row + 1);
  }
};

/// What a first look at a file tells; costs one scan (no number is parsed in a csv file).
struct FileSummary {
  Shape shape;                           ///< Of the matrix or frame that read() gives.
  std::shared_ptr<const Schema> schema;  ///< Of a frame.
  int64_t stored = kUnknown;  ///< Upper bound of its non-zeros; kUnknown for csv without nnz in its metadata.
  std::vector<int64_t> chunk_offsets;  ///< Line formats: byte offsets at line starts, and
  std::vector<int64_t> chunk_rows;     ///< the row that begins there (also of binary blocks); last the end.
  /// Lines before each of them: of libsvm and arff, where a line may hold no row, and of csv, where a row may
  /// be several lines.
  std::vector<int64_t> chunk_lines;
  std::vector<int64_t> chunk_stored;  ///< libsvm, arff: non-zeros before each of them.
  int64_t first_index = 1;            ///< libsvm: where indexes of columns begin.
  Format format = Format::kDense;
  bool is_unordered = false;  ///< Cells come in any order: much of the file may be read for any rows.
  std::vector<RowRange> chunk_row_ranges;  ///< Of formats of cells: the rows of which a chunk has cells.
  /// Who wrote a matrix that is column by column there and row by row in the file: what is read is its
  /// transpose. "": nobody of whom that is known.
  std::string column_major_writer;
  /// The table that a matrix is in the file, where it has names of columns or types other than FP64.
  std::shared_ptr<const Schema> table;
  std::string column_groups;          ///< Those of the file, in words; "": it has none.
  std::vector<std::string> warnings;  ///< What of the file is not read, in words.
  int64_t rows_of_group = 1;          ///< So many are decoded together, also to read few of them.
  int64_t text_bytes = 0;             ///< Of the text or binary file; one of another size is another version.
  /// Of a folder of files that are each whole for themselves (ops/io/formats/stacked_files.h): each of them.
  std::vector<FileSummary> files = {};
  std::vector<std::string> file_paths;
  int64_t chunks() const { return static_cast<int64_t>(chunk_offsets.size()) - 1; }
};

/// Looks at the file. Same answer as long as the file does not change (kept by fingerprint).
Result<FileSummary> Summarize(const ReadOptions& options, Files& files);

/// Rows [row_begin, row_end) of the matrix in the file, in the format of the summary.
/// kDataLoss names file, line and field of the first malformed place of the whole file, also when that is in
/// rows before these, which other workers read: so all of them tell the same.
Result<Matrix> ReadRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files);
/// The same of a frame.
Result<Frame> ReadFrameRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                            int64_t row_end, Files& files);

/// A scalar file: one value, or the whole text if it is a string (without the newline at its end).
Result<Scalar> ReadScalar(const ReadOptions& options, Files& files);

struct WriteOptions {
  FileFormat format = FileFormat::kText;
  std::string separator = ",";
  std::string index_separator = ":";
  std::string dataset;  ///< What the matrix is called in formats that give it a name.
  bool header = false;
  bool sparse = false;
  std::optional<Packing> packing;  ///< compression=; else WriteValue goes by the end of the path.
  bool by_groups = false;          ///< compression="groups", of kBinary alone.
  std::string description;
  int64_t parts = 0;        ///< A folder of so many files; 0: one file.
  int64_t rows_before = 0;  ///< Of some of the rows that are written: those before the first of them.
  const std::atomic<bool>* cancelled =
      nullptr;  ///< Polled between pieces; then nothing is written and kCancelled.
};

Result<WriteOptions> ResolveWriteOptions(const Node& node);
/// Writes the value and its .mtd, each whole or not at all.
Status WriteValue(const Value& value, const std::string& path, const WriteOptions& options, Files& files);

std::string_view Name(FileFormat format);  ///< As format= has it (ops/io/formats/format_table.h).
/// Any case; kInvalidArgument naming what Heddle reads and writes otherwise.
Result<FileFormat> ParseFileFormat(std::string_view name);

}  // namespace heddle::ops
