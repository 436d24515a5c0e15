// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/base/stages.h"

// Operators of which every rank computes its own rows and may fail there: all ranks give the failure that one
// process would have met first.
namespace heddle::ops {

/// What went wrong in the rows of one rank.
struct PartFailure {
  int64_t place = 0;  ///< One process meets failures in the order of their places: a column, or a row,
  int64_t step = 0;   ///< and then of these; equal ones in the order of the ranks.
  Status status;
  bool is_of_data = false;  ///< The status has another code, but is of the script's making all the same.
};

/// The failures of one rank, to go to all (Reach::kAll). Only those of the script's making travel
/// (kFailedPrecondition, and PartFailure::is_of_data): what else there is among them is returned at once.
Result<Value> ReportOf(std::span<const PartFailure> failures);
/// Of the reports of all ranks the failure that counts; OK without any.
Status FirstReportedFailure(const Value& reports);

/// Two stages: the first computes this rank's rows of the result and reports, the second gives them.
inline constexpr Reach kRowsAndReport[] = {Reach::kHere, Reach::kAll};
inline constexpr Stage kReportingStages[] = {{.outputs = kRowsAndReport, .reads_inputs = true}, {}};
/// What the first stage makes of a result or of why there is none.
Status MakeReported(Result<Value> rows, int64_t place, int64_t step, std::span<Value> outputs);
/// The second stage.
Status GiveReported(const StageCall& call, std::span<Value> outputs);

}  // namespace heddle::ops
