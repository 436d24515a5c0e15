// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment/socket_bytes.h"
#include "core/status.h"
#include "ops/io/formats/libraries/format_module.h"

// What Heddle and the process that reads an array for it (array_process.h) say to each other, through a
// socket whose ends are two builds of the same source on one machine. Functions return false when the other
// end is gone, or says what it cannot mean.
//
//   Heddle                                the process
//   Opening, path, dataset         ->
//                                  <-     kWantsBytes, BytesWanted     as often as the library reads, unless
//                                  the
//   status, bytes                  ->                                  process has a descriptor of the file
//                                  <-     kAnswer, status, Head, sizes, writer
//   Request                        ->
//                                  <-     kAnswer, status, cells
namespace heddle::ops {

struct Opening {
  ArrayLibrary library = ArrayLibrary::kHdf5;
  bool transposed = false;
  bool has_descriptor = false;  ///< The file is the process's kChildFile.
  int64_t file_bytes = 0;
  int64_t heap_bytes = 0;  ///< What the library may allocate.
};

/// An array that is open.
struct Head {
  int64_t indexes = 0;
  int64_t rows_of_chunk = 1;
  int64_t bytes_of_read = 0;
  int64_t stored = kUnknown;
};

struct Request {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t more_heap_bytes = 0;  ///< That the library may allocate beyond what it could before.
  bool of_stored = false;       ///< Stored cells, else rows.
};

enum class MessageKind : uint64_t { kAnswer = 1, kWantsBytes = 2 };

struct BytesWanted {
  int64_t begin = 0;
  int64_t count = 0;  ///< At most kMostBytesWanted.
};
inline constexpr int64_t kMostBytesWanted = 1 << 20;

template <typename T>
bool SendValue(int socket, const T& value) {
  return SendAll(socket, {reinterpret_cast<const char*>(&value), sizeof(T)});
}
template <typename T>
bool ReceiveValue(int socket, T* value) {
  return ReceiveAll(socket, value, sizeof(T));
}

bool SendText(int socket, std::string_view text);
bool ReceiveText(int socket, std::string* text);
bool SendStatus(int socket, const Status& status);
bool ReceiveStatus(int socket, Status* status);

/// Cells of one value of the first index.
int64_t WidthOf(const std::vector<int64_t>& sizes);

}  // namespace heddle::ops
