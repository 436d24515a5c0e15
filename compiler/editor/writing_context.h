// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::compiler {

/// A call whose ")" has not been written.
struct OpenCall {
  std::string name;           ///< "f", "ns::f".
  size_t argument = 0;        ///< Which argument is being written, from 0.
  std::string argument_name;  ///< Where "name =" has been written before it.
};

/// What is being written at the end of a text, which need not parse.
struct WritingContext {
  enum class Kind : uint8_t {
    kNothing,  ///< In a comment or a number.
    kText,     ///< Within quotes.
    kMember,   ///< Behind "ns::".
    kName,     ///< A name, or where one may begin.
  };
  Kind kind = Kind::kName;
  size_t begin = 0;        ///< Where the word begins that is being written; the end of the text if none is.
  std::string name_space;  ///< Of kMember.
  std::optional<OpenCall> call;  ///< The innermost one around it.
};

WritingContext ContextAtEnd(std::string_view text);

}  // namespace heddle::compiler
