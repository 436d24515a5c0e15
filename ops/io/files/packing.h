// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ops/io/files/files.h"

// Files that are packed as a whole, with gzip or zstd: undone on the way in, whatever they are called, and
// done on the way out where the name or the script says so.
namespace heddle::ops {

enum class Packing : uint8_t { kNone, kGzip, kZstd };

std::string_view Name(Packing packing);  ///< "none", "gzip", "zstd"
/// How a file is packed that begins so.
Packing PackingOf(std::string_view beginning);
/// How a file of this name is to be packed: .gz and .zst, in any case.
Packing PackingOfPath(std::string_view path);
/// ".gz", ".zst" or "".
std::string_view EndingOf(Packing packing);
/// The path without such an ending.
std::string_view WithoutPackedEnding(std::string_view path);

/// Everything that is packed in `packed`, in memory. kDataLoss when it is damaged or cut short;
/// kResourceExhausted when it is more than memory has room for, or than `most_bytes`.
Result<CountedBytes> Unpack(const InputFile& packed, Packing packing, const std::string& path,
                            int64_t most_bytes = INT64_MAX);

/// A packed file as the file that it holds. Large ones stay packed and are undone piece by piece, as they are
/// read and by several threads at once; where a file allows that is found out once and remembered under
/// `identity`, which differs where files or their versions differ. A large zstd frame can be undone from its
/// beginning only: it is kept whole in memory.
Result<std::unique_ptr<InputFile>> OpenPacked(std::unique_ptr<InputFile> packed, Packing packing,
                                              const std::string& path, const std::string& identity);

/// Appends `bytes`, packed for themselves, to `out`.
Status AppendPacked(Packing packing, std::string_view bytes, std::string* out);
/// A piece of a file, packed for itself where `packing` says how; else, and of nothing, `packed` becomes
/// empty.
Status PackPiece(const std::optional<Packing>& packing, std::string_view piece, std::string* packed);
/// Packs what it is given, each time for itself, and gives it to `sink`, which must outlive it.
ByteSink PackingSink(const std::optional<Packing>& packing, const ByteSink& sink);

/// Packs what `source` gives and gives it to `sink`: in parts of a megabyte, each for itself, so that all
/// threads can read. The bytes depend on what is packed alone.
Status Pack(Packing packing, const ByteSource& source, const ByteSink& sink);

}  // namespace heddle::ops
