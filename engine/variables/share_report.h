// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"
#include "core/status.h"

namespace heddle::engine {

/// How a rank's share of the iterations of a parfor went. Ranks send it to each other when their shares end,
/// before the changed cells themselves.
struct ShareReport {
  struct Change {
    int64_t cells = 0;        ///< How many cells changed: as many rows of ChangedCells follow.
    bool is_touched = false;  ///< The variable was assigned, perhaps without a changed cell.
    ValueInfo info;           ///< Of the variable afterwards.
    bool operator==(const Change&) const = default;
  };
  bool has_failed = false;
  int64_t iteration_ns = 0;     ///< What an iteration took on average.
  std::vector<Change> changes;  ///< Of each variable of which iterations write cells, in the loop's order.

  bool operator==(const ShareReport&) const = default;
  std::string ToText() const;
  static Result<ShareReport> Parse(std::string_view text);
};

/// What an iteration has printed.
struct PrintedText {
  uint64_t iteration = 0;
  std::string text;
  bool operator==(const PrintedText&) const = default;
};
std::string EncodeTexts(const std::vector<PrintedText>& texts);
/// Appends them. kInternal when these are no such bytes.
Status DecodeTexts(std::string_view bytes, std::vector<PrintedText>* texts);

}  // namespace heddle::engine
