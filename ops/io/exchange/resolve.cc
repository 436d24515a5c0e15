// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/resolve.h"

#include <algorithm>

#include "core/memory/memory_budget.h"

namespace heddle::ops {

Result<ReadOptions> ResolveAnyType(const Node& node, const std::string& path, Files& files) {
  Result<ReadOptions> read = ResolveReadOptions(node, path, files);
  if (node.FindAttribute("data_type") != nullptr) return read;
  if (read.ok() &&
      (read->data_type != DataType::kMatrix || read->data_type_said || read->format == FileFormat::kCsv))
    return read;
  // Whether lines are cells of numbers or a table is not to be told, but they are no frame.
  if (!read.ok() && read.status().code() == StatusCode::kDataLoss &&
      node.FindAttribute("format") == nullptr) {
    Node of_cells = node;
    of_cells.SetAttribute("format", std::string(Name(FileFormat::kText)));
    const Result<ReadOptions> cells = ResolveReadOptions(of_cells, path, files);
    if (cells.ok() && Summarize(*cells, files).ok()) return read;
  }
  const Status fault = read.ok() ? Summarize(*read, files).status() : read.status();
  if (fault.ok() || fault.code() == StatusCode::kNotFound) return read;
  Node of_frame = node;
  of_frame.SetAttribute("data_type", std::string(Name(DataType::kFrame)));
  Result<ReadOptions> frame = ResolveReadOptions(of_frame, path, files);
  // Whatever is nothing else is csv as a frame.
  if (!frame.ok() || frame->format == FileFormat::kCsv) return fault;
  HEDDLE_RETURN_IF_ERROR(Summarize(*frame, files).status());
  return frame;
}

bool LacksSchema(const ReadOptions& read) {
  return read.data_type == DataType::kFrame && read.schema.empty() &&
         (read.format == FileFormat::kCsv || read.format == FileFormat::kJsonl ||
          read.format == FileFormat::kText);
}

int64_t RowsWithGroup(int64_t rows, const FileSummary& summary, double bytes_of_row) {
  constexpr double kShareOfBudget = 8;
  const auto budget = static_cast<double>(MemoryBudget::Process().limit());
  const double most = budget / kShareOfBudget / bytes_of_row;
  const double group = std::min(static_cast<double>(summary.rows_of_group), most);
  return std::max(rows, static_cast<int64_t>(group));
}

}  // namespace heddle::ops
