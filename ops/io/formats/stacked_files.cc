// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/stacked_files.h"

#include <algorithm>
#include <utility>

#include "ops/frame/row_pieces.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// Sizes that the script or the metadata say are those of all files together.
ReadOptions OptionsOfFile(const ReadOptions& options, const std::string& path) {
  ReadOptions own = options;
  own.path = path;
  own.rows = own.columns = own.nonzeros = kUnknown;
  own.by_groups = false;  // Each file has dictionaries of its own.
  return own;
}

bool HaveSameColumns(const FileSummary& a, const FileSummary& b) {
  if (a.shape.columns != b.shape.columns || (a.schema == nullptr) != (b.schema == nullptr)) return false;
  return a.schema == nullptr || *a.schema == *b.schema;
}

// Calls take(file, begin, end) for the files that have some of the rows; begin and end count in the file.
template <typename Take>
Status VisitFiles(const FileSummary& summary, int64_t row_begin, int64_t row_end, const Take& take) {
  int64_t first = 0;
  for (size_t f = 0; f < summary.files.size(); ++f) {
    const int64_t rows = summary.files[f].shape.rows;
    const int64_t begin = std::clamp<int64_t>(row_begin - first, 0, rows);
    const int64_t end = std::clamp<int64_t>(row_end - first, 0, rows);
    if (begin < end || (row_begin == row_end && f == 0)) HEDDLE_RETURN_IF_ERROR(take(f, begin, end));
    first += rows;
  }
  return OkStatus();
}

template <typename Read>
Result<Value> JoinFiles(const FileSummary& summary, int64_t row_begin, int64_t row_end, const Read& read) {
  std::vector<Value> rows;
  HEDDLE_RETURN_IF_ERROR(VisitFiles(summary, row_begin, row_end, [&](size_t f, int64_t begin, int64_t end) {
    auto piece = read(f, begin, end);
    if (piece.ok()) rows.emplace_back(*std::move(piece));
    return piece.status();
  }));
  std::vector<const Value*> pieces;
  for (const Value& piece : rows) pieces.push_back(&piece);
  return JoinRows(pieces);
}

}  // namespace

bool AreStackedFiles(const ReadOptions& options, Files& files) {
  return EntryOf(*options.format).in_folders == InFolders::kFileByFile && files.IsDirectory(options.path);
}

Result<FileSummary> SummarizeStacked(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> folder, files.Open(options.path));
  if (options.transposed)
    return DataLoss("cannot read '{}': transposed= is of one array, a folder holds rows of one", options.path)
        .WithNote("t() transposes a matrix");
  const FormatEntry& entry = EntryOf(*options.format);
  FileSummary all;
  all.shape = {0, 0};
  all.stored = 0;
  std::string first_path;
  for (const InputFile::Part& part : folder->parts()) {
    HEDDLE_ASSIGN_OR_RETURN(FileSummary file, entry.summarize(OptionsOfFile(options, part.path), files));
    if (all.files.empty()) {
      first_path = part.path;
      all.schema = file.schema;
      all.shape.columns = file.shape.columns;
    } else if (!HaveSameColumns(file, all.files[0])) {
      return DataLoss("cannot read '{}': it has other columns than '{}'", part.path, first_path)
          .WithNote("the files of a folder are one below the other");
    }
    for (size_t c = 0; c + 1 < file.chunk_rows.size(); ++c)
      all.chunk_rows.push_back(all.shape.rows + file.chunk_rows[c]);
    all.stored = all.stored == kUnknown || file.stored == kUnknown ? kUnknown : all.stored + file.stored;
    all.shape.rows += file.shape.rows;
    all.text_bytes += file.text_bytes;
    all.file_paths.push_back(part.path);
    all.files.push_back(std::move(file));
  }
  if (all.files.empty())
    return DataLoss("cannot read '{}': it holds no data", options.path)
        .WithNote("files of folders inside of it are not looked for");
  all.chunk_rows.push_back(all.shape.rows);
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, all.shape));
  if (all.stored == kUnknown) all.stored = options.nonzeros;
  if (options.data_type != DataType::kFrame) all.format = ChooseFormat(all.shape, all.stored);
  for (FileSummary& file : all.files) file.format = all.format;
  return all;
}

Result<Matrix> ReadStackedMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                                 int64_t row_end, Files& files) {
  const FormatEntry& entry = EntryOf(*options.format);
  const auto read = [&](size_t f, int64_t begin, int64_t end) {
    return entry.read(OptionsOfFile(options, summary.file_paths[f]), summary.files[f], begin, end, files);
  };
  if (summary.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(const Value joined, JoinFiles(summary, row_begin, row_end, read));
    return joined.matrix();
  }
  // Memory holds one file beside all cells.
  const int64_t columns = summary.shape.columns;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(row_end - row_begin, columns));
  double* out = cells.mutable_data();
  HEDDLE_RETURN_IF_ERROR(
      VisitFiles(summary, row_begin, row_end, [&](size_t f, int64_t begin, int64_t end) -> Status {
        HEDDLE_ASSIGN_OR_RETURN(const Matrix rows, read(f, begin, end));
        out = std::copy_n(rows.data(), rows.cells(), out);
        return OkStatus();
      }));
  return cells;
}

Result<Frame> ReadStackedFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                               int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(
      const Value joined, JoinFiles(summary, row_begin, row_end, [&](size_t f, int64_t begin, int64_t end) {
        return EntryOf(*options.format)
            .read_frame(OptionsOfFile(options, summary.file_paths[f]), summary.files[f], begin, end, files);
      }));
  return joined.frame();
}

}  // namespace heddle::ops
