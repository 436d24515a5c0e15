// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

enum class ArffType : uint8_t { kNumber, kInteger, kText };

struct ArffAttribute {
  std::string name;
  ArffType type = ArffType::kNumber;
  std::string first_value;  ///< Of a nominal one: what rows in braces leave out; else "".
};

/// All before the rows.
struct ArffHeader {
  std::vector<ArffAttribute> attributes;
  int64_t end = 0;    ///< Where the line behind @data begins, and
  int64_t lines = 0;  ///< lines before it.
};

/// kDataLoss names the first line that is malformed, and what Heddle does not read: relational attributes.
Result<ArffHeader> ReadArffHeader(const ReadOptions& options, const TextFile& text);

/// A line that is blank or a comment.
bool IsArffComment(std::string_view line);

}  // namespace heddle::ops
