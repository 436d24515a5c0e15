// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/lines.h"

// Summarize(), shared by the ranks of a job: each looks at its share of a text, all get what all have found,
// and the next Summarize() of each rank has its answer without a look at the rest of the file. Where that
// does not work out (something is wrong with the file), Summarize() looks at all of it, and tells what is
// wrong.
namespace heddle::ops {

/// Whether a first look at a file of this format can be shared.
bool CanShareLook(const ReadOptions& options);
/// Whether Summarize() has its answer.
bool IsSummarized(const ReadOptions& options, Files& files);
/// What there is in a share of the file, as bytes for AddSummary(); none where the whole has to be looked at.
std::string LookAtShare(const ReadOptions& options, const ShareOfChunks& share, Files& files);
/// Makes the answer of Summarize() from all shares, in their order.
void AddSummary(const ReadOptions& options, const std::vector<std::string>& shares, Files& files);

}  // namespace heddle::ops
