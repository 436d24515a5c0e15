// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/file_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>

#include "core/recently_used.h"
#include "core/text/utf8.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"
#include "ops/io/formats/shared_look.h"
#include "ops/io/formats/stacked_files.h"

namespace heddle::ops {
namespace {

// What summaries depend on besides the file's bytes.
std::string SummaryKey(const ReadOptions& options, const std::string& fingerprint) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", options.path, fingerprint,
                     Name(options.data_type), options.schema, Name(*options.format), options.rows,
                     options.columns, options.nonzeros, options.header.value_or(false), options.any_blanks,
                     options.separator, options.index_separator, options.dataset, options.chunk_bytes,
                     options.zero_based ? static_cast<int>(*options.zero_based) : -1, options.transposed);
}

// What is wrong first in the rows before `row_end`; Ok when nothing is. `read` reads rows [begin, end).
template <typename Read>
Status FirstFault(const FileSummary& summary, int64_t row_end, const Read& read) {
  constexpr size_t kChunksAtOnce = 16;  // some megabytes of cells, which are thrown away
  const std::vector<int64_t>& rows = summary.chunk_rows;
  for (size_t c = 0; c + 1 < rows.size() && rows[c] < row_end; c += kChunksAtOnce) {
    const int64_t end = std::min(row_end, rows[std::min(c + kChunksAtOnce, rows.size() - 1)]);
    HEDDLE_RETURN_IF_ERROR(read(rows[c], end).status());
  }
  return OkStatus();
}

// The worker of earlier rows may have met an earlier fault. Which of the two is heard first is chance, so
// both tell the same one.
template <typename Read>
auto ReadOrFirstFault(const FileSummary& summary, int64_t row_begin, int64_t row_end, const Read& read) {
  auto rows = read(row_begin, row_end);
  if (rows.ok() || rows.status().code() != StatusCode::kDataLoss) return rows;
  if (const Status first = FirstFault(summary, row_begin, read); !first.ok()) rows = first;
  return rows;
}

// Without blanks and newlines around it.
std::string_view TrimLines(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\f\v\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// A first look at a file that nobody has looked at.
Result<FileSummary> LookAt(const ReadOptions& options, ChunkLooks& looks, Files& files) {
  const FormatEntry& entry = EntryOf(*options.format);
  if (!entry.IsText())
    return AreStackedFiles(options, files) ? SummarizeStacked(options, files)
                                           : entry.summarize(options, files);
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(options, files));
  const auto summarize =
      options.data_type == DataType::kFrame ? entry.summarize_text_frame : entry.summarize_text;
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, summarize(options, text, looks));
  summary.text_bytes = text.size();
  return summary;
}

// What this process has found out about files.
class KnownSummaries {
 public:
  std::optional<FileSummary> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const FileSummary* const found = known_.Find(key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  FileSummary Add(const std::string& key, FileSummary summary) {
    const std::lock_guard lock(mutex_);
    return known_.Add(key, std::move(summary));
  }

 private:
  std::mutex mutex_;
  RecentlyUsedMap<std::string, FileSummary> known_{256};
};

KnownSummaries& Known() {
  static KnownSummaries known;
  return known;
}

}  // namespace

Result<FileSummary> Summarize(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string fingerprint, files.Fingerprint(options.path));
  const std::string key = SummaryKey(options, fingerprint);
  if (std::optional<FileSummary> found = Known().Find(key)) return *std::move(found);
  ChunkLooks looks;
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, LookAt(options, looks, files));
  return Known().Add(key, std::move(summary));
}

bool CanShareLook(const ReadOptions& options) {
  const FormatEntry& entry = EntryOf(*options.format);
  return options.data_type == DataType::kFrame ? entry.shares_looks_at_frames : entry.shares_looks;
}

bool IsSummarized(const ReadOptions& options, Files& files) {
  const Result<std::string> fingerprint = files.Fingerprint(options.path);
  return fingerprint.ok() && Known().Find(SummaryKey(options, *fingerprint)).has_value();
}

