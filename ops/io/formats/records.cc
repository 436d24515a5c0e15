// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/records.h"

#include <algorithm>

#include "ops/io/formats/fields.h"

namespace heddle::ops {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr int64_t kWindowBytes = 1 << 18;

// What is in a chunk that begins at the beginning of a line, if that line begins a record or if it is inside
// of quotes.
struct ChunkScan {
  int64_t records = 0;      // Newlines outside of quotes.
  int64_t first_end = -1;   // Behind the first of them, and
  int64_t first_lines = 0;  // lines up to there.
  bool ends_inside = false;
  int64_t open_quote = -1;  // Then where the quote is, if it is in the chunk.
};

ChunkScan ScanChunk(std::string_view text, const QuoteGrammar& grammar, bool begins_inside) {
  ChunkScan scan;
  size_t at = 0, field = 0;
  int64_t lines = 0;  // before `at`
  const auto go_to = [&](size_t end, bool is_inside) {
    const std::string_view passed = text.substr(at, end - at);
    const int64_t newlines = CountNewlines(passed);
    if (!is_inside && newlines > 0 && scan.first_end < 0) {
      scan.first_end = static_cast<int64_t>(at + passed.find('\n') + 1);
      scan.first_lines = lines + 1;
    }
    lines += newlines;
    scan.records += is_inside ? 0 : newlines;
    at = end;
  };
  if (begins_inside) {
    const size_t closing = FindClosingQuote(text, 0);
    if (closing == kNone) return {.ends_inside = true};
    go_to(closing + 1, true);
  }
  while (true) {
    const size_t opening = grammar.FindOpening(text, at, text.size(), &field);
    if (opening == kNone) break;
    go_to(opening, false);
    const size_t closing = FindClosingQuote(text, opening + 1);
    if (closing == kNone) {
      scan.ends_inside = true;
      scan.open_quote = static_cast<int64_t>(opening);
      return scan;
    }
    go_to(closing + 1, true);
  }
  go_to(text.size(), false);
  return scan;
}

struct ChunkScans {
  int64_t lines = 0;
  int64_t lacks_newline = 0;  // 1: its last line has no newline of its own.
  ChunkScan outside, inside;
};

// The offsets and all beginnings of parts among them.
std::vector<int64_t> WithParts(std::vector<int64_t> offsets, const std::vector<InputFile::Part>& parts) {
  if (parts.size() < 2) return offsets;
  const size_t cut = offsets.size();
  for (const InputFile::Part& part : parts)
    if (part.begin > offsets.front() && part.begin < offsets[cut - 1]) offsets.push_back(part.begin);
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

bool IsBeginOfPart(const std::vector<InputFile::Part>& parts, int64_t offset) {
  const auto part = std::lower_bound(parts.begin(), parts.end(), offset,
                                     [](const InputFile::Part& p, int64_t at) { return p.begin < at; });
  return part != parts.end() && part->begin == offset;
}

// The part that has the byte at `offset`; nullptr where the file is no folder.
const InputFile::Part* PartOf(const std::vector<InputFile::Part>& parts, int64_t offset) {
  const auto next = std::upper_bound(parts.begin(), parts.end(), offset,
                                     [](int64_t at, const InputFile::Part& p) { return at < p.begin; });
  return next == parts.begin() ? nullptr : &*std::prev(next);
}

Result<int64_t> CountLinesBetween(const TextFile& text, int64_t begin, int64_t end) {
  CountedBytes buffer;
  int64_t lines = 0;
  for (int64_t at = begin; at < end; at += kWindowBytes) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                            text.Read(at, std::min(kWindowBytes, end - at), &buffer));
    lines += CountNewlines(piece);
  }
  return lines;
}

// Puts the chunks together, each as it is when what stands before it is known.
class ChunkJoiner {
 public:
  ChunkJoiner(const TextFile& text, const std::vector<InputFile::Part>& parts, int64_t lines_before)
      : text_(text), parts_(parts), lines_(lines_before) {}

