// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/hdf5.h"

#include <algorithm>
#include <mutex>

#include "ops/io/formats/libraries/array_process.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/libraries/mat.h"
#include "ops/io/formats/libraries/stored_array.h"
#include "ops/io/formats/plain_cells.h"

namespace heddle::ops {
namespace {

Result<StoredArrayFile> OpenHdf5File(const ReadOptions& options, Files& files) {
  StoredArrayFile opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const bool has_mark, HasHdf5Mark(*opened.file, INT64_MAX));
  if (!has_mark) {
    const Status fault = DataLoss("cannot read '{}': it is no HDF5 file", options.path);
    HEDDLE_ASSIGN_OR_RETURN(const MatVersion version, VersionOfMat(*opened.file));
    return version == MatVersion::kNone
               ? fault.WithNote("format= says what it is")
               : fault.WithNote("it is a MATLAB file of an older version: format=\"mat\"");
  }
  HEDDLE_ASSIGN_OR_RETURN(opened.array, OpenInProcess({.library = ArrayLibrary::kHdf5,
                                                       .path = options.path,
                                                       .file = opened.file,
                                                       .choice = {options.dataset, options.transposed}}));
  return opened;
}

}  // namespace

Result<bool> HasHdf5Mark(const InputFile& file, int64_t most) {
  CountedBytes buffer;
  const auto length = static_cast<int64_t>(kHdf5Mark.size());
  for (int64_t at = 0; at <= std::min(most, file.size() - length); at = at == 0 ? 512 : at * 2) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, file.Read(at, length, &buffer));
    if (bytes == kHdf5Mark) return true;
  }
  return false;
}

Result<bool> IsHdf5(const std::string&, const InputFile& file) {
  // MATLAB 7.3 has half a kilobyte before it; nobody has much more.
  constexpr int64_t kMostBefore = int64_t{1} << 20;
  return HasHdf5Mark(file, kMostBefore);
}

Result<FileSummary> SummarizeHdf5(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const StoredArrayFile opened, OpenHdf5File(options, files));
  return SummarizeStored(options, opened);
}

Result<Matrix> ReadHdf5(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const StoredArrayFile opened, OpenHdf5File(options, files));
  return ReadStoredRows(options, summary, opened, row_begin, row_end);
}

Status WriteHdf5(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink) {
  const Result<const Hdf5Module*> module = OpenHdf5Module();
  if (!module.ok())
    return WithoutLibrary(ArrayLibrary::kHdf5, "write", "a matrix in format hdf5", module.status());
  const auto make_image = [&] {
    static std::mutex library_mutex;  // The library does one thing at a time.
    const std::lock_guard lock(library_mutex);
    return (*module)->make_image(matrix.rows(), matrix.columns(), options.dataset);
  };
  HEDDLE_ASSIGN_OR_RETURN(const Hdf5Image image, make_image());
  const ByteSink pack = PackingSink(options.packing, sink);
  HEDDLE_RETURN_IF_ERROR(pack(image.before));
  HEDDLE_RETURN_IF_ERROR(GiveCells(matrix, options.packing, options.cancelled, sink));
  return pack(image.behind);
}

}  // namespace heddle::ops
