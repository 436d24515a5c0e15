// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/process_limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

namespace heddle::cluster {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void LimitData(int64_t most) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(most));
  setrlimit(RLIMIT_DATA, &limit);
}

void ForbidCoreDumps() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &limit);
  }
  // A program that collects core dumps does not ask for the limit, but for this.
  prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace heddle::cluster
