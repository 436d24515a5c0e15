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
constexpr size_t kMostLengthBytes = 64;  // of "Content-Length: 12"

// The number of "Content-Length: 12" at the end of a line; nullopt where there is none. It stands behind the
// body of a message without a length, which has no line end: from there on messages are read again.
std::optional<size_t> LengthIn(std::string_view line) {
  const auto is_same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  const auto header = std::find_end(line.begin(), line.end(), kLength.begin(), kLength.end(), is_same);
  if (header == line.end()) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(header - line.begin()) + kLength.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
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

// A line without its end; of a longer one than a header has, its beginning, cut where no length can stand.
bool MessageReader::ReadLine(std::string* line) {
  for (;;) {
    const size_t end = buffer_.find('\n', begin_);
    if (end == std::string::npos && buffer_.size() - begin_ < kMostLineBytes + kMostLengthBytes) {
      if (!Fill()) return false;
      continue;
    }
    const bool is_long = end == std::string::npos || end - begin_ > kMostLineBytes + kMostLengthBytes;
    const size_t count = is_long ? kMostLineBytes : end - begin_;
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
