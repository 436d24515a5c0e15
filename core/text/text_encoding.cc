// SPDX-License-Identifier: Apache-2.0
#include "core/text/text_encoding.h"

#include <algorithm>

#include "core/text/file_kind.h"

namespace heddle {
namespace {

using std::string_view_literals::operator""sv;

constexpr ForeignEncoding kUtf16Little = {"UTF-16 text (little endian)",
                                          "make it UTF-8: iconv -f UTF-16LE -t UTF-8 OLD > NEW"};
constexpr ForeignEncoding kUtf16Big = {"UTF-16 text (big endian)",
                                       "make it UTF-8: iconv -f UTF-16BE -t UTF-8 OLD > NEW"};
constexpr ForeignEncoding kUtf32Little = {"UTF-32 text (little endian)",
                                          "make it UTF-8: iconv -f UTF-32LE -t UTF-8 OLD > NEW"};
constexpr ForeignEncoding kUtf32Big = {"UTF-32 text (big endian)",
                                       "make it UTF-8: iconv -f UTF-32BE -t UTF-8 OLD > NEW"};
constexpr ForeignEncoding kCarriageReturns = {"text whose lines end with carriage returns alone",
                                              "make them newlines: tr '\\r' '\\n' < OLD > NEW"};

// Which of the first bytes are zero, for texts that begin with ASCII.
std::optional<ForeignEncoding> FindByZeroBytes(std::string_view text) {
  const auto zero = [&](size_t i) { return text[i] == '\0'; };
  if (text.size() >= 4) {
    if (!zero(0) && zero(1) && zero(2) && zero(3)) return kUtf32Little;
    if (zero(0) && zero(1) && zero(2) && !zero(3)) return kUtf32Big;
    if (!zero(0) && zero(1) && !zero(2) && zero(3)) return kUtf16Little;
    if (zero(0) && !zero(1) && zero(2) && !zero(3)) return kUtf16Big;
  } else if (text.size() == 2) {
    if (!zero(0) && zero(1)) return kUtf16Little;
    if (zero(0) && !zero(1)) return kUtf16Big;
  }
  return std::nullopt;
}

}  // namespace

size_t ByteOrderMarkBytes(std::string_view text) { return text.starts_with("\xEF\xBB\xBF") ? 3 : 0; }

bool IsInQuotes(std::string_view text, size_t place) {
  return std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(place), '"') % 2 == 1;
}

std::optional<ForeignEncoding> FindForeignEncoding(std::string_view beginning) {
  if (const auto kind = FindFileKind(beginning)) return kind;
  // The mark of UTF-32 begins with that of UTF-16.
  if (beginning.starts_with("\xFF\xFE\0\0"sv)) return kUtf32Little;
  if (beginning.starts_with("\0\0\xFE\xFF"sv)) return kUtf32Big;
  if (beginning.starts_with("\xFF\xFE")) return kUtf16Little;
  if (beginning.starts_with("\xFE\xFF")) return kUtf16Big;
  if (const auto encoding = FindByZeroBytes(beginning)) return encoding;
  std::string_view line = beginning.substr(0, beginning.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == '\r' && !is_quoted) return kCarriageReturns;
  }
  return std::nullopt;
}

}  // namespace heddle
