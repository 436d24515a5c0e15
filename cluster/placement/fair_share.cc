// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/fair_share.h"

#include <algorithm>
#include <cmath>

namespace heddle::cluster {
namespace {

constexpr double kLeastCoreSeconds = 0.01;  // Less is nothing.
constexpr size_t kUsersToForget = 64;       // Fewer may stay.

}  // namespace

double FairShare::Faded(double core_seconds, double seconds) {
  return core_seconds * std::exp2(-std::max(0.0, seconds) / kHalfLifeSeconds);
}

// Of h threads held and core-seconds u that fade at the rate r: u' = h - r u, so that u tends to h / r.
double FairShare::At(const User& user, int64_t now_ns) {
  const double seconds = static_cast<double>(std::max<int64_t>(0, now_ns - user.since_ns)) / 1e9;
  const double rate = std::log(2.0) / kHalfLifeSeconds;
  const double limit = user.threads / rate;
  return limit + (user.core_seconds - limit) * std::exp(-rate * seconds);
}

void FairShare::Restore(const std::string& user, double core_seconds, int64_t now_ns) {
  users_[user] = {std::max(0.0, core_seconds), now_ns, 0};
}

void FairShare::Hold(const std::string& user, int threads, int64_t now_ns) {
  User& one = users_[user];
  one.core_seconds = At(one, now_ns);
  one.since_ns = now_ns;
  one.threads = std::max(0, one.threads + threads);
  if (users_.size() > kUsersToForget) Forget(now_ns);
}

double FairShare::CoreSeconds(const std::string& user, int64_t now_ns) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : At(found->second, now_ns);
}

double FairShare::Usage(const std::string& user, int64_t now_ns) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : At(found->second, now_ns) + kAheadSeconds * found->second.threads;
}

void FairShare::Forget(int64_t now_ns) {
  std::erase_if(users_, [&](const auto& user) {
    return user.second.threads == 0 && At(user.second, now_ns) < kLeastCoreSeconds;
  });
}

}  // namespace heddle::cluster
