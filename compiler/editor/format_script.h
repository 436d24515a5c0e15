// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "compiler/parse/diagnostics.h"
#include "core/status.h"

namespace heddle::compiler {

struct FormatOptions {
  int32_t width = 110;  ///< Columns, beyond which lines are broken where that is possible.
};
constexpr int32_t kLeastFormatWidth = 40;
constexpr int32_t kMostFormatWidth = 1000;

/// The script in the style of library/ (docs/editor.md): only blanks, line ends and blank lines change. The
/// syntax tree and the comments stay, and what is formatted once is not changed again. Line ends are those of
/// the first line of the text, and the last line ends as it did.
///
/// Errors: kInvalidArgument with all that is wrong with a text that does not parse (`diagnostics` has it,
/// too); kInternal if the result would not be the same script, which is a bug.
Result<std::string> FormatScript(const std::string& path, const std::string& text,
                                 const FormatOptions& options, Diagnostics* diagnostics);

}  // namespace heddle::compiler
