// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/numpy/npz.h"

#include <algorithm>

#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/numpy/sparse_npz.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/several_arrays.h"
#include "ops/io/formats/single_cells.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::string_view kFirstName = "arr_0";  // as NumPy calls an array without a name

std::vector<std::string> NamesOf(const std::vector<ZipMember>& members) {
  std::vector<std::string> names;
  for (const ZipMember& member : members)
    names.push_back(member.name.substr(0, member.name.size() - kEnding.size()));
  return names;
}

// What is asked for, in an archive that is open: an array or a sparse matrix.
struct ChosenArray {
  std::unique_ptr<InputFile> archive;
  std::unique_ptr<InputFile> cells;  // of `archive`
  NpyHeader header;
  std::unique_ptr<SparseNpz> sparse;  // of `archive`
  bool transposed = false;

  Shape shape() const {
    if (sparse == nullptr) return header.shape();
    const Shape& shape = sparse->shape();
    return transposed ? Shape{shape.columns, shape.rows} : shape;
  }
};

Result<ZipMember> Choose(const ReadOptions& options, std::vector<ZipMember> members) {
  std::erase_if(members, [](const ZipMember& member) { return !member.name.ends_with(kEnding); });
  if (members.empty())
    return DataLoss("cannot read '{}': it is a zip archive without arrays", options.path)
        .WithNote("numpy.savez() writes an archive of arrays");
  const auto found = std::find_if(members.begin(), members.end(), [&](const ZipMember& member) {
    return options.dataset.empty() ? members.size() == 1
                                   : member.name == options.dataset + std::string(kEnding);
  });
  if (found != members.end()) return *found;
  if (options.dataset.empty()) return SeveralArrays(options.path, "arrays", NamesOf(members));
  return DataLoss("cannot read '{}': it has no array '{}'", options.path, options.dataset)
      .WithNote("it has: " + ListOfArrays(NamesOf(members)));
}

Result<ChosenArray> OpenArray(const ReadOptions& options, Files& files) {
  ChosenArray chosen;
  HEDDLE_ASSIGN_OR_RETURN(chosen.archive, OpenOneFile(options, files));
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view mark,
                          chosen.archive->Read(0, std::min<int64_t>(chosen.archive->size(), 4), &buffer));
  // An archive without members has only its end record.
  if (mark != kZipMark && mark != "PK\x05\x06")
    return DataLoss("cannot read '{}': it is no npz file", options.path)
        .WithNote("numpy.savez() writes such a file; format= says what else it is");
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ZipMember> members, ReadZipDirectory(options.path, *chosen.archive));
  chosen.transposed = options.transposed;
  // Nobody asks for one of the arrays that are a matrix together.
  if (options.dataset.empty() && HoldsSparse(members)) {
    HEDDLE_ASSIGN_OR_RETURN(chosen.sparse, OpenSparseNpz(options, *chosen.archive, members));
    return chosen;
  }
  HEDDLE_ASSIGN_OR_RETURN(const ZipMember member, Choose(options, std::move(members)));
  HEDDLE_ASSIGN_OR_RETURN(chosen.cells, OpenZipMember(options.path, *chosen.archive, member));
  HEDDLE_ASSIGN_OR_RETURN(chosen.header, ReadNpyHeader(options.path, *chosen.cells, 0, chosen.cells->size()));
  if (options.transposed) chosen.header.Transpose();
  return chosen;
}

}  // namespace

Result<FileSummary> SummarizeNpz(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const ChosenArray chosen, OpenArray(options, files));
  FileSummary summary;
  if (chosen.sparse == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(summary, SummarizeArray(options, chosen.header));
  } else {
    summary.shape = chosen.shape();
    HEDDLE_RETURN_IF_ERROR(CheckLength(options.path, summary.shape, /*is_sparse=*/true));
    HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
    summary.is_unordered = true;
    summary.stored = chosen.sparse->stored();
    summary.format = ChooseFormat(summary.shape, summary.stored);
  }
  summary.text_bytes = chosen.archive->size();
  return summary;
}

Result<Matrix> ReadNpz(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const ChosenArray chosen, OpenArray(options, files));
  if (chosen.archive->size() != summary.text_bytes || chosen.shape() != summary.shape)
    return ItChanged(options);
  if (chosen.sparse == nullptr)
    return ReadArrayRows(options, summary, chosen.header, *chosen.cells, row_begin, row_end);
  return CollectArray(options, summary, *chosen.sparse, chosen.transposed, row_begin, row_end);
}

Status WriteNpz(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink) {
  if (options.sparse) {
    if (!options.dataset.empty())
      return FailedPrecondition("write: dataset='{}' names an array, a sparse matrix in npz is several",
                                options.dataset)
          .WithNote("leave out dataset= or sparse=TRUE");
    return WriteSparseNpz(matrix, options.cancelled, sink);
  }
  const std::string name = (options.dataset.empty() ? std::string(kFirstName) : options.dataset);
  constexpr size_t kMostBytesOfName = 60'000;  // The archive has 16 bits for the length.
  if (name.size() > kMostBytesOfName)
    return FailedPrecondition("write: the name of an array in an npz file has {} bytes at most, not {}",
                              kMostBytesOfName, name.size());
  return WriteZip(
      {{name + std::string(kEnding), BytesOfArray(matrix.shape()),
        [&](const ByteSink& to) { return WriteArray(matrix, std::nullopt, options.cancelled, to); }}},
      sink);
}

}  // namespace heddle::ops
