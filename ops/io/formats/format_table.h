// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

// What each format is called, how a file in it is known, and what reads and writes it: the one list of
// formats.
namespace heddle::ops {

class ChunkLooks;  // ops/io/formats/chunk_looks.h

/// In which way the files of a folder are one value, their rows one below the other.
enum class InFolders : uint8_t {
  kNot,         ///< They are not.
  kByReader,    ///< The reader of the format knows (of text: lines follow lines).
  kFileByFile,  ///< Each is read as it would be alone (ops/io/formats/stacked_files.h).
};

struct FormatEntry {
  FileFormat format;
  std::string_view name;              ///< As format= and metadata have it.
  std::string_view other_names = {};  ///< Which format= takes as well; blanks between them.
  std::string_view endings = {};      ///< Of names of files, with their points and blanks between them.
  std::string_view mark = {};         ///< The first bytes of every such file; "" where it has none.
  /// Where the first bytes do not tell: whether a file that has no other mark is one; nullptr: they do.
  Result<bool> (*is_one)(const std::string& path, const InputFile&) = nullptr;
  bool writes_matrices = true;
  bool writes_frames = false;
  bool is_table = false;      ///< Its columns have names.
  bool turns_arrays = false;  ///< Its readers know options.transposed.
  /// Its writers pack pieces as options.packing says, on all threads; the others are packed as they give.
  bool packs_pieces = true;

  InFolders in_folders = InFolders::kNot;

  bool shares_looks = false;            ///< summarize_text looks at chunks by ChunkLooks alone.
  bool shares_looks_at_frames = false;  ///< The same of summarize_text_frame.

  // Readers of text in lines. nullptr where the format cannot hold such a value, or is no text.
  Result<FileSummary> (*summarize_text)(const ReadOptions&, const TextFile&, ChunkLooks&) = nullptr;
  Result<Matrix> (*read_text)(const ReadOptions&, const FileSummary&, const TextFile&, int64_t row_begin,
                              int64_t row_end) = nullptr;
  Result<FileSummary> (*summarize_text_frame)(const ReadOptions&, const TextFile&, ChunkLooks&) = nullptr;
  Result<Frame> (*read_text_frame)(const ReadOptions&, const FileSummary&, const TextFile&, int64_t row_begin,
                                   int64_t row_end) = nullptr;

  // Readers of all else. Those of matrices and frames have the same first look.
  Result<FileSummary> (*summarize)(const ReadOptions&, Files&) = nullptr;
  Result<Matrix> (*read)(const ReadOptions&, const FileSummary&, int64_t row_begin, int64_t row_end,
                         Files&) = nullptr;
  Result<Frame> (*read_frame)(const ReadOptions&, const FileSummary&, int64_t row_begin, int64_t row_end,
                              Files&) = nullptr;

  // Writers; nullptr of the formats of text, which WriteValue knows.
  Status (*write)(const Matrix&, const WriteOptions&, const ByteSink&) = nullptr;
  Status (*write_frame)(const Frame&, const WriteOptions&, const ByteSink&) = nullptr;
  /// What stands before the rows of a frame; nullptr: nothing, or what file_sections.cc knows.
  std::string (*frame_beginning)(const Schema&) = nullptr;

  bool IsText() const { return summarize == nullptr; }
  bool ReadsMatrices() const { return read_text != nullptr || read != nullptr; }
  bool ReadsFrames() const { return read_text_frame != nullptr || read_frame != nullptr; }
};

/// All formats, those first that most people use.
std::span<const FormatEntry> FormatTable();
const FormatEntry& EntryOf(FileFormat format);

/// The format whose mark a file begins with; nullptr where it has none.
const FormatEntry* FindFormatByMark(std::string_view beginning);
/// The format that the end of a path names, in any case; endings of packed files (.gz, .zst) do not count.
const FormatEntry* FindFormatByEnding(std::string_view path);

/// "csv, text and binary": the names of the formats in which such a value is read; kUnknown: any value.
std::string NamesOfFormats(DataType type = DataType::kUnknown);
/// The same of the formats in which it is written.
std::string NamesOfWrittenFormats(DataType type = DataType::kUnknown);
/// Those of which a folder of files can be written.
std::string NamesOfFolderFormats();
/// Those that are read and not written.
std::string NamesOfReadFormats();

}  // namespace heddle::ops
