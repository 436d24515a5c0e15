// SPDX-License-Identifier: Apache-2.0
#include "cluster/line_channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle::cluster {
namespace {
constexpr size_t kMostLineBytes = size_t{1} << 30;
}  // namespace

LineChannel::~LineChannel() { close(fd_); }

std::optional<std::string> LineChannel::ReadLine() {
  char chunk[65536];
  for (;;) {
    const size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      return line;
    }
    scanned_ = buffer_.size();
    if (buffer_.size() > kMostLineBytes) return std::nullopt;
    const ssize_t size = recv(fd_, chunk, sizeof(chunk), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    buffer_.append(chunk, static_cast<size_t>(size));
  }
}

bool LineChannel::WriteLine(const std::string& line) {
  std::string text = line;
  text.push_back('\n');
  const std::lock_guard lock(write_mutex_);
  for (size_t written = 0; written < text.size();) {
    const ssize_t size = send(fd_, text.data() + written, text.size() - written, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    written += static_cast<size_t>(size);
  }
  return true;
}

void LineChannel::Shutdown() { shutdown(fd_, SHUT_RDWR); }

}  // namespace heddle::cluster
