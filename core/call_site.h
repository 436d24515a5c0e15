// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/source_position.h"
#include "core/status.h"

namespace heddle {

/// Files of the library that is part of Heddle have paths that begin so: "heddle:regression/lm.dml".
constexpr std::string_view kLibraryPrefix = "heddle:";

/// True of a place in Heddle's own library, which users neither wrote nor see.
inline bool IsInLibrary(const SourcePosition& position) { return position.file.starts_with(kLibraryPrefix); }

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

/// The failure with the calls on the way to it, the innermost first, as notes. A failure in Heddle's own
/// library gets the place of the call that left the user's script; the place in the library becomes a note.
Status InCalls(const Status& status, std::span<const CallSite> calls);

}  // namespace heddle
