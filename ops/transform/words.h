// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/frame.h"

namespace heddle::ops {

/// The words of a column's cells, each distinct one once.
struct CellWords {
  struct Count {
    int32_t word = 0;
    int32_t count = 0;
  };
  std::vector<std::string> words;  ///< In order of appearance.
  std::vector<int64_t> offsets;    ///< Of row i: counts [offsets[i], offsets[i + 1]), none of missing cells.
  std::vector<Count> counts;       ///< Words of a row in ascending order of their numbers.
};

/// Words are what stands between characters that are no letters, in small letters.
///
/// Order:   that of rows and, in one, of the text, however many threads there are.
/// Errors:  kResourceExhausted beyond 2^31 - 1 distinct words.
/// Cost:    reads each text once, in parallel; the words of each piece of rows are put together one piece
///          after the other.
Result<CellWords> FindWords(const Column& column);

/// The words of one text, one after the other.
std::vector<std::string> WordsOf(std::string_view text);

}  // namespace heddle::ops
