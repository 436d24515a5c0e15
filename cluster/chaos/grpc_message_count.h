// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace heddle::cluster {

/// Finds the messages of gRPC in one direction of an HTTP/2 connection that carries one call (RFC 9113
/// sections 3.4 and 4.1; gRPC over HTTP/2, "Length-Prefixed-Message"). It reads no further than their
/// lengths.
class GrpcMessageCount {
 public:
  /// `from_client`: the direction begins with the preface of the client.
  explicit GrpcMessageCount(bool from_client) : skipped_(from_client ? kPrefaceBytes : 0) {}

  /// Calls `begins` with the size of each message whose header ends in `bytes`, which follow those of the
  /// calls before.
  template <typename Begins>
  void Feed(std::string_view bytes, const Begins& begins) {
    while (!bytes.empty()) {
      if (skipped_ > 0) {
        Skip(&skipped_, &bytes);
      } else if (data_ == 0) {
        if (!Collect(&frame_, &bytes)) continue;
        const size_t size = Number<3>(frame_.bytes.data());
        (frame_.bytes[3] == kDataFrame ? data_ : skipped_) = size;
      } else {
        FeedData(&bytes, begins);
      }
    }
  }

 private:
  static constexpr size_t kPrefaceBytes = 24;
  static constexpr char kDataFrame = 0;

  template <size_t kBytes>
  struct Header {
    std::array<char, kBytes> bytes;
    size_t have = 0;
  };

  template <size_t kBytes>
  static size_t Number(const char* bytes) {
    size_t number = 0;
    for (size_t i = 0; i < kBytes; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
    return number;
  }
  static void Skip(size_t* count, std::string_view* bytes) {
    const size_t part = std::min(*count, bytes->size());
    bytes->remove_prefix(part);
    *count -= part;
  }
  // True once the header is whole; then the next one begins.
  template <size_t kBytes>
  static bool Collect(Header<kBytes>* header, std::string_view* bytes) {
    header->bytes[header->have++] = bytes->front();
    bytes->remove_prefix(1);
    if (header->have < kBytes) return false;
    header->have = 0;
    return true;
  }

  template <typename Begins>
  void FeedData(std::string_view* bytes, const Begins& begins) {
    std::string_view part = bytes->substr(0, data_);
    bytes->remove_prefix(part.size());
    data_ -= part.size();
    while (!part.empty()) {
      if (message_ > 0) {
        Skip(&message_, &part);
      } else if (Collect(&prefix_, &part)) {
        message_ = Number<4>(prefix_.bytes.data() + 1);
        begins(message_);
      }
    }
  }

  size_t skipped_;  // Bytes of what is no message.
  Header<9> frame_ = {};
  size_t data_ = 0;        // What is left of a DATA frame.
  Header<5> prefix_ = {};  // Of a message: whether it is compressed, and its size.
  size_t message_ = 0;     // What is left of a message.
};

}  // namespace heddle::cluster
