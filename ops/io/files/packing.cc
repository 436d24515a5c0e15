// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/packing.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "core/recently_used.h"
#include "ops/io/files/gzip.h"
#include "ops/io/files/input_files.h"
#include "ops/io/files/zstd.h"

namespace heddle::ops {
namespace {

constexpr size_t kBytesOfPart = size_t{1} << 20;  // that are packed for themselves
constexpr int64_t kMostAtOnce = int64_t{4}
                                << 20;  // A packed file that is smaller is undone when it is opened.

bool EndsWithIgnoringCase(std::string_view text, std::string_view ending) {
  if (text.size() < ending.size()) return false;
  return std::equal(ending.begin(), ending.end(), text.end() - static_cast<int64_t>(ending.size()),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

Result<std::shared_ptr<const PackedPieces>> FindPieces(const InputFile& packed, Packing packing,
                                                       const std::string& path, const std::string& identity) {
  static std::mutex mutex;
  // By identity of the file; nullptr: it is packed in one piece.
  static RecentlyUsedMap<std::string, std::shared_ptr<const PackedPieces>> known(8);
  {
    const std::lock_guard lock(mutex);
    if (const auto* const found = known.Find(identity)) return *found;
  }
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const PackedPieces> pieces,
                          packing == Packing::kGzip ? FindGzipPieces(packed, path) : FindZstdPieces(packed));
  const std::lock_guard lock(mutex);
  return known.Add(identity, std::move(pieces));
}

}  // namespace

std::string_view Name(Packing packing) {
  return packing == Packing::kGzip ? "gzip" : packing == Packing::kZstd ? "zstd" : "none";
}

Packing PackingOf(std::string_view beginning) {
  return IsGzip(beginning) ? Packing::kGzip : IsZstd(beginning) ? Packing::kZstd : Packing::kNone;
}

std::string_view EndingOf(Packing packing) {
  return packing == Packing::kGzip ? ".gz" : packing == Packing::kZstd ? ".zst" : "";
}

Packing PackingOfPath(std::string_view path) {
  for (const Packing packing : {Packing::kGzip, Packing::kZstd})
    if (EndsWithIgnoringCase(path, EndingOf(packing))) return packing;
  return Packing::kNone;
}

std::string_view WithoutPackedEnding(std::string_view path) {
  return path.substr(0, path.size() - EndingOf(PackingOfPath(path)).size());
}

Result<CountedBytes> Unpack(const InputFile& packed, Packing packing, const std::string& path,
                            int64_t most_bytes) {
  return packing == Packing::kGzip ? Gunzip(packed, path, most_bytes) : Unzstd(packed, path, most_bytes);
}

Result<std::unique_ptr<InputFile>> OpenPacked(std::unique_ptr<InputFile> packed, Packing packing,
                                              const std::string& path, const std::string& identity) {
  if (packed->size() > kMostAtOnce) {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const PackedPieces> pieces,
                            FindPieces(*packed, packing, path, identity));
    if (pieces != nullptr) return MakePackedFile(std::move(packed), std::move(pieces), path);
  }
  HEDDLE_ASSIGN_OR_RETURN(CountedBytes bytes, Unpack(*packed, packing, path));
  return MakeFileInMemory(std::move(bytes));
}

Status AppendPacked(Packing packing, std::string_view bytes, std::string* out) {
  switch (packing) {
    case Packing::kGzip: return AppendGzipMember(bytes, out);
    case Packing::kZstd: return AppendZstdFrame(bytes, out);
    case Packing::kNone: out->append(bytes);
  }
  return OkStatus();
}

Status PackPiece(const std::optional<Packing>& packing, std::string_view piece, std::string* packed) {
  packed->clear();
  return packing && !piece.empty() ? AppendPacked(*packing, piece, packed) : OkStatus();
}

ByteSink PackingSink(const std::optional<Packing>& packing, const ByteSink& sink) {
  return [packing, &sink](std::string_view bytes) -> Status {
    if (!packing) return sink(bytes);
    std::string packed;
    HEDDLE_RETURN_IF_ERROR(PackPiece(packing, bytes, &packed));
    return sink(packed);
  };
}

Status Pack(Packing packing, const ByteSource& source, const ByteSink& sink) {
  if (packing == Packing::kNone) return source(sink);
  std::string part, packed;
  bool any = false;
  const auto give_part = [&]() -> Status {
    packed.clear();
    HEDDLE_RETURN_IF_ERROR(AppendPacked(packing, part, &packed));
    part.clear();
    any = true;
    return sink(packed);
  };
  HEDDLE_RETURN_IF_ERROR(source([&](std::string_view bytes) -> Status {
    while (!bytes.empty()) {
      const size_t taken = std::min(bytes.size(), kBytesOfPart - part.size());
      part.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (part.size() == kBytesOfPart) HEDDLE_RETURN_IF_ERROR(give_part());
    }
    return OkStatus();
  }));
  // A file that holds nothing is one part of nothing.
  return part.empty() && any ? OkStatus() : give_part();
}

}  // namespace heddle::ops
