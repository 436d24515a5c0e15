// SPDX-License-Identifier: Apache-2.0
#include "engine/report/html.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text/utf8.h"

namespace heddle::engine {
namespace {

// Two digits, or all of those before the point.
std::string TwoDigits(double value) { return fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0); }

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : EscapeInvalidUtf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n':
      case '\t': out += c; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  return out;
}

std::string EscapeForScript(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

std::string ShortTime(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (value >= 120e9) return fmt::format("{} min {} s", ns / 60'000'000'000, ns / 1'000'000'000 % 60);
  if (value >= 0.9995e9) return TwoDigits(value / 1e9) + " s";
  if (value >= 0.9995e6) return TwoDigits(value / 1e6) + " ms";
  return ns == 0 ? "0 s" : TwoDigits(value / 1e3) + " us";
}

std::string ShortBytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 0.9995e12) return TwoDigits(value / 1e12) + " TB";
  if (value >= 0.9995e9) return TwoDigits(value / 1e9) + " GB";
  if (value >= 0.9995e6) return TwoDigits(value / 1e6) + " MB";
  if (value >= 0.9995e3) return TwoDigits(value / 1e3) + " kB";
  return fmt::format("{} bytes", bytes);
}

std::string Percent(double share) {
  const double percent = 100 * share;
  if (percent <= 0) return "0 %";
  if (percent < 0.1) return "under 0.1 %";
  return TwoDigits(percent) + " %";
}

}  // namespace heddle::engine
