// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>

namespace heddle::cluster {

/// Lines of text over a socket, both ways. One thread reads; any thread writes.
class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}  ///< Takes over `fd`.
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  /// The next line without its end, waiting for it; nullopt when the other side is gone or sends a line past
  /// 1 GiB.
  std::optional<std::string> ReadLine();
  /// Writes whole lines only. False when the other side is gone.
  bool WriteLine(const std::string& line);
  /// Ends both directions: a ReadLine in progress returns.
  void Shutdown();

 private:
  const int fd_;
  std::string buffer_;  // read, not yet returned
  size_t scanned_ = 0;  // of buffer_, known to hold no line end
  std::mutex write_mutex_;
};

}  // namespace heddle::cluster
