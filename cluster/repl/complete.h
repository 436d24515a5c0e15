// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/interactive/interactive_session.h"

namespace heddle::cluster {

/// What the word at the end of a text may become.
struct Completions {
  size_t begin = 0;                ///< Where the word begins in the text.
  std::vector<std::string> words;  ///< Sorted; what the whole word would be. A folder ends in "/".
  /// What all of them begin with.
  std::string Common() const;
};

/// Completes `text`, the line up to the cursor: commands of the loop behind a ":" that begins it, names of
/// files within quotes, else variables, functions (builtin, of the library, defined, namespaces), named
/// arguments of the call that is open, and reserved words.
Completions Complete(std::string_view text, const engine::InteractiveSession& session);

}  // namespace heddle::cluster
