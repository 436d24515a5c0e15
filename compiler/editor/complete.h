// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/editor/writing_context.h"

namespace heddle::compiler {

/// What a word that is being written may become.
struct Candidate {
  enum class Kind : uint8_t {
    kArgument,
    kVariable,
    kFunction,
    kNameSpace,
    kBuiltin,
    kLibrary,
    kWord,
    kFile,
    kFolder
  };
  Kind kind = Kind::kWord;
  std::string text;  ///< The whole word. An argument ends in "=", a namespace in "::", a folder in "/".

  auto operator<=>(const Candidate&) const = default;
};

/// What the one who asks knows beside the language and its library; any may be empty.
struct KnownNames {
  std::vector<std::string> variables;
  std::vector<std::string> functions;
  std::vector<std::string> name_spaces;
  std::vector<std::string> library;  ///< Functions of other library folders.
  /// Names of the functions of a namespace.
  std::function<std::vector<std::string>(std::string_view name_space)> members;
  /// The parameters of a function that is no builtin and not of Heddle's library.
  std::function<std::vector<std::string>(std::string_view function)> parameters;
  /// Paths of files that begin with a text; folders end in "/".
  std::function<std::vector<std::string>(std::string_view path)> files;
};

/// Completes the word at the end of `text`, whose context is given: names of files within quotes, functions
/// behind "ns::", else arguments of the open call, variables, functions, namespaces, and words of the
/// language. Sorted by kind and text, each once.
std::vector<Candidate> Complete(std::string_view text, const WritingContext& context,
                                const KnownNames& known);

}  // namespace heddle::compiler