  Status Add(int64_t offset, int64_t end, const ChunkScans& scans) {
    const ChunkScan& scan = is_inside_ ? scans.inside : scans.outside;
    if (!is_inside_) Begin(offset, 0, 0);
    if (is_inside_ && scan.first_end >= 0) Begin(offset + scan.first_end, 1, scan.first_lines);
    records_ += scan.records;
    lines_ += scans.lines;
    if (scan.open_quote >= 0) open_quote_ = offset + scan.open_quote;
    is_inside_ = scan.ends_inside;
    if (is_inside_ && (end == text_.size() || IsBeginOfPart(parts_, end)))
      return UnclosedQuote(text_, open_quote_);
    return OkStatus();
  }

  Result<RecordChunks> Finish(int64_t end, bool lacks_newline) && {
    // Blank lines behind the last one that is looked at do not close a quote.
    if (is_inside_) return UnclosedQuote(text_, open_quote_);
    if (chunks_.offsets.empty() || chunks_.offsets.back() != end) Begin(end, lacks_newline ? 1 : 0, 0);
    return std::move(chunks_);
  }

 private:
  void Begin(int64_t offset, int64_t records, int64_t lines) {
    if (!chunks_.offsets.empty() && chunks_.offsets.back() == offset) return;
    chunks_.offsets.push_back(offset);
    chunks_.records.push_back(records_ + records);
    chunks_.lines.push_back(lines_ + lines);
  }

  const TextFile& text_;
  const std::vector<InputFile::Part>& parts_;
  RecordChunks chunks_;
  int64_t records_ = 0;
  int64_t lines_;
  bool is_inside_ = false;
  int64_t open_quote_ = -1;
};

}  // namespace

QuoteGrammar QuoteGrammar::OfFields(const ReadOptions& options) {
  QuoteGrammar grammar;
  grammar.is_of_cells_ = false;
  grammar.any_blanks_ = options.any_blanks;
  grammar.separator_ = options.separator;
  return grammar;
}

size_t QuoteGrammar::FindOpening(std::string_view text, size_t at, size_t end, size_t* field) const {
  if (is_of_cells_ || any_blanks_ || separator_.size() == 1) {
    // What stands before a quote tells.
    const std::string_view until = text.substr(0, end);
    for (size_t quote = until.find('"', at); quote != kNone; quote = until.find('"', quote + 1))
      if (is_of_cells_ ? OpensCell(text, quote) : OpensField(text, quote)) return quote;
    return kNone;
  }
  // Where a separator of several characters ends is known only from where the one before it ends.
  size_t newline = kNone;  // The first one behind what has been looked at.
  while (*field < end) {
    size_t first = *field;
    while (first < end && IsBlank(text[first]) && !text.substr(first).starts_with(separator_)) ++first;
    if (first >= at && first < end && text[first] == '"') return first;
    const size_t from = std::max(at, first);
    if (newline == kNone || newline < from) newline = std::min(text.substr(0, end).find('\n', from), end);
    const size_t separator = separator_.empty() ? kNone : text.substr(0, newline).find(separator_, from);
    *field = separator != kNone ? separator + separator_.size() : newline + 1;
    at = std::max(at, *field);
  }
  return kNone;
}

bool QuoteGrammar::OpensField(std::string_view text, size_t quote) const {
  for (; quote > 0; --quote) {
    const char before = text[quote - 1];
    if (before == '\n' || (any_blanks_ ? IsBlank(before) : before == separator_[0])) return true;
    if (!IsBlank(before)) return false;
  }
  return true;
}

bool QuoteGrammar::OpensCell(std::string_view text, size_t quote) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t at = quote;
  if (at == 0 || !IsBlank(text[at - 1])) return false;
  --at;
  for (int numbers = 0; numbers < 2; ++numbers) {
    if (at == 0 || !is_digit(text[at - 1])) return false;
    while (at > 0 && is_digit(text[at - 1])) --at;
    if (at > 0 && (text[at - 1] == '-' || text[at - 1] == '+')) --at;
    if (numbers == 0 && (at == 0 || !IsBlank(text[at - 1]))) return false;
    while (at > 0 && IsBlank(text[at - 1])) --at;
  }
  return at == 0 || text[at - 1] == '\n';
}

