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

/// The calls that a place was put in place of, the innermost first.
std::vector<CallSite> CallsAround(const SourcePosition& position);

constexpr size_t kMostCallsShown = 4;  ///< Of the way to an error: its text has 12 lines at most.

/// Appends a call and the calls that its place was put in place of.
void AppendCall(const std::string& function, const SourcePosition& position, std::vector<CallSite>* calls);

/// "in f, called at script.dml:3:5" for each call, the innermost first. Of more than `most` (three at least)
/// those in the middle are one line that counts them: the last is in the user's own script.
std::vector<std::string> CallStackNotes(std::span<const CallSite> calls, size_t most = kMostCallsShown);

}  // namespace heddle
