// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/io/formats/write/file_sections.h"
#include "ops/io/formats/write/record_bytes.h"

// What the ranks that write a value together know of its files.
namespace heddle::ops {

using CodingOfFile = std::shared_ptr<const RowCoding>;

/// kInternal: what ranks tell each other is not what they write.
Status MalformedShare();

/// So many rows of the value.
ValueInfo InfoOfRows(const ValueInfo& whole, int64_t rows);

/// The files of a value with what is known of their rows together, both by the numbers of the files.
std::vector<FileContent> FilesOf(const ValueInfo& whole, const WriteOptions& options,
                                 std::map<uint64_t, RowTotals> totals,
                                 std::map<uint64_t, CodingOfFile> codings);

/// What JointWrite::Begin() has told of each file on all ranks, and the hidden name.
struct ToldTotals {
  std::map<uint64_t, RowTotals> totals;
  std::map<size_t, int64_t> counted;  ///< Bytes of a rank, where they are known.
  std::string hidden;
};
Result<ToldTotals> TotalsIn(std::span<const std::string> for_all, int32_t rank);

/// A fault of the cells, which all ranks have to know: the first one is told, as by one process.
std::string TextOfFault(const Status& status);
Status FaultIn(RecordTaker fault);

}  // namespace heddle::ops
