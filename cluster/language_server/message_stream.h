// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace heddle::cluster {

/// Messages with the headers of the protocol ("Content-Length: N", an empty line, N bytes) from a file
/// descriptor.
class MessageReader {
 public:
  static constexpr size_t kMostMessageBytes = size_t{256} << 20;

  enum class Outcome : uint8_t {
    kMessage,
    kTooLong,    ///< Of more than kMostMessageBytes: it was passed over.
    kNoMessage,  ///< What was read has no header that tells its length; reading goes on at the next line.
    kEnd,        ///< The input has ended, or a message was cut short.
  };

  explicit MessageReader(int descriptor) : descriptor_(descriptor) {}
  /// The body of the next message.
  Outcome Read(std::string* body);

 private:
  bool ReadLine(std::string* line);
  bool Fill();

  const int descriptor_;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been taken
};

/// Writes whole messages to a file descriptor. Thread-safe.
class MessageWriter {
 public:
  explicit MessageWriter(int descriptor) : descriptor_(descriptor) {}
  /// False when nobody reads any more.
  bool Write(std::string_view body);

 private:
  const int descriptor_;
  std::mutex mutex_;
};

}  // namespace heddle::cluster
