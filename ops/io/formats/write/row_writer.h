// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/values/value.h"
#include "ops/io/files/replacement.h"
#include "ops/io/formats/write/file_sections.h"

namespace heddle::ops {

/// Whether the rows of a file can be appended to it as they come, although nothing is known of those to come:
/// the format has rows of their own, and what depends on all rows (how many entries there are, how many rows
/// a block of a binary file has) can be set right in the end. `path`: nullptr where only the run tells it.
bool CanAppendRows(const ValueInfo& info, const std::string* path, const WriteOptions& options);

/// What is known of all rows before the first of them comes.
struct KnownRows {
  RowTotals totals;
  std::shared_ptr<const RowCoding> coding;  ///< Of a matrix by column groups.
};

/// Writes a matrix or frame whose rows come one panel after the other: the file with the bytes of
/// WriteValue() and its .mtd. Rows go to a file without a name beside the place of the file as they come.
/// Without Finish() nothing is left, and what was there before stays. One thread at a time; the bytes of each
/// panel are made by all threads.
class RowWriter {
 public:
  /// `info`: of all rows, of which the number is known. `known`: where somebody has counted them; without it
  /// CanAppendRows() must hold. `files` outlives the writer.
  static Result<std::unique_ptr<RowWriter>> Begin(const ValueInfo& info, const std::string& path,
                                                  const WriteOptions& options,
                                                  const std::optional<KnownRows>& known, Files& files);

  /// The next rows. kInternal for more than there are to be; kResourceExhausted when the disk is full.
  Status Add(const Value& rows);
  /// All rows were added: the file and its metadata appear. Fails as Add does.
  Status Finish();

 private:
  RowWriter(ValueInfo info, std::string path, const WriteOptions& options, Files& files);
  Status GiveBeginningFor(const Value& first_rows);
  Status Give(const Value& rows);
  Status WriteAgain(const RowTotals& totals);

  const std::string path_;
  const WriteOptions write_options_;
  const PackedOptions options_;
  Files& files_;
  std::unique_ptr<NewFile> file_;
  std::optional<KnownRows> known_;
  FileContent content_;             // With the totals that the sections are made for.
  int64_t rows_of_unit_ = 0;        // 0: nothing has been written.
  std::string beginning_;  // Where nothing is known.
  RowTotals found_;  // Of the rows that have come; of all of them, where they are known.
  int64_t next_row_ = 0;  // Of the next section.
  Value waiting_;         // Rows behind it, fewer than a unit has, in memory of their own.
  int64_t waiting_rows_ = 0;
  int64_t bytes_of_sections_ = 0;
  BinaryIndex index_;
};

}  // namespace heddle::ops
