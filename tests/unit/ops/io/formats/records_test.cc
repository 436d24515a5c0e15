// SPDX-License-Identifier: Apache-2.0
// Records beside a reading of one character after the other.
#include "ops/io/formats/records.h"

#include <algorithm>
#include <optional>

#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

struct Cut {
  std::vector<std::string> records;
  std::optional<size_t> open_quote;
};

bool IsBlankByHand(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// `cells`: of frames in format text.
Cut CutByHand(const std::string& text, const std::string& separator, bool any_blanks, bool cells) {
  Cut cut;
  std::string record, line;  // The record, and what of it stands before the field or cell.
  size_t i = 0;
  bool at_field = true;
  const auto starts = [&](size_t at) {
    return any_blanks ? IsBlankByHand(text[at]) : text.compare(at, separator.size(), separator) == 0;
  };
  const auto begins_cell = [&] {
    size_t at = 0;
    const auto skip = [&](const auto& is) {
      const size_t from = at;
      while (at < record.size() && is(record[at])) ++at;
      return at > from;
    };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    skip(IsBlankByHand);
    if (!skip(digit) || !skip(IsBlankByHand) || !skip(digit)) return false;
    return at + 1 == record.size() && IsBlankByHand(record[at]);
  };
  while (i < text.size()) {
    const char c = text[i];
    const bool opens = c == '"' && (cells ? begins_cell() : at_field);
    if (opens) {
      const size_t open = i++;
      record += '"';
      while (i < text.size()) {
        record += text[i];
        if (text[i++] != '"') continue;
        if (i < text.size() && text[i] == '"')
          record += text[i++];
        else
          goto closed;
      }
      cut.open_quote = open;
      return cut;
    closed:
      at_field = false;
    } else if (c == '\n') {
      cut.records.push_back(record);
      record.clear();
      at_field = true;
      ++i;
    } else if (!cells && starts(i)) {
      const size_t length = any_blanks ? 1 : separator.size();
      record += text.substr(i, length);
      i += length;
      at_field = true;
    } else {
      record += c;
      ++i;
      at_field = at_field && IsBlankByHand(c);
    }
  }
  if (!record.empty()) cut.records.push_back(record);
  return cut;
}

class RecordsTest : public FormatsTest {
 protected:
  // Of the file "f": its records, chunk by chunk and one after the other.
  void Check(const Cut& expected, const ReadOptions& options, const QuoteGrammar& grammar) {
    const Result<TextFile> opened = TextFile::Open("f", *files_);
    if (!opened.ok()) return;  // A carriage return in its first line.
    const TextFile& text = *opened;
    ChunkLooks looks;
    const Result<RecordChunks> chunks = CutRecords(options, text, 0, grammar, looks, "\t");
    RecordReader reader(text, grammar);
    std::vector<std::string> read;
    for (std::string_view record; reader.Next(&record);) read.emplace_back(record);
    if (expected.open_quote) {
      EXPECT_FALSE(reader.status().ok());
      ASSERT_FALSE(chunks.ok());
      EXPECT_EQ(chunks.status().message(), reader.status().message());
      EXPECT_EQ(chunks.status().message(), UnclosedQuote(text, *expected.open_quote).message());
      return;
    }
    EXPECT_EQ(read, expected.records);
    ASSERT_TRUE(chunks.ok()) << chunks.status().ToString();
    ASSERT_EQ(chunks->records.size(), chunks->offsets.size());
    ASSERT_EQ(chunks->lines.size(), chunks->offsets.size());
    size_t record = 0;
    int64_t line = 0;
    CountedBytes buffer;
    for (size_t c = 0; c + 1 < chunks->offsets.size(); ++c) {
      ASSERT_EQ(chunks->records[c], static_cast<int64_t>(record));
      ASSERT_EQ(chunks->lines[c], line);
      ASSERT_LT(chunks->offsets[c], chunks->offsets[c + 1]);
      std::string_view rest =
          *text.Read(chunks->offsets[c], chunks->offsets[c + 1] - chunks->offsets[c], &buffer);
      while (!rest.empty()) {
        ASSERT_LT(record, expected.records.size());
        const std::string_view taken = TakeRecord(&rest, grammar);
        line += std::count(taken.begin(), taken.end(), '\n') + 1;
        ASSERT_EQ(taken, expected.records[record++]);
      }
    }
    ASSERT_EQ(chunks->records.back(), static_cast<int64_t>(record));
    // What is not counted is blank.
    for (; record < expected.records.size(); ++record)
      EXPECT_EQ(expected.records[record].find_first_not_of(" \r"), std::string::npos);
  }
};

TEST_F(RecordsTest, ChunksEndWhereRecordsEnd) {
  SeededRandom random(7);
  struct Table {
    std::string separator, letters;
    bool any_blanks = false, cells = false;
  };
  const Table tables[] = {{",", "\"\"\",\n\nx \r"},  {" ", "\"\" \n\nx\t"},
                          {"\t", "\"\"\t\n x"},      {"||", "\"\"||\n x"},
                          {",,", "\"\",,,\n x"},     {", ", "\"\",  \nx"},
                          {" ", "\"\" \nx\t", true}, {"", "\"1 1 \n\nx2\"", false, true}};
  for (int round = 0; round < 4000; ++round) {
    const Table& table = tables[static_cast<size_t>(round) % std::size(tables)];
    std::string text;
    const size_t length = random.Below(60);
    for (size_t i = 0; i < length; ++i) {
      if (table.cells && (text.empty() || text.back() == '\n') && random.Below(4) > 0) text += "1 2 \"";
      text += table.letters[random.Below(table.letters.size())];
    }
    SCOPED_TRACE(text + "|" + table.separator);
    Put("f", text);
    ReadOptions options;
    options.path = "f";
    options.separator = table.separator;
    options.any_blanks = table.any_blanks;
    options.chunk_bytes = 1 + static_cast<int64_t>(random.Below(30));
    const Cut expected = CutByHand(text, table.separator, table.any_blanks, table.cells);
    Check(expected, options, table.cells ? QuoteGrammar::OfCells() : QuoteGrammar::OfFields(options));
    if (HasFailure()) return;
  }
}

// A record may be longer than a chunk, a window of a reader and a whole part of what threads share.
TEST_F(RecordsTest, LongTextsInQuotes) {
  std::string text = "a,\"";
  for (int i = 0; i < 300'000; ++i) text += i % 2 == 0 ? "line\n" : ",\"\"\n";
  text += "\"\nb,c\n";
  Put("f", text);
  ReadOptions options;
  options.path = "f";
  options.separator = ",";
  options.chunk_bytes = 1000;
  for (const int threads : {1, 4}) {
    Arena arena(threads);
    arena.Execute(
        [&] { Check(CutByHand(text, ",", false, false), options, QuoteGrammar::OfFields(options)); });
  }
}

}  // namespace
}  // namespace heddle::ops
