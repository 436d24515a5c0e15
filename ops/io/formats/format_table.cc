// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/format_table.h"

#include <algorithm>
#include <vector>

#include "ops/io/files/packing.h"
#include "ops/io/formats/arff/arff.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/json/jsonl.h"
#include "ops/io/formats/libraries/arrow_table.h"
#include "ops/io/formats/libraries/hdf5.h"
#include "ops/io/formats/libraries/mat.h"
#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/numpy/npz.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/rds/r_file.h"
#include "ops/io/formats/rds/rds.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/text/octave.h"

namespace heddle::ops {
namespace {

constexpr FormatEntry kFormats[] = {
    {.format = FileFormat::kCsv,
     .name = "csv",
     .endings = ".csv .tsv",
     .writes_frames = true,
     .is_table = true,
     .in_folders = InFolders::kByReader,
     .shares_looks = true,
     .shares_looks_at_frames = true,
     .summarize_text = SummarizeCsv,
     .read_text = ReadCsv,
     .summarize_text_frame = SummarizeCsvFrame,
     .read_text_frame = ReadCsvFrame},
    {.format = FileFormat::kText,
     .name = "text",
     .endings = ".ijv",
     .writes_frames = true,
     .in_folders = InFolders::kByReader,
     .shares_looks = true,
     .summarize_text = SummarizeCells,
     .read_text = ReadCells,
     .summarize_text_frame = SummarizeTextFrame,
     .read_text_frame = ReadTextFrame},
    {.format = FileFormat::kMatrixMarket,
     .name = "mm",
     .other_names = "matrixmarket mtx",
     .endings = ".mtx .mm",
     .shares_looks = true,
     .summarize_text = SummarizeCells,
     .read_text = ReadCells},
    {.format = FileFormat::kLibsvm,
     .name = "libsvm",
     .endings = ".libsvm .svm",
     .in_folders = InFolders::kByReader,
     .shares_looks = true,
     .summarize_text = SummarizeLibsvm,
     .read_text = ReadLibsvm},
    {.format = FileFormat::kBinary,
     .name = "binary",
     .endings = ".bin",
     .mark = kBinaryMark,
     .writes_frames = true,
     .in_folders = InFolders::kFileByFile,
     .summarize = SummarizeBinary,
     .read = ReadBinaryMatrix,
     .read_frame = ReadBinaryFrame},
    {.format = FileFormat::kJsonl,
     .name = "jsonl",
     .other_names = "ndjson",
     .endings = ".jsonl .ndjson",
     .writes_matrices = false,
     .writes_frames = true,
     .is_table = true,
     .in_folders = InFolders::kByReader,
     .shares_looks_at_frames = true,
     .summarize_text_frame = SummarizeJsonl,
     .read_text_frame = ReadJsonl,
     .write_frame = WriteJsonl},
    {.format = FileFormat::kArff,
     .name = "arff",
     .endings = ".arff",
     .is_one = IsArff,
     .writes_matrices = false,
     .writes_frames = true,
     .is_table = true,
     .summarize_text = SummarizeArff,
     .read_text = ReadArff,
     .summarize_text_frame = SummarizeArffFrame,
     .read_text_frame = ReadArffFrame,
     .write_frame = WriteArff,
     .frame_beginning = ArffBeginning},
    {.format = FileFormat::kNpy,
     .name = "npy",
     .endings = ".npy",
     .mark = kNpyMark,
     .turns_arrays = true,
     .in_folders = InFolders::kFileByFile,
     .summarize = SummarizeNpy,
     .read = ReadNpy},
    {.format = FileFormat::kNpz,
     .name = "npz",
     .endings = ".npz",
     .mark = kZipMark,
     .turns_arrays = true,
     .packs_pieces = false,
     .summarize = SummarizeNpz,
     .read = ReadNpz,
     .write = WriteNpz},
    {.format = FileFormat::kHdf5,
     .name = "hdf5",
     .other_names = "h5",
     .endings = ".h5 .hdf5",
     .mark = kHdf5Mark,
     .is_one = IsHdf5,
     .turns_arrays = true,
     .summarize = SummarizeHdf5,
     .read = ReadHdf5,
     .write = WriteHdf5},
    {.format = FileFormat::kParquet,
     .name = "parquet",
     .endings = ".parquet .pq",
     .mark = "PAR1",
     .writes_frames = true,
     .is_table = true,
     .packs_pieces = false,
     .in_folders = InFolders::kByReader,
     .summarize = SummarizeArrow,
     .read = ReadArrowMatrix,
     .read_frame = ReadArrowFrame,
     .write = WriteArrowMatrix,
     .write_frame = WriteArrowFrame},
    {.format = FileFormat::kArrow,
     .name = "arrow",
     .other_names = "feather ipc",
     .endings = ".arrow .feather",
     .mark = "ARROW1",
     .writes_frames = true,
     .is_table = true,
     .packs_pieces = false,
     .in_folders = InFolders::kByReader,
     .summarize = SummarizeArrow,
     .read = ReadArrowMatrix,
     .read_frame = ReadArrowFrame,
     .write = WriteArrowMatrix,
     .write_frame = WriteArrowFrame},
    {.format = FileFormat::kMat,
     .name = "mat",
     .other_names = "matlab",
     .endings = ".mat",
     .mark = kMatMark,
     .is_one = IsMat,
     .writes_matrices = false,
     .turns_arrays = true,
     .summarize = SummarizeMat,
     .read = ReadMat},
    {.format = FileFormat::kOctave,
     .name = "octave",
     .mark = kOctaveMark,
     .writes_matrices = false,
     .summarize_text = SummarizeOctave,
     .read_text = ReadOctave},
    {.format = FileFormat::kRds,
     .name = "rds",
     .other_names = "rdata rda",
     .endings = ".rds .rda .rdata",
     .mark = kRdsMark,
     .is_one = IsRds,
     .writes_matrices = false,
     .is_table = true,
     .turns_arrays = true,
     .summarize = SummarizeRds,
     .read = ReadRdsMatrix,
     .read_frame = ReadRdsFrame},
};

// Whether one of the words, which have blanks between them, is this one.
bool HasWord(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// "a, b and c": those for which `is_meant` holds.
template <typename IsMeant>
std::string NamesOf(const IsMeant& is_meant) {
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : kFormats)
    if (is_meant(entry)) names.push_back(entry.name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  return text;
}

}  // namespace

std::span<const FormatEntry> FormatTable() { return kFormats; }

const FormatEntry& EntryOf(FileFormat format) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const FormatEntry& entry) { return entry.format == format; });
  HEDDLE_CHECK(found != std::end(kFormats), "every format has an entry");
  return *found;
}