std::string LookAtShare(const ReadOptions& options, const ShareOfChunks& share, Files& files) {
  ChunkLooks looks = ChunkLooks::OfShare(share);
  // That it ends behind the share is no failure; all others are met again by who looks at the whole.
  LookAt(options, looks, files).status();
  return looks.share() ? looks.share()->ToBytes() : std::string();
}

void AddSummary(const ReadOptions& options, const std::vector<std::string>& shares, Files& files) {
  std::vector<LookedShare> looked;
  for (const std::string& bytes : shares) {
    std::optional<LookedShare> share = LookedShare::Parse(bytes);
    if (!share) return;
    looked.push_back(*std::move(share));
  }
  const Result<std::string> fingerprint = files.Fingerprint(options.path);
  if (!fingerprint.ok()) return;
  ChunkLooks looks = ChunkLooks::Of(std::move(looked));
  Result<FileSummary> summary = LookAt(options, looks, files);
  // Of the version that all ranks have looked at.
  const bool is_same = files.versions() == nullptr || files.versions()->CheckUnchanged(options.path).ok();
  if (summary.ok() && is_same) Known().Add(SummaryKey(options, *fingerprint), *std::move(summary));
}

Result<Matrix> ReadRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files) {
  const FormatEntry& entry = EntryOf(*options.format);
  if (!entry.IsText())
    return ReadOrFirstFault(summary, row_begin, row_end, [&](int64_t begin, int64_t end) {
      return summary.files.empty() ? entry.read(options, summary, begin, end, files)
                                   : ReadStackedMatrix(options, summary, begin, end, files);
    });
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(options, files));
  if (summary.text_bytes != text.size()) return ItChanged(options);
  return ReadOrFirstFault(summary, row_begin, row_end, [&](int64_t begin, int64_t end) {
    return entry.read_text(options, summary, text, begin, end);
  });
}

Result<Frame> ReadFrameRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                            int64_t row_end, Files& files) {
  const FormatEntry& entry = EntryOf(*options.format);
  if (!entry.IsText())
    return ReadOrFirstFault(summary, row_begin, row_end, [&](int64_t begin, int64_t end) {
      return summary.files.empty() ? entry.read_frame(options, summary, begin, end, files)
                                   : ReadStackedFrame(options, summary, begin, end, files);
    });
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(options, files));
  if (summary.text_bytes != text.size()) return ItChanged(options);
  return ReadOrFirstFault(summary, row_begin, row_end, [&](int64_t begin, int64_t end) {
    return entry.read_text_frame(options, summary, text, begin, end);
  });
}

Result<Scalar> ReadScalar(const ReadOptions& options, Files& files) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  HEDDLE_ASSIGN_OR_RETURN(std::string text, ReadWhole(options.path, kMostBytes, files));
  if (options.value_type == ValueType::kString) {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return Scalar(std::move(text));
  }
  const std::string_view value = TrimLines(text);
  if (value.find('\n') != std::string_view::npos)
    return DataLoss("cannot read '{}': a scalar is one value, the file has several lines", options.path);
  const auto refuse = [&](std::string_view what) {
    return DataLoss("cannot read '{}': '{}' is not {}", options.path, ShownInLine(value, 40), what);
  };
  if (options.value_type == ValueType::kBoolean) {
    const std::string word = Lower(value);
    if (word != "true" && word != "false") return refuse("TRUE or FALSE");
    return Scalar(word == "true");
  }
  if (options.value_type == ValueType::kInteger) {
    int64_t whole = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), whole);
    if (error == std::errc() && end == value.data() + value.size()) return Scalar(whole);
  }
  const std::optional<double> number = ParseNumber(value);
  if (!number) return refuse("a number");
  if (options.value_type != ValueType::kInteger) return Scalar(*number);
  if (*number != std::trunc(*number) || std::abs(*number) >= 0x1p63) return refuse("an int");
  return Scalar(TruncateToInteger(*number));
}

}  // namespace heddle::ops
