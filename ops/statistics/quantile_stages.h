// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"
#include "ops/statistics/ranks.h"

namespace heddle::ops {

/// Of a call of quantile, weightedQuantile or median. kFailedPrecondition for what is no probability.
Result<QuantileRequest> RequestOfQuantile(const KernelCall& call);

/// Quantiles of a column that lies on several ranks (ranked_windows.h): every rank gets all of them.
extern const StagedForm kQuantileStages;

}  // namespace heddle::ops
