// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/joint_content.h"

#include <utility>

#include "ops/io/formats/write/joint_write.h"

namespace heddle::ops {

Status MalformedShare() { return Internal("what a worker has written arrived malformed"); }

ValueInfo InfoOfRows(const ValueInfo& whole, int64_t rows) {
  ValueInfo info = whole;
  info.shape.rows = rows;
  return info;
}

std::vector<FileContent> FilesOf(const ValueInfo& whole, const WriteOptions& options,
                                 std::map<uint64_t, RowTotals> totals,
                                 std::map<uint64_t, CodingOfFile> codings) {
  const std::vector<int64_t> cuts = CutsOfFiles(whole.shape.rows, options.parts);
  std::vector<FileContent> files;
  for (size_t f = 0; f + 1 < cuts.size(); ++f)
    files.push_back({.info = InfoOfRows(whole, cuts[f + 1] - cuts[f]),
                     .row_begin = cuts[f],
                     .totals = totals[f],
                     .coding = codings[f]});
  return files;
}

Result<ToldTotals> TotalsIn(std::span<const std::string> for_all, int32_t rank) {
  ToldTotals told;
  for (size_t r = 0; r < for_all.size(); ++r) {
    RecordTaker share(for_all[r]);
    if (std::string hidden = share.TakeText(); !hidden.empty()) told.hidden = std::move(hidden);
    while (!share.AtEnd()) {
      const auto file = share.Take<uint64_t>();
      told.totals[file].Add(RowTotals::Take(&share));
      const auto counted = share.Take<int64_t>();
      if (counted != kUnknown && r == static_cast<size_t>(rank)) told.counted[size_t{file}] = counted;
    }
    if (!share.ok()) return MalformedShare();
  }
  return told;
}

std::string TextOfFault(const Status& status) {
  RecordWriter fault;
  fault.Put(uint64_t{1});
  fault.Put(status.code());
  fault.PutText(status.message());
  for (const std::string& note : status.notes()) fault.PutText(note);
  return std::move(fault).Take();
}

Status FaultIn(RecordTaker fault) {
  const auto code = fault.Take<StatusCode>();
  Status status(code, fault.TakeText());
  while (!fault.AtEnd()) status = status.WithNote(fault.TakeText());
  return fault.ok() ? status : MalformedShare();
}

}  // namespace heddle::ops
