// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/message_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

namespace heddle::cluster {
namespace {

constexpr std::string_view kLength = "content-length:";
constexpr size_t kMostLineBytes = 4096;  // of a header

// The number of a line "Content-Length: 12"; nullopt of another line, or where there is no such number.
std::optional<size_t> LengthIn(std::string_view line) {
  if (line.size() < kLength.size()) return std::nullopt;
  for (size_t i = 0; i < kLength.size(); ++i) {
    const char c = line[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != kLength[i]) return std::nullopt;
  }
  line.remove_prefix(std::min(line.find_first_not_of(' ', kLength.size()), line.size()));
  size_t length = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), length);
  const std::string_view rest = line.substr(static_cast<size_t>(parsed.ptr - line.data()));
  if (parsed.ec != std::errc() || rest.find_first_not_of(' ') != std::string_view::npos) return std::nullopt;
  return length;
}

}  // namespace

bool MessageReader::Fill() {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(descriptor_, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    buffer_.append(block.data(), static_cast<size_t>(got));
    return true;
  }
}

// A line without its end; of a longer one than a header has, its beginning.
bool MessageReader::ReadLine(std::string* line) {
  for (;;) {
    const size_t end = buffer_.find('\n', begin_);
    if (end == std::string::npos && buffer_.size() - begin_ < kMostLineBytes) {
      if (!Fill()) return false;
      continue;
    }
    const size_t count = std::min(end, begin_ + kMostLineBytes) - begin_;
    line->assign(buffer_, begin_, count);
    begin_ += count + (end == begin_ + count ? 1 : 0);
    if (line->ends_with('\r')) line->pop_back();
    return true;
  }
}

MessageReader::Outcome MessageReader::Read(std::string* body) {
  std::optional<size_t> length;
  std::string line;
  for (;;) {
    if (!ReadLine(&line)) return Outcome::kEnd;
    if (line.empty() && length) break;
    if (const std::optional<size_t> number = LengthIn(line)) {
      length = number;
    } else if (!length && !line.empty() && line.find(':') == std::string::npos) {
      return Outcome::kNoMessage;
    } else if (!length && line.empty()) {
      return Outcome::kNoMessage;
    }
  }
  const bool is_too_long = *length > kMostMessageBytes;
  body->clear();
  size_t missing = *length;
  while (missing > 0) {
    if (begin_ == buffer_.size() && !Fill()) return Outcome::kEnd;
    const size_t count = std::min(missing, buffer_.size() - begin_);
    if (!is_too_long) body->append(buffer_, begin_, count);
    begin_ += count;
    missing -= count;
  }
  return is_too_long ? Outcome::kTooLong : Outcome::kMessage;
}

bool MessageWriter::Write(std::string_view body) {
  const std::string message = fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  const std::lock_guard lock(mutex_);
  for (size_t at = 0; at < message.size();) {
    const ssize_t written = ::write(descriptor_, message.data() + at, message.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace heddle::cluster
