// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/values/value.h"
#include "ops/io/files/joint_bytes.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/write/file_sections.h"

// A matrix or frame written by several ranks, each of which has some of its rows, as one file or as a folder
// of files (docs/files.md, "Read and written by several workers"). The bytes are those of one process. What a
// rank has may be panels (core/values/row_panels.h): their rows are read a few at a time, at most twice.
namespace heddle::ops {

/// The rows at which the files of a folder begin, and last where the last of them ends: `parts` about equal
/// ones, 0 for one file. Large values are cut as Distribution::SplitRows cuts them for as many ranks.
std::vector<int64_t> CutsOfFiles(int64_t rows, int64_t parts);

/// The steps of one rank. Between two steps every rank receives what the step before has returned on each of
/// them. `rows` of each step: those of this rank, or panels of them.
class JointWrite {
 public:
  /// `rank_cuts`: the rows of all ranks; `held_bytes`: what may be held of panels at once. All arguments must
  /// outlive this.
  JointWrite(const ValueInfo& whole, std::span<const int64_t> rank_cuts, int32_t rank,
             const std::string& path, const WriteOptions& options, int64_t held_bytes, Files& files);

  struct Begun {
    std::string for_all;
    std::string cells;  ///< For rank 0, of a matrix by column groups: the different cells of the columns.
  };
  /// Counts what has to be known of the rows of this rank, of panels also their bytes where these can be
  /// counted; rank 0 makes the hidden file or folder.
  Result<Begun> Begin(const Value& rows) const;
  /// On rank 0, of a matrix by column groups, with what Begin() has returned on all ranks: how each file
  /// stores the columns, for all ranks.
  Result<std::string> ChooseCodings(std::span<const std::string> for_all,
                                    std::span<const std::string_view> cells) const;
  /// Takes Begun::for_all of all ranks, and what ChooseCodings() has returned on rank 0 ("" where nobody was
  /// asked). Each later step needs it.
  Status UseTotals(std::span<const std::string> for_all, std::string_view codings);

  /// For each rank the rows of this one that lie in a section which begins in the rows of that rank.
  Result<std::vector<Value>> RowsForOthers(const Value& rows) const;

  struct Given {
    std::string for_all;
    std::string kept;  ///< For Place() of this rank.
  };
  /// Makes the bytes of this rank's sections, or some of them and counts the others. `from_others`: by rank,
  /// what their RowsForOthers() gave for this one.
  Result<Given> GiveRows(const Value& rows, std::span<const Value* const> from_others) const;
  /// Makes the others, and puts all where they belong. `of_all`: Given::for_all of all ranks. The result is
  /// for Finish().
  Result<std::string> Place(const Value& rows, const std::string& kept,
                            std::span<const std::string> of_all) const;
  /// Removes what this rank has made so far, at once rather than with the job: nothing will come of it.
  void Abandon() const;

 private:
  struct File {
    FileContent content;
    int64_t rows_of_unit = 1;
    int64_t End() const { return content.row_begin + content.info.shape.rows; }
  };
  // What of a file this rank makes: rows [begin, end).
  struct Share {
    size_t file = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  bool CountsPanels(const Value& rows, const FileContent& content) const;
  Result<int64_t> MoreBytesOfFirstLine(const Share& share, const Value& rows) const;
  Status GiveSections(const File& file, const Value& rows, int64_t begin, int64_t end, JointBytes& bytes,
                      BinaryIndex* index) const;
  size_t FileOf(int64_t row) const;
  int64_t BeginOfSection(int64_t row) const;
  std::vector<Share> Shares() const;
  struct Made {
    int64_t bytes = 0;  // Of the whole share.
    int64_t rows = 0;   // Those whose bytes are made; the others are counted.
  };
  Result<Made> GiveShare(const Share& share, const Value& rows, std::span<const Value* const> from_others,
                         BinaryIndex* index) const;
  /// GiveShare() of rows that are all here and can be counted. nullopt where the format cannot be counted.
  Result<std::optional<Made>> GiveOrCount(const Share& share, const Value& rows, JointBytes& bytes) const;
  Result<std::vector<PlacedBytes>> PlaceShare(const Share& share, const Value& rows, int64_t made,
                                              int64_t bytes_before, int64_t own_bytes) const;

  const ValueInfo& whole_;
  const std::span<const int64_t> rank_cuts_;
  const int32_t rank_;
  const std::string& path_;
  const PackedOptions options_;
  const int64_t held_bytes_;
  Files& files_;
  std::vector<File> made_;             // The files to come.
  std::vector<int64_t> section_cuts_;  // The rows that each rank makes.
  std::map<size_t, int64_t> counted_;  // Bytes that Begin() has counted on this rank, by file.
  std::string hidden_;
};

/// A folder of files, or one file, by one process that has all rows, or panels of them, of which it may hold
/// `held_bytes` at once.
Status WriteJointly(const Value& rows, const ValueInfo& whole, const std::string& path,
                    const WriteOptions& options, int64_t held_bytes, Files& files);

/// On rank 0, with what Place() has returned on all ranks: puts the file or folder in its place, and writes
/// its .mtd.
Status FinishJointWrite(std::span<const std::string> of_all, const ValueInfo& whole, const std::string& path,
                        const WriteOptions& options, Files& files);

}  // namespace heddle::ops
