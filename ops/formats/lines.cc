// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/lines.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/parallel.h"

namespace heddle::ops {
namespace {

int64_t CountNewlines(const char* data, int64_t size) {
  int64_t count = 0;
  int64_t i = 0;
  const __m256i newline = _mm256_set1_epi8('\n');
  for (; i + 32 <= size; i += 32) {
    const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i));
    count +=
        __builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, newline))));
  }
  for (; i < size; ++i) count += data[i] == '\n';
  return count;
}

}  // namespace

LineChunks CutLines(std::string_view text) {
  // Blank lines at the end hold nothing.
  while (!text.empty() && (IsBlank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  const auto size = static_cast<int64_t>(text.size());
  constexpr int64_t kChunk = int64_t{1} << 20;
  LineChunks chunks;
  chunks.offsets.push_back(0);
  while (chunks.offsets.back() < size) {
    const int64_t wanted = chunks.offsets.back() + kChunk;
    int64_t end = size;
    if (wanted < size) {
      const void* newline = std::memchr(text.data() + wanted, '\n', static_cast<size_t>(size - wanted));
      if (newline != nullptr) end = static_cast<const char*>(newline) - text.data() + 1;
    }
    chunks.offsets.push_back(end);
  }
  const auto count = static_cast<int64_t>(chunks.offsets.size()) - 1;
  chunks.rows.assign(static_cast<size_t>(count) + 1, 0);
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto c = static_cast<size_t>(i);
      chunks.rows[c + 1] =
          CountNewlines(text.data() + chunks.offsets[c], chunks.offsets[c + 1] - chunks.offsets[c]);
    }
  });
  if (count > 0 && text.back() != '\n') ++chunks.rows.back();  // the last line has no newline of its own
  for (size_t i = 1; i < chunks.rows.size(); ++i) chunks.rows[i] += chunks.rows[i - 1];
  return chunks;
}

}  // namespace heddle::ops