RecordEnd FindRecordEnd(std::string_view text, const QuoteGrammar& grammar) {
  size_t at = 0, field = 0;
  while (true) {
    const size_t newline = std::min(text.find('\n', at), text.size());
    const size_t opening = grammar.FindOpening(text, at, newline, &field);
    if (opening == kNone) return {.newline = newline == text.size() ? kNone : newline};
    const size_t closing = FindClosingQuote(text, opening + 1);
    if (closing == kNone) return {.open_quote = opening};
    at = closing + 1;
  }
}

Result<RecordChunks> CutRecords(const ReadOptions& options, const TextFile& text, int64_t begin,
                                const QuoteGrammar& grammar, ChunkLooks& looks,
                                std::string_view blank_separator) {
  const std::vector<InputFile::Part> parts = text.parts();
  const auto cut = [&](const ShareOfChunks& share) -> Result<std::vector<int64_t>> {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                            CutAtLineEnds(text, begin, options.chunk_bytes, blank_separator, share));
    return WithParts(std::move(offsets), parts);
  };
  HEDDLE_ASSIGN_OR_RETURN(const ChunkLooks::Chunks<ChunkScans> chunks,
                          looks.Look<ChunkScans>(text, cut, [&](std::string_view piece, ChunkScans* scans) {
                            scans->lacks_newline = piece.back() != '\n' ? 1 : 0;
                            // Hardly any file of numbers has a quote.
                            bool has_quote = false;
                            scans->lines = CountNewlines(piece, &has_quote);
                            if (has_quote) {
                              scans->outside = ScanChunk(piece, grammar, false);
                              scans->inside = ScanChunk(piece, grammar, true);
                            } else {
                              scans->outside.records = scans->lines;
                              scans->inside.ends_inside = true;
                            }
                            return true;
                          }));
  const std::vector<int64_t>& offsets = chunks.offsets;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t lines_before, CountLinesBetween(text, 0, begin));
  ChunkJoiner joiner(text, parts, lines_before);
  for (size_t i = 0; i < chunks.records.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(joiner.Add(offsets[i], offsets[i + 1], chunks.records[i]));
  const bool lacks_newline = !chunks.records.empty() && chunks.records.back().lacks_newline != 0;
  return std::move(joiner).Finish(offsets.back(), lacks_newline);
}

RecordReader::RecordReader(const TextFile& text, const QuoteGrammar& grammar, int64_t begin)
    : text_(text), grammar_(grammar), parts_(text.parts()), window_(text, begin) {}

bool RecordReader::Next(std::string_view* record) {
  while (status_.ok()) {
    const std::string_view rest = window_.rest();
    const RecordEnd end = FindRecordEnd(rest, grammar_);
    if (end.newline != kNone) {
      *record = rest.substr(0, end.newline);
      window_.Take(end.newline + 1);
      lines_ += CountNewlines(*record) + 1;
      return true;
    }
    if (window_.Lengthen(EndOfPart(offset()))) continue;
    status_ = window_.status();
    if (!status_.ok()) return false;
    if (end.open_quote != kNone) {
      status_ = UnclosedQuote(text_, offset() + static_cast<int64_t>(end.open_quote));
      return false;
    }
    if (rest.empty()) return false;
    *record = rest;
    window_.Take(rest.size());
    ++lines_;
    return true;
  }
  return false;
}

int64_t RecordReader::EndOfPart(int64_t offset) const {
  const auto next = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                     [](int64_t at, const InputFile::Part& p) { return at < p.begin; });
  return next == parts_.end() ? text_.size() : next->begin;
}

Status UnclosedQuote(const TextFile& text, int64_t quote) {
  const std::vector<InputFile::Part> parts = text.parts();
  const InputFile::Part* const part = PartOf(parts, quote);
  HEDDLE_ASSIGN_OR_RETURN(int64_t line, CountLinesBetween(text, part == nullptr ? 0 : part->begin, quote));
  if (part != nullptr) line += part->hidden_lines;
  return DataLoss("cannot read '{}': line {}: nothing closes the quote that begins here",
                  part == nullptr ? text.path() : part->path, line + 1)
      .WithNote("a field that begins with a quote ends with one; quotes inside it are doubled");
}

