// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/minimize.h"

#include "tests/fuzz/script_text.h"

namespace heddle::fuzz {
namespace {

constexpr int kMostTriesOfAFile = 1500;

using Pieces = std::vector<std::string>;

// Blanks go with what is before them, so that what is left can be read.
Pieces TokensWithBlanks(std::string_view text) {
  Pieces pieces;
  for (const std::string& token : SplitTokens(text)) {
    if (!pieces.empty() && token.find_first_not_of(" \t\r\n") == std::string::npos)
      pieces.back() += token;
    else
      pieces.push_back(token);
  }
  return pieces;
}

}  // namespace

Pieces MinimizePieces(Pieces pieces, const std::function<bool(const Pieces&)>& fails, int most_tries) {
  // Runs of half the pieces, of a quarter, ... of one; and those again until none can go.
  for (size_t length = (pieces.size() + 1) / 2; length > 0;) {
    bool changed = false;
    for (size_t begin = 0; begin < pieces.size();) {
      if (most_tries-- <= 0) return pieces;
      const size_t end = std::min(pieces.size(), begin + length);
      Pieces fewer(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(begin));
      fewer.insert(fewer.end(), pieces.begin() + static_cast<std::ptrdiff_t>(end), pieces.end());
      if (fails(fewer)) {
        pieces = std::move(fewer);
        changed = true;
      } else {
        begin = end;
      }
    }
    if (length > 1)
      length = (length + 1) / 2;
    else if (!changed)
      break;
  }
  return pieces;
}

FuzzCase MinimizeCase(const FuzzCase& c, const std::function<bool(const FuzzCase&)>& fails) {
  FuzzCase least = c;
  if (FuzzCase one_run = c; !c.second_run.empty()) {
    one_run.second_run.clear();
    if (fails(one_run)) least = one_run;
  }
  for (const auto& [name, bytes] : c.files) {
    for (Pieces (*split)(std::string_view) : {&SplitLines, &TokensWithBlanks}) {
      const auto still_fails = [&](const Pieces& pieces) {
        FuzzCase smaller = least;
        smaller.files[name] = JoinTokens(pieces);
        return fails(smaller);
      };
      least.files[name] =
          JoinTokens(MinimizePieces(split(least.files[name]), still_fails, kMostTriesOfAFile));
    }
  }
  return least;
}

}  // namespace heddle::fuzz
