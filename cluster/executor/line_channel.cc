// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/line_channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/environment/socket_bytes.h"

namespace heddle::cluster {
namespace {
constexpr size_t kMostLineBytes = size_t{1} << 30;
}  // namespace

LineChannel::~LineChannel() { close(fd_); }

LineChannel::Outcome LineChannel::ReadLine(std::string* line, int silence_ms) {
  char chunk[65536];
  for (;;) {
    const size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      line->assign(buffer_, 0, end);
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      return Outcome::kLine;
    }
    scanned_ = buffer_.size();
    if (buffer_.size() > kMostLineBytes) return Outcome::kClosed;
    pollfd poller = {fd_, POLLIN, 0};
    const int ready = poll(&poller, 1, silence_ms);
    if (ready == 0) return Outcome::kSilence;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t size = recv(fd_, chunk, sizeof(chunk), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Outcome::kClosed;
    buffer_.append(chunk, static_cast<size_t>(size));
  }
}

void LineChannel::LimitWriting(int64_t silence_ms) {
  const timeval limit = {silence_ms / 1000, silence_ms % 1000 * 1000};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

bool LineChannel::WriteLine(const std::string& line) {
  std::string text = line;
  text.push_back('\n');
  const std::lock_guard lock(write_mutex_);
  return SendAll(fd_, text);
}

void LineChannel::Shutdown() { shutdown(fd_, SHUT_RDWR); }

}  // namespace heddle::cluster
