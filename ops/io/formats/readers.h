// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/lines.h"

// One pair of functions per format; file_format.h is the front door.
namespace heddle::ops {

class ChunkLooks;  // ops/io/formats/chunk_looks.h

Result<FileSummary> SummarizeCsv(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Matrix> ReadCsv(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                       int64_t row_begin, int64_t row_end);

/// The same of a frame: types from the schema, names from the line before the rows where there is one.
Result<FileSummary> SummarizeCsvFrame(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Frame> ReadCsvFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                           int64_t row_begin, int64_t row_end);

/// The same of a frame in format text: "row column cell" in any order, a cell that no line has is missing.
Result<FileSummary> SummarizeTextFrame(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Frame> ReadTextFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                            int64_t row_begin, int64_t row_end);

Result<FileSummary> SummarizeLibsvm(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Matrix> ReadLibsvm(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                          int64_t row_begin, int64_t row_end);
/// A label and at least one index:value pair.
bool LooksLikeLibsvm(std::string_view line, std::string_view index_separator);

/// Whether a file that begins so is a binary file of SystemDS, which Heddle does not read.
bool IsBinaryOfSystemDs(std::string_view beginning);

/// kText and kMatrixMarket: one cell per line, in any order.
Result<FileSummary> SummarizeCells(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Matrix> ReadCells(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                         int64_t row_begin, int64_t row_end);

/// The same for an exchange: the cells in this rank's share of the chunks, by the rank that keeps their rows,
/// which are cut so (ops/io/formats/text/cell_exchange.h).
Result<std::vector<Matrix>> CellsByRank(const ReadOptions& options, const FileSummary& summary,
                                        const TextFile& text, const ShareOfChunks& share,
                                        std::span<const int64_t> cuts);

/// Sparse when more than one column and at most this share of cells is stored.
constexpr double kSparseBelow = 0.4;
Format ChooseFormat(const Shape& shape, int64_t stored);

inline Status ItChanged(const ReadOptions& options) {
  return DataLoss("cannot read '{}': it changed while it was read", options.path);
}

/// Of what went wrong in several threads, what stands first in the file, whoever met it first.
class FirstFailure {
 public:
  void Add(int64_t line, const Status& status) {
    const std::lock_guard lock(mutex_);
    if (line >= line_) return;
    line_ = line;
    status_ = status;
  }
  const Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  int64_t line_ = std::numeric_limits<int64_t>::max();
  Status status_;
};

}  // namespace heddle::ops
