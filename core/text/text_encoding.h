// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace heddle {

/// Bytes of the UTF-8 byte order mark at the beginning of a text: 3, or 0 where there is none. Windows
/// programs write it, and it belongs to no word.
size_t ByteOrderMarkBytes(std::string_view text);

/// Whether an odd number of double quotes stands before the character at `place`.
bool IsInQuotes(std::string_view text, size_t place);

struct ForeignEncoding {
  std::string_view name;    ///< Completes "it is ...", e.g. "UTF-16 text (little endian)".
  std::string_view remedy;  ///< What the user can do about it.
};

/// What keeps a file from being read as lines of UTF-8, as its beginning tells: it is a file of another kind
/// (core/text/file_kind.h), UTF-16 or UTF-32, by their byte order marks or by the zero bytes that they give
/// ASCII, or lines that end with carriage returns alone, those in double quotes aside. `beginning` holds the
/// first line or as much of it as one may want to look at.
std::optional<ForeignEncoding> FindForeignEncoding(std::string_view beginning);

}  // namespace heddle