namespace {

std::vector<std::string> ContentsOf(std::string_view record, const ReadOptions& options) {
  std::vector<std::string> contents;
  FieldCutter fields(LineBody(record, options), options);
  std::string room;
  for (std::string_view field; fields.Next(&field);) contents.emplace_back(ContentOf(field, &room));
  return contents;
}

// What is to be left out of parts that begin with the names of the first one: these, written in any way.
class NamesOfParts {
 public:
  NamesOfParts(std::string_view names, const TextFile& text, const ReadOptions& options)
      : names_(ContentsOf(names, options)),
        sorted_(Sorted(names_)),
        any_number_(std::any_of(names_.begin(), names_.end(),
                                [](const std::string& name) { return ParseNumber(name).has_value(); })),
        most_bytes_(kMostLonger * static_cast<int64_t>(names.size()) + 2),
        text_(text),
        options_(options) {}

  // kDataLoss where a part has them in another order.
  Result<InputFile::Beginning> Find(const InputFile::Part& part, int64_t end, const std::string& first) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view beginning,
                            text_.Read(part.begin, std::min(end - part.begin, most_bytes_), &buffer_));
    const size_t newline = FindRecordEnd(beginning, grammar_).newline;
    if (newline == kNone) return InputFile::Beginning();  // It is longer than the names can be.
    const std::string_view record = beginning.substr(0, newline);
    const std::vector<std::string> fields = ContentsOf(record, options_);
    if (fields == names_)
      return InputFile::Beginning{static_cast<int64_t>(newline) + 1, CountNewlines(record) + 1};
    if (any_number_ || Sorted(fields) != sorted_) return InputFile::Beginning();
    return DataLoss("cannot read '{}': its names are those of '{}' in another order", part.path, first)
        .WithNote("the parts of a folder have the same columns in the same order");
  }

 private:
  static constexpr int64_t kMostLonger = 8;  // with quotes and blanks

  static std::vector<std::string> Sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::vector<std::string> names_, sorted_;
  const bool any_number_;  // Then a line of the same fields in another order may be a row.
  const int64_t most_bytes_;
  const TextFile& text_;
  const ReadOptions& options_;
  const QuoteGrammar grammar_ = QuoteGrammar::OfFields(options_);
  CountedBytes buffer_;
};

}  // namespace

Result<TextFile> OpenText(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(TextFile text, TextFile::Open(options.path, files));
  const std::vector<InputFile::Part> parts = text.parts();
  if (options.format != FileFormat::kCsv || !options.header.value_or(false) || parts.size() < 2) return text;
  const QuoteGrammar grammar = QuoteGrammar::OfFields(options);
  RecordReader reader(text, grammar);
  std::string_view names;
  if (!reader.Next(&names)) return text;  // Whoever reads it says why.
  NamesOfParts repeated(names, text, options);
  std::vector<InputFile::Beginning> beginnings(parts.size());
  for (size_t i = 1; i < parts.size(); ++i) {
    const int64_t end = i + 1 < parts.size() ? parts[i + 1].begin : text.size();
    HEDDLE_ASSIGN_OR_RETURN(beginnings[i], repeated.Find(parts[i], end, parts[0].path));
  }
  text.LeaveOut(beginnings);
  return text;
}

RecordPlace RecordPlaces::Of(const char* record) const {
  RecordPlace place = {.path = options_.path};
  const int64_t offset = summary_.chunk_offsets[chunk_];
  place.line = summary_.chunk_lines[chunk_] + 1 + std::count(piece_.data(), record, '\n');
  const std::vector<InputFile::Part> parts = text_.parts();
  const InputFile::Part* const part = PartOf(parts, offset);
  if (part == nullptr) return place;
  place.path = part->path;
  if (part == parts.data()) return place;
  // Every part begins a chunk.
  const std::vector<int64_t>& offsets = summary_.chunk_offsets;
  const auto first = std::lower_bound(offsets.begin(), offsets.end(), part->begin);
  place.line += part->hidden_lines - summary_.chunk_lines[static_cast<size_t>(first - offsets.begin())];
  return place;
}

}  // namespace heddle::ops
