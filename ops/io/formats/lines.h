// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "ops/io/files/text_file.h"

namespace heddle::ops {

/// Cuts the first line (without its newline) off `rest`.
inline std::string_view TakeLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  const std::string_view line = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view() : rest->substr(end + 1);
  return line;
}

inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

inline std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

/// A text cut into chunks of whole lines, for parallel parsing.
struct LineChunks {
  std::vector<int64_t> offsets;  ///< offsets[i] is where chunk i starts; one more entry for the end.
  std::vector<int64_t> lines;    ///< Lines before chunk i; the last entry counts all.
};

/// Chunks of about `chunk_bytes` of the text from `begin` on. Blank lines at the end are not counted; where a
/// separator of blanks is given, a line that has it is not blank: its fields are empty. Two passes, the
/// longer one in parallel.
Result<LineChunks> CutLines(const TextFile& text, int64_t begin, int64_t chunk_bytes,
                            std::string_view blank_separator = "");

/// Which of the chunks of a text: share `number` of so many, each of about as many bytes.
struct ShareOfChunks {
  int64_t number = 0;
  int64_t shares = 1;
};
/// Where these chunks begin, and last where the last of them ends: of all chunks the end of the text that is
/// not blank. A chunk begins with the first line that begins at a multiple of `chunk_bytes` behind `begin` or
/// later, so whoever finds the chunks of a share looks at no other share.
Result<std::vector<int64_t>> CutAtLineEnds(const TextFile& text, int64_t begin, int64_t chunk_bytes,
                                           std::string_view blank_separator, const ShareOfChunks& share = {});
/// Calls visit(i, the text between offsets i and i + 1) for each, several at once.
Status VisitChunks(const TextFile& text, const std::vector<int64_t>& offsets,
                   const std::function<void(size_t chunk, std::string_view text)>& visit);

int64_t CountNewlines(std::string_view text);
/// The lines of a chunk, of which the last may have no newline of its own.
int64_t CountLines(std::string_view chunk);
/// The same, and whether a double quote is among the characters.
int64_t CountNewlines(std::string_view text, bool* has_quote);

}  // namespace heddle::ops
