// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace heddle::cluster {

/// Lines of text over a socket, both ways. One thread reads; any thread writes.
class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}  ///< Takes over `fd`.
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  enum class Outcome : uint8_t {
    kLine,
    kSilence,  ///< Nothing came for the whole time; what came of a line before is kept.
    kClosed,   ///< The other side is gone, or sent a line past 1 GiB.
  };
  static constexpr int kForever = -1;
  /// The next line without its end, waiting for it; at most `silence_ms` for the next byte.
  Outcome ReadLine(std::string* line, int silence_ms = kForever);
  /// From now on a WriteLine gives up when the other side takes nothing for so long.
  void LimitWriting(int64_t silence_ms);
  /// Writes whole lines only. False when the other side is gone, or has been given up: then the channel is of
  /// no use.
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
