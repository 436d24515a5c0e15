// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/mat.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/io/files/packing.h"
#include "ops/io/formats/libraries/array_process.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/libraries/hdf5.h"
#include "ops/io/formats/libraries/stored_array.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// The head of a variable of version 4: what it is (a number of four digits: order of bytes, 0, type of the
// cells, and 0 full, 1 text or 2 sparse), rows, columns, whether it is complex, bytes of its name.
bool LooksLikeVersion4(std::string_view bytes) {
  constexpr size_t kHeadBytes = 20;
  constexpr uint32_t kMostName = 4096, kMostLength = 1u << 31;
  if (bytes.size() < kHeadBytes + 2) return false;
  std::array<uint32_t, 5> head;
  std::memcpy(head.data(), bytes.data(), kHeadBytes);
  const bool swapped = head[0] > 9999;
  if (swapped)
    for (uint32_t& number : head) number = __builtin_bswap32(number);
  const auto [type, rows, columns, is_complex, name_bytes] = head;
  if (type / 1000 != (swapped ? 1u : 0u) || type / 100 % 10 != 0 || type / 10 % 10 > 5 || type % 10 > 2)
    return false;
  if (rows >= kMostLength || columns >= kMostLength || is_complex > 1 || name_bytes < 2 ||
      name_bytes > kMostName)
    return false;
  const std::string_view name = bytes.substr(kHeadBytes, name_bytes);
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return name.size() == name_bytes && name.back() == '\0' &&
         std::all_of(name.begin(), name.end() - 1, is_of_name);
}

// 7.3 goes to HDF5, which has its matrices turned.
ReadOptions OptionsOfHdf5(const ReadOptions& options) {
  ReadOptions turned = options;
  turned.transposed = !options.transposed;
  return turned;
}

Result<StoredArrayFile> OpenMatFile(const ReadOptions& options, std::shared_ptr<const InputFile> file,
                                    bool is_version_5) {
  StoredArrayFile opened{.file = std::move(file), .array = nullptr};
  HEDDLE_ASSIGN_OR_RETURN(opened.array,
                          OpenInProcess({.library = is_version_5 ? ArrayLibrary::kMat5 : ArrayLibrary::kMat4,
                                         .path = options.path,
                                         .file = opened.file,
                                         .choice = {options.dataset, options.transposed}}));
  return opened;
}

struct OpenedFile {
  std::shared_ptr<const InputFile> file;
  bool is_hdf5 = false;
  bool is_version_5 = false;
};

Result<OpenedFile> OpenVersion(const ReadOptions& options, Files& files) {
  OpenedFile opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const MatVersion version, VersionOfMat(*opened.file));
  if (version == MatVersion::kNone)
    return DataLoss("cannot read '{}': it is no MATLAB file", options.path)
        .WithNote("format= says what it is");
  opened.is_hdf5 = version == MatVersion::k73;
  opened.is_version_5 = version == MatVersion::k5;
  return opened;
}

}  // namespace

Result<MatVersion> VersionOfMat(const InputFile& file) {
  constexpr int64_t kLookedAt = 5000;
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes,
                          file.Read(0, std::min(file.size(), kLookedAt), &buffer));
  if (bytes.starts_with(kMatMark)) return MatVersion::k5;
  if (LooksLikeVersion4(bytes)) return MatVersion::k4;
  HEDDLE_ASSIGN_OR_RETURN(const bool is_hdf5, HasHdf5Mark(file, INT64_MAX));
  return is_hdf5 ? MatVersion::k73 : MatVersion::kNone;
}

Result<bool> IsMat(const std::string& path, const InputFile& file) {
  if (!Lower(WithoutPackedEnding(path)).ends_with(".mat")) return false;
  HEDDLE_ASSIGN_OR_RETURN(const MatVersion version, VersionOfMat(file));
  return version == MatVersion::k4 || version == MatVersion::k5;
}

Result<FileSummary> SummarizeMat(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedFile file, OpenVersion(options, files));
  if (file.is_hdf5) return SummarizeHdf5(OptionsOfHdf5(options), files);
  HEDDLE_ASSIGN_OR_RETURN(const StoredArrayFile opened, OpenMatFile(options, file.file, file.is_version_5));
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, SummarizeStored(options, opened));
  summary.is_unordered = true;  // The library reads a whole variable.
  return summary;
}

Result<Matrix> ReadMat(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedFile file, OpenVersion(options, files));
  if (file.is_hdf5) return ReadHdf5(OptionsOfHdf5(options), summary, row_begin, row_end, files);
  HEDDLE_ASSIGN_OR_RETURN(const StoredArrayFile opened, OpenMatFile(options, file.file, file.is_version_5));
  return ReadStoredRows(options, summary, opened, row_begin, row_end);
}

}  // namespace heddle::ops