const FormatEntry* FindFormatByMark(std::string_view beginning) {
  for (const FormatEntry& entry : kFormats)
    if (!entry.mark.empty() && beginning.starts_with(entry.mark)) return &entry;
  return nullptr;
}

const FormatEntry* FindFormatByEnding(std::string_view path) {
  const std::string name = Lower(WithoutPackedEnding(path));
  const size_t point = name.rfind('.');
  if (point == std::string::npos || name.find('/', point) != std::string::npos) return nullptr;
  for (const FormatEntry& entry : kFormats)
    if (HasWord(entry.endings, std::string_view(name).substr(point))) return &entry;
  return nullptr;
}

std::string NamesOfFormats(DataType type) {
  return NamesOf([&](const FormatEntry& entry) {
    return type == DataType::kMatrix  ? entry.ReadsMatrices()
           : type == DataType::kFrame ? entry.ReadsFrames()
                                      : true;
  });
}

std::string NamesOfWrittenFormats(DataType type) {
  return NamesOf([&](const FormatEntry& entry) {
    return (entry.writes_matrices && type != DataType::kFrame) ||
           (entry.writes_frames && type != DataType::kMatrix);
  });
}

std::string NamesOfFolderFormats() {
  return NamesOf([](const FormatEntry& entry) { return entry.in_folders != InFolders::kNot; });
}

std::string NamesOfReadFormats() {
  return NamesOf([](const FormatEntry& entry) { return !entry.writes_matrices && !entry.writes_frames; });
}

std::string_view Name(FileFormat format) { return EntryOf(format).name; }

Result<FileFormat> ParseFileFormat(std::string_view name) {
  const std::string lower = Lower(name);
  for (const FormatEntry& entry : kFormats)
    if (entry.name == lower || HasWord(entry.other_names, lower)) return entry.format;
  for (const std::string_view known : {"compressed", "proto", "cog", "delta", "federated"})
    if (lower == known)
      return Unimplemented("format '{}' is part of DML but Heddle does not read or write it; use {}", lower,
                           NamesOfWrittenFormats());
  return InvalidArgument("unknown file format '{}'; Heddle reads and writes {}, and reads {}", name,
                         NamesOfWrittenFormats(), NamesOfReadFormats());
}

}  // namespace heddle::ops
