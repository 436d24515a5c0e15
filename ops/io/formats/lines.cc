// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/lines.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kPiece = int64_t{1} << 12;  // most lines end within one

// Behind the newline that ends the line at `at`, or the end of the text.
Result<int64_t> EndOfLine(const TextFile& text, int64_t at, CountedBytes* buffer) {
  while (at < text.size()) {
    const int64_t count = std::min(kPiece, text.size() - at);
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece, text.Read(at, count, buffer));
    if (const size_t newline = piece.find('\n'); newline != std::string_view::npos)
      return at + static_cast<int64_t>(newline) + 1;
    at += count;
  }
  return text.size();
}

// Where the last line ends that holds something.
Result<int64_t> EndOfData(const TextFile& text, int64_t begin, std::string_view blank_separator,
                          CountedBytes* buffer) {
  int64_t end = text.size();
  int64_t tail = begin;  // where the lines of blanks alone begin
  while (end > begin) {
    const int64_t count = std::min(kPiece, end - begin);
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece, text.Read(end - count, count, buffer));
    const auto last =
        std::find_if(piece.rbegin(), piece.rend(), [](char c) { return !IsBlank(c) && c != '\n'; });
    if (last == piece.rend()) {
      end -= count;
      continue;
    }
    const int64_t place = end - count + (piece.rend() - last) - 1;
    HEDDLE_ASSIGN_OR_RETURN(tail, EndOfLine(text, place, buffer));
    break;
  }
  if (blank_separator.empty() || tail == text.size()) return tail;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view blanks, text.Read(tail, text.size() - tail, buffer));
  const size_t last = blanks.rfind(blank_separator);
  if (last == std::string_view::npos) return tail;
  return EndOfLine(text, tail + static_cast<int64_t>(last), buffer);
}

}  // namespace

int64_t CountNewlines(std::string_view text) {
  bool has_quote = false;
  return CountNewlines(text, &has_quote);
}

int64_t CountLines(std::string_view chunk) {
  return CountNewlines(chunk) + (!chunk.empty() && chunk.back() != '\n');
}

int64_t CountNewlines(std::string_view text, bool* has_quote) {
  const char* const data = text.data();
  const auto size = static_cast<int64_t>(text.size());
  int64_t count = 0;
  int64_t i = 0;
  const __m256i newline = _mm256_set1_epi8('\n'), quote = _mm256_set1_epi8('"');
  __m256i quotes = _mm256_setzero_si256();
  for (; i + 32 <= size; i += 32) {
    const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i));
    count +=
        __builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, newline))));
    quotes = _mm256_or_si256(quotes, _mm256_cmpeq_epi8(block, quote));
  }
  *has_quote = _mm256_movemask_epi8(quotes) != 0;
  for (; i < size; ++i) {
    count += data[i] == '\n';
    *has_quote = *has_quote || data[i] == '"';
  }
  return count;
}

Result<std::vector<int64_t>> CutAtLineEnds(const TextFile& text, int64_t begin, int64_t chunk_bytes,
                                           std::string_view blank_separator, const ShareOfChunks& share) {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t end, EndOfData(text, begin, blank_separator, &buffer));
  const int64_t chunks = (end - begin + chunk_bytes - 1) / chunk_bytes;
  const auto first_of = [&](int64_t number) {
    return chunks / share.shares * number + chunks % share.shares * number / share.shares;
  };
  std::vector<int64_t> offsets;
  for (int64_t chunk = first_of(share.number); chunk <= first_of(share.number + 1); ++chunk) {
    const int64_t least = chunk < chunks ? begin + chunk * chunk_bytes : end;
    // Within a long line no chunk begins.
    if (!offsets.empty() && offsets.back() >= least) continue;
    int64_t place = least;
    if (chunk > 0 && chunk < chunks) {
      HEDDLE_ASSIGN_OR_RETURN(place, EndOfLine(text, least - 1, &buffer));
    }
    offsets.push_back(std::min(place, end));
  }
  return offsets;
}

Status VisitChunks(const TextFile& text, const std::vector<int64_t>& offsets,
                   const std::function<void(size_t chunk, std::string_view text)>& visit) {
  std::mutex mutex;
  Status failure;
  ParallelFor(static_cast<int64_t>(offsets.size()) - 1, 1, [&](int64_t from, int64_t to) {
    CountedBytes own;
    for (auto c = static_cast<size_t>(from); c < static_cast<size_t>(to); ++c) {
      const Result<std::string_view> chunk = text.Read(offsets[c], offsets[c + 1] - offsets[c], &own);
      if (!chunk.ok()) {
        const std::lock_guard lock(mutex);
        failure = chunk.status();
        return;
      }
      visit(c, *chunk);
    }
  });
  return failure;
}

Result<LineChunks> CutLines(const TextFile& text, int64_t begin, int64_t chunk_bytes,
                            std::string_view blank_separator) {
  LineChunks chunks;
  HEDDLE_ASSIGN_OR_RETURN(chunks.offsets, CutAtLineEnds(text, begin, chunk_bytes, blank_separator));
  chunks.lines.assign(chunks.offsets.size(), 0);
  HEDDLE_RETURN_IF_ERROR(VisitChunks(text, chunks.offsets, [&](size_t chunk, std::string_view piece) {
    chunks.lines[chunk + 1] = CountLines(piece);
  }));
  for (size_t i = 1; i < chunks.lines.size(); ++i) chunks.lines[i] += chunks.lines[i - 1];
  return chunks;
}

}  // namespace heddle::ops
