// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/text/text_encoding.h"

namespace heddle {

/// The kind of a file that is neither text nor of a format that Heddle reads, as its first bytes tell: packed
/// files and archives other than gzip and zstd, spreadsheets, databases, documents, and data of other
/// programs. Files without a mark that text cannot begin with are not found.
std::optional<ForeignEncoding> FindFileKind(std::string_view beginning);

}  // namespace heddle
