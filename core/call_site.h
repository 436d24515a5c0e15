// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/source_position.h"

namespace heddle {

/// A call of a function that is written in DML, on the way to something that went wrong.
struct CallSite {
  std::string function;
  SourcePosition position;  ///< Of the call.

  bool operator==(const CallSite&) const = default;
};

/// "in f, called at script.dml:3:5" for each call, the innermost first. Of more than `most` (three at least)
/// those in the middle are one line that counts them: the last is in the user's own script.
std::vector<std::string> CallStackNotes(std::span<const CallSite> calls, size_t most);

}  // namespace heddle
