// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/io/files/files.h"

namespace heddle::ops {

/// A part of the content of a file to come.
struct KeptPart {
  std::string name;  ///< Of a hidden file in the folder of the file to come; "": the part has no bytes.
  int64_t bytes = 0;
};

/// A file whose content several processes make: each keeps a part beside it, and one of them makes the file
/// of all parts. What Files are on a file system is this, too.
class JoinedParts {
 public:
  virtual ~JoinedParts() = default;
  /// Keeps what `source` gives in a hidden file beside `path`. It is removed when somebody has joined it, and
  /// when this ends.
  virtual Result<KeptPart> KeepPart(const std::string& path, const ByteSource& source) = 0;
  /// Files::Replace() by `beginning`, the parts in their order, and `end`. kNotFound when a part is not
  /// there: whoever has kept it sees another folder.
  virtual Status JoinParts(const std::string& path, std::string_view beginning,
                           std::span<const KeptPart> parts, std::string_view end) = 0;
};

/// nullptr where files have no folders that others see.
JoinedParts* JoinedPartsOf(Files& files);

}  // namespace heddle::ops
