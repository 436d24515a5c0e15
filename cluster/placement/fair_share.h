// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle::cluster {

/// How much of the cluster each user has had, in core-seconds that fade: half of them count an hour later.
/// Threads that a user holds count as they pass, and for one minute ahead, so that of two users who begin
/// together each gets half.
///
/// Time comes in as an argument and never goes back. Not thread-safe.
class FairShare {
 public:
  static constexpr double kHalfLifeSeconds = 3600;
  static constexpr double kAheadSeconds = 60;

  /// What is left of core-seconds after a time in which nothing was used.
  static double Faded(double core_seconds, double seconds);
  /// What was counted until `now_ns` before this process was started.
  void Restore(const std::string& user, double core_seconds, int64_t now_ns);
  /// Executors of the user get threads (or, negative, give them back).
  void Hold(const std::string& user, int threads, int64_t now_ns);
  /// What decides who comes first: less does. A user of whom nothing is known has 0.
  double Usage(const std::string& user, int64_t now_ns) const;
  /// Without what is counted ahead: for Restore.
  double CoreSeconds(const std::string& user, int64_t now_ns) const;

 private:
  struct User {
    double core_seconds = 0;  // as of since_ns
    int64_t since_ns = 0;
    int threads = 0;  // held since then
  };
  static double At(const User& user, int64_t now_ns);
  void Forget(int64_t now_ns);

  std::map<std::string, User> users_;
};

}  // namespace heddle::cluster
