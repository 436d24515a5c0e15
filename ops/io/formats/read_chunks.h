// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {

/// Calls visit(chunk, first_row, text, &failure) for every chunk of a file of rows that has some of the rows
/// [row_begin, row_end), several at once; `text` is the chunk's. What fails is added to `failure`, and visit
/// then returns false. The status of the first row that failed, or kCancelled.
template <typename Visit>
Status ReadChunks(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                  int64_t row_begin, int64_t row_end, const Visit& visit) {
  FirstFailure failure;
  const std::vector<int64_t>& rows = summary.chunk_rows;
  const int64_t first_chunk = std::upper_bound(rows.begin() + 1, rows.end(), row_begin) - rows.begin() - 1;
  const int64_t end_chunk = std::lower_bound(rows.begin(), rows.end() - 1, row_end) - rows.begin();
  if (first_chunk >= end_chunk) return OkStatus();
  // Threads take the chunks in their order, so that the file is read forward.
  std::atomic<int64_t> next = first_chunk;
  ParallelFor(end_chunk - first_chunk, 1, [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (int64_t i = begin; i < end; ++i) {
      if (IsCancelled(options.cancelled)) return;
      const auto chunk = static_cast<size_t>(next.fetch_add(1));
      const int64_t first_row = rows[chunk];
      const int64_t offset = summary.chunk_offsets[chunk];
      const Result<std::string_view> piece =
          text.Read(offset, summary.chunk_offsets[chunk + 1] - offset, &buffer);
      if (!piece.ok()) return failure.Add(first_row, piece.status());
      if (!visit(chunk, first_row, *piece, &failure)) return;
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

enum class ChunkOrder : uint8_t {
  kAny,    ///< Several at once.
  kOfFile  ///< One after the other.
};

/// Calls body(chunk, text, &lines) for the chunks that are wanted; `text` is the chunk's. It returns a
/// status, and in `lines` how many lines it has taken: of what fails, what stands first in the file is told.
/// kCancelled when it is.
template <typename Wanted, typename Body>
Status VisitLineChunks(const ReadOptions& options, const TextFile& text, const LineChunks& chunks,
                       ChunkOrder order, const Wanted& wanted, const Body& body) {
  // Threads share what is wanted, which may be a few of very many chunks.
  std::vector<size_t> numbers;
  for (size_t c = 0; c + 1 < chunks.offsets.size(); ++c)
    if (wanted(c)) numbers.push_back(c);
  std::atomic<size_t> next = 0;
  FirstFailure failure;
  const auto visit = [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (int64_t i = begin; i < end; ++i) {
      if (IsCancelled(options.cancelled)) return;
      const size_t c = numbers[next.fetch_add(1)];
      const int64_t offset = chunks.offsets[c];
      const Result<std::string_view> piece = text.Read(offset, chunks.offsets[c + 1] - offset, &buffer);
      if (!piece.ok()) return failure.Add(chunks.lines[c], piece.status());
      int64_t lines = 0;
      if (const Status status = body(c, *piece, &lines); !status.ok())
        return failure.Add(chunks.lines[c] + lines, status);
    }
  };
  const auto count = static_cast<int64_t>(numbers.size());
  order == ChunkOrder::kAny ? ParallelFor(count, 1, visit) : visit(0, count);
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

}  // namespace heddle::ops
