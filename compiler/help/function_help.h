// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/library/library_files.h"
#include "core/status.h"

namespace heddle::compiler {

/// What the header comment of a file of library/ and its function say (library/README.md). For the command
/// line, the terminal and editors.
struct FunctionHelp {
  struct Parameter {
    std::string name;
    std::string type;           ///< "matrix", "frame", "list", "double", "integer", "boolean", "string".
    std::string default_value;  ///< As the function writes it; "" without one.
    std::vector<std::string> lines;

    bool operator==(const Parameter&) const = default;
  };

  std::string name;
  std::string summary;                   ///< One sentence without its full stop.
  std::vector<std::string> description;  ///< Lines; empty ones between paragraphs.
  std::vector<Parameter> arguments;      ///< Of the first entry point of the file.
  std::vector<Parameter> results;
  std::vector<std::string> method;
  std::vector<std::string> source;
  std::vector<std::string> see_also;  ///< Names.

  /// "B = lm(X, y, icpt=0)", "[Y, cmin, cmax] = normalize(X)".
  std::string Usage() const;
};

/// kInternal where the file has not the shape of library/README.md; the message says what is missing.
Result<FunctionHelp> HelpOf(const LibraryFile& file);
/// A screen of text.
std::string Render(const FunctionHelp& help);

/// What a user who asks for a name is told: the screen above, or that of a builtin, under its other names
/// too, of a statement or of the operators; of what Heddle does not run, what to write instead. "" of another
/// name.
std::string HelpOfName(std::string_view name);
/// The function of the language or of the library whose name is nearest; "" when none is near.
std::string NearestFunction(std::string_view name);
/// "sum: the sum of all cells" of each builtin, a line each, by room.
std::string BuiltinOverview();
/// "lm: linear regression" of each function of the library, a line each, by room.
std::string LibraryOverview();

}  // namespace heddle::compiler
