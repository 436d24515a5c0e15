// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/interactive/interactive_session.h"

namespace heddle::engine {

/// What the word at the end of a text may become.
struct Completions {
  size_t begin = 0;                ///< Where the word begins in the text.
  std::vector<std::string> words;  ///< Sorted; what the whole word would be. A folder ends in "/".
  /// What all of them begin with.
  std::string Common() const;
};

/// Completes statements up to the cursor: names of files within quotes, else variables, functions (builtin,
/// of the library, defined, namespaces), named arguments of the call that is open, and reserved words.
Completions CompleteEntry(std::string_view text, const InteractiveSession& session);

}  // namespace heddle::engine
