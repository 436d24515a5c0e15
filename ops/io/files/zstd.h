// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/io/files/packed_pieces.h"

namespace heddle::ops {

/// Whether a file that begins so is zstd data: a frame, or one that readers skip.
bool IsZstd(std::string_view beginning);

/// What is packed in zstd data: frames one after the other. Fails as Gunzip does (ops/io/files/gzip.h).
Result<CountedBytes> Unzstd(const InputFile& packed, const std::string& path, int64_t most_bytes = INT64_MAX);

/// The frames as pieces, found by their sizes and those of their blocks, without undoing them. nullptr where
/// a frame does not say what it holds, is too large for a piece, or the file ends inside of one.
Result<std::shared_ptr<const PackedPieces>> FindZstdPieces(const InputFile& packed);

/// `bytes` as one frame. Appends to `out`.
Status AppendZstdFrame(std::string_view bytes, std::string* out);

}  // namespace heddle::ops
