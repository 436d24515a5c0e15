// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heddle {

struct CallSite;

/// A place in a script: what a user sees as "file:line:column". Line 0 means "no place known".
struct SourcePosition {
  std::string file;
  int32_t line = 0;
  int32_t column = 0;
  /// The call that the body around this place was put in place of; nullptr where it was not. Calls around
  /// that call are in its own position.
  std::shared_ptr<const CallSite> call;

  bool IsKnown() const { return line > 0; }
  std::string ToString() const;
  /// By value, with the calls.
  bool operator==(const SourcePosition& other) const;
};

}  // namespace heddle
