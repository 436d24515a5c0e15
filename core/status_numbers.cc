// SPDX-License-Identifier: Apache-2.0
#include "core/status_numbers.h"

namespace heddle {

std::optional<StatusCode> FindStatusCode(int64_t number) {
  for (const StatusCode code :
       {StatusCode::kOk, StatusCode::kCancelled, StatusCode::kInvalidArgument, StatusCode::kDeadlineExceeded,
        StatusCode::kNotFound, StatusCode::kPermissionDenied, StatusCode::kResourceExhausted,
        StatusCode::kFailedPrecondition, StatusCode::kAborted, StatusCode::kUnimplemented,
        StatusCode::kInternal, StatusCode::kUnavailable, StatusCode::kDataLoss, StatusCode::kUsage})
    if (static_cast<int64_t>(code) == number) return code;
  return std::nullopt;
}

}  // namespace heddle
