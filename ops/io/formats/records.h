// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/lines.h"

// Files of lines in which a text in double quotes may hold line ends: a record ends at the first newline that
// is outside of quotes. Whether a place of a file is inside of quotes depends on all that stands before it.
namespace heddle::ops {

/// Which quotes open a text in quotes; all others are characters like any other.
class QuoteGrammar {
 public:
  /// Of csv: at the beginning of a field, blanks before it aside.
  static QuoteGrammar OfFields(const ReadOptions& options);
  /// Of frames in format text, "row column cell": right behind the one blank before the cell.
  static QuoteGrammar OfCells() { return {}; }

  /// The next opening quote in text[at, end); npos: none. `text` begins with a record, `*field` is where the
  /// field begins in which `at` is.
  size_t FindOpening(std::string_view text, size_t at, size_t end, size_t* field) const;

 private:
  bool OpensField(std::string_view text, size_t quote) const;
  static bool OpensCell(std::string_view text, size_t quote);

  bool is_of_cells_ = true;
  bool any_blanks_ = false;
  std::string_view separator_;
};

/// The end of a record.
struct RecordEnd {
  size_t newline = std::string_view::npos;     ///< npos: the text ends before the record does.
  size_t open_quote = std::string_view::npos;  ///< Then the quote that is open at the end, if one is.
};
/// `text` begins with a record.
RecordEnd FindRecordEnd(std::string_view text, const QuoteGrammar& grammar);

/// Cuts the first record (without its newline) off `rest`.
inline std::string_view TakeRecord(std::string_view* rest, const QuoteGrammar& grammar) {
  const size_t newline = rest->find('\n');
  const size_t size = newline == std::string_view::npos ? rest->size() : newline;
  if (rest->substr(0, size).find('"') == std::string_view::npos) return TakeLine(rest);
  const size_t end = FindRecordEnd(*rest, grammar).newline;
  const std::string_view record = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view() : rest->substr(end + 1);
  return record;
}

/// A text cut into chunks of whole records, for parallel parsing. Each part of a folder begins a chunk.
struct RecordChunks {
  std::vector<int64_t> offsets;  ///< offsets[i] is where chunk i starts; one more entry for the end.
  std::vector<int64_t> records;  ///< Records before chunk i, from `begin` on; the last entry counts all.
  std::vector<int64_t> lines;    ///< Lines before chunk i, from the beginning of the text.
};

/// Chunks of about options.chunk_bytes from `begin` on, where a record begins; blank lines at the end as
/// CutLines has them. kDataLoss: a quote that nothing closes in its part, with the line where it stands.
Result<RecordChunks> CutRecords(const ReadOptions& options, const TextFile& text, int64_t begin,
                                const QuoteGrammar& grammar, ChunkLooks& looks,
                                std::string_view blank_separator = "");

/// The records of a text from `begin` on, one after the other.
class RecordReader {
 public:
  RecordReader(const TextFile& text, const QuoteGrammar& grammar, int64_t begin = 0);

  /// The next record without its newline; valid until the next call. False at the end and when reading
  /// fails, or a quote is not closed.
  bool Next(std::string_view* record);
  const Status& status() const { return status_; }
  /// Where the record begins that Next would give, and the lines before it from `begin` on.
  int64_t offset() const { return window_.offset(); }
  int64_t lines() const { return lines_; }

 private:
  int64_t EndOfPart(int64_t offset) const;

  const TextFile& text_;
  const QuoteGrammar& grammar_;
  std::vector<InputFile::Part> parts_;
  TextWindow window_;  // Never beyond the end of a part.
  int64_t lines_ = 0;
  Status status_;
};

/// "cannot read 'PATH': line N: " with the place of the quote that nothing closes.
Status UnclosedQuote(const TextFile& text, int64_t quote);

/// The text of a file in the format of the options. Of a folder of csv files that all begin with the same
/// names only the first has them.
Result<TextFile> OpenText(const ReadOptions& options, Files& files);

/// Where a record stands, for messages.
struct RecordPlace {
  std::string path;  ///< Of a folder the file in it.
  int64_t line = 0;  ///< From 1 in that file: the first line of the record.
};
/// Of what is read of a chunk.
class RecordPlaces {
 public:
  RecordPlaces(const ReadOptions& options, const FileSummary& summary, const TextFile& text, size_t chunk,
               std::string_view piece)
      : options_(options), summary_(summary), text_(text), chunk_(chunk), piece_(piece) {}
  /// `record` points into the piece.
  RecordPlace Of(const char* record) const;

 private:
  const ReadOptions& options_;
  const FileSummary& summary_;
  const TextFile& text_;
  const size_t chunk_;
  const std::string_view piece_;
};

}  // namespace heddle::ops
