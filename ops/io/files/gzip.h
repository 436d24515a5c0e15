// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/io/files/packed_pieces.h"

namespace heddle::ops {

/// Whether a file that begins so is gzip data.
bool IsGzip(std::string_view beginning);

/// What is packed in gzip data: one member, or several one after the other, and behind them nothing or zero
/// bytes (a tape fills its last block with them). kDataLoss when a member is damaged or cut short or other
/// bytes follow; kResourceExhausted when it is more than memory has room for, or than `most_bytes`.
Result<CountedBytes> Gunzip(const InputFile& packed, const std::string& path, int64_t most_bytes = INT64_MAX);

/// Pieces of gzip data. Where its members say how long they are, as those of AppendGzipMember and of bgzip
/// do, they are found by that; else by undoing all once, with what inflate needs to begin again kept every
/// few megabytes. Fails as Gunzip does.
Result<std::shared_ptr<const PackedPieces>> FindGzipPieces(const InputFile& packed, const std::string& path);

/// `bytes` as one member that says how long it is. Appends to `out`.
Status AppendGzipMember(std::string_view bytes, std::string* out);

}  // namespace heddle::ops
