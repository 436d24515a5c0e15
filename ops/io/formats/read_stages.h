// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ops/base/kernel.h"
#include "ops/base/stages.h"
#include "ops/io/formats/file_format.h"

// read() of a file whose cells come in such an order that most of it has cells of every rank: each rank
// parses its share of the file, and sends the cells to the ranks that keep their rows.
namespace heddle::ops {

/// The attribute of a read that runs so.
constexpr std::string_view kSendsCells = "sends.cells";
bool SendsCells(const Node& read);

/// Whether so many ranks, of which each has so many bytes of memory (0: not known), read the file faster so:
/// by each for itself they would parse it more than one and a half times. Every rank that knows the summary
/// of the file comes to the same. False where the file cannot be read.
bool ShouldSendCells(const Node& read, const std::string& path, int64_t ranks, int64_t memory_bytes,
                     Files& files);

/// The summary of the file that a read was planned for. kDataLoss when it is another one by now.
Result<FileSummary> SummaryAsPlanned(const Node& read, const ReadOptions& options, Files& files);
/// kDataLoss when the file is no longer what worker 0 has seen.
Status CheckUnchanged(const std::string& path, Files& files);

extern const StagedForm kStagedRead;

}  // namespace heddle::ops
