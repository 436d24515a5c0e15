// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/libraries/hdf5.h"

#include <algorithm>
#include <mutex>

#include "core/values/sizes.h"
#include "ops/formats/libraries/array_process.h"
#include "ops/formats/libraries/format_module.h"
#include "ops/formats/plain_cells.h"
#include "ops/formats/readers.h"

namespace heddle::ops {
namespace {

Status IsMissing(std::string_view verb, std::string_view what, const Status& why) {
  const Status fault =
      Unimplemented("cannot {} {}: this Heddle was built without HDF5", verb, what)
          .WithNote("install libhdf5-dev and build it again, or use format=\"npy\" or \"csv\"");
  return why.code() == StatusCode::kNotFound ? fault : fault.WithNote(why.message());
}

// The mark stands at the beginning, or behind a block of somebody else's, at 512, 1024, 2048, ...
Result<bool> HasMark(const InputFile& file) {
  CountedBytes buffer;
  const auto length = static_cast<int64_t>(kHdf5Mark.size());
  for (int64_t at = 0; at + length <= file.size(); at = at == 0 ? 512 : at * 2) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, file.Read(at, length, &buffer));
    if (bytes == kHdf5Mark) return true;
  }
  return false;
}

// The library is used in processes of their own, but for the making of files; none begins meanwhile.
std::mutex library_mutex;

// Pieces that need no block of the pool, whose locks another thread may have held when the process began.
constexpr int64_t kMostBytes = 1 << 20;

Status CopyBytes(const InputFile& file, int64_t begin, int64_t count, char* out) {
  for (int64_t at = 0; at < count; at += kMostBytes) {
    CountedBytes buffer;
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes,
                            file.Read(begin + at, std::min(kMostBytes, count - at), &buffer));
    out = std::copy(bytes.begin(), bytes.end(), out);
  }
  return OkStatus();
}

// An array whose file is open.
struct OpenedArray {
  std::shared_ptr<const InputFile> file;
  std::unique_ptr<Hdf5Array> array;
  Shape shape;
};

Result<OpenedArray> OpenArray(const ReadOptions& options, Files& files) {
  OpenedArray opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const bool has_mark, HasMark(*opened.file));
  if (!has_mark)
    return DataLoss("cannot read '{}': it is no HDF5 file", options.path).WithNote("format= says what it is");
  const Result<const Hdf5Module*> module = OpenHdf5Module();
  if (!module.ok()) return IsMissing("read", fmt::format("'{}'", options.path), module.status());
  const ModuleInput input{.path = options.path,
                          .size = opened.file->size(),
                          .read = [file = opened.file](int64_t begin, int64_t count, char* out) {
                            return CopyBytes(*file, begin, count, out);
                          }};
  const std::lock_guard lock(library_mutex);
  HEDDLE_ASSIGN_OR_RETURN(
      opened.array, OpenInProcess(options.path, [&] { return (*module)->open(input, options.dataset); }));
  opened.shape = {1, 1};
  const std::vector<int64_t>& sizes = opened.array->sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& length = i == 0 ? opened.shape.rows : opened.shape.columns;
    length = SaturatingProduct(length, sizes[i]);
  }
  const Shape& shape = opened.shape;
  if (shape.rows > kMostLength || shape.columns > kMostLength || shape.Cells() == INT64_MAX ||
      (shape.Cells() == 0 && std::max(shape.rows, shape.columns) > kMostLengthOfEmpty))
    return DataLoss("cannot read '{}': it is larger than a matrix can be", options.path);
  return opened;
}

}  // namespace

Result<FileSummary> SummarizeHdf5(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedArray opened, OpenArray(options, files));
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, opened.shape));
  FileSummary summary;
  summary.shape = opened.shape;
  summary.stored = options.nonzeros;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  summary.text_bytes = opened.file->size();
  return summary;
}

Result<Matrix> ReadHdf5(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedArray opened, OpenArray(options, files));
  if (opened.file->size() != summary.text_bytes || opened.shape != summary.shape) return ItChanged(options);
  return CollectRows(
      options, summary, row_begin, row_end, opened.array->rows_of_chunk(),
      [&](int64_t begin, int64_t end, double* out) { return opened.array->Read(begin, end, out); });
}

Status WriteHdf5(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink) {
  const Result<const Hdf5Module*> module = OpenHdf5Module();
  if (!module.ok()) return IsMissing("write", "a matrix in format hdf5", module.status());
  const auto make_image = [&] {
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
