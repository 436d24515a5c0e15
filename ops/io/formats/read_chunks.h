// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

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
  ParallelFor(summary.chunks(), 1, [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (int64_t c = begin; c < end; ++c) {
      if (IsCancelled(options.cancelled)) return;
      const auto chunk = static_cast<size_t>(c);
      const int64_t first_row = summary.chunk_rows[chunk];
      if (summary.chunk_rows[chunk + 1] <= row_begin || first_row >= row_end) continue;
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
  FirstFailure failure;
  const auto visit = [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
      if (IsCancelled(options.cancelled)) return;
      if (!wanted(c)) continue;
      const int64_t offset = chunks.offsets[c];
      const Result<std::string_view> piece = text.Read(offset, chunks.offsets[c + 1] - offset, &buffer);
      if (!piece.ok()) return failure.Add(chunks.lines[c], piece.status());
      int64_t lines = 0;
      if (const Status status = body(c, *piece, &lines); !status.ok())
        return failure.Add(chunks.lines[c] + lines, status);
    }
  };
  const auto count = static_cast<int64_t>(chunks.offsets.size()) - 1;
  order == ChunkOrder::kAny ? ParallelFor(count, 1, visit) : visit(0, count);
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

}  // namespace heddle::ops
