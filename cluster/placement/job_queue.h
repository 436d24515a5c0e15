// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "cluster/placement/fair_share.h"
#include "cluster/placement/resources.h"

namespace heddle::cluster {

/// The jobs that wait for workers, in the order in which they may start: by priority, then by user (who has
/// had less comes first), then by number, which is the order of submission.
///
/// Jobs of one user, priority and demand can take each other's places, so that a visit asks only the first of
/// them: 10,000 jobs of a kind cost as much as one. Not thread-safe.
class JobQueue {
 public:
  struct Waiting {
    int64_t number = 0;  ///< Of the job; unique.
    int priority = 0;    ///< Higher comes first.
    std::string user;
    Demand demand;

    friend bool operator==(const Waiting&, const Waiting&) = default;
  };
  /// Numbers of jobs in order, which tells how many come before one without a walk over them.
  using Numbers = __gnu_pbds::tree<int64_t, __gnu_pbds::null_type, std::less<int64_t>,
                                   __gnu_pbds::rb_tree_tag, __gnu_pbds::tree_order_statistics_node_update>;
  /// What all jobs of one user, priority and demand have in common.
  struct Group {
    Numbers jobs;
    /// Since when there have been workers enough for one of them, busy or not, as the visitor says.
    int64_t able_since_ns = kNever;
  };
  static constexpr int64_t kNever = INT64_MAX;

  enum class Answer : uint8_t {
    kStarts,  ///< It leaves the queue.
    kWaits,   ///< So does everybody with an equal demand behind it: nobody frees anything during a visit.
    kIsKept,  ///< It waits, and workers are kept for it; the next one may want some as well.
    kEnd,     ///< It waits, and nobody behind it is asked.
  };
  using Visitor = std::function<Answer(int64_t number, Group& group)>;

  void Add(const Waiting& job);
  void Remove(const Waiting& job);
  /// Asks jobs in order. `usage` tells what a user has had (FairShare::Usage); it is asked again when a job
  /// of the user starts. The visitor changes nothing in the queue.
  void Visit(const std::function<double(const std::string& user)>& usage, const Visitor& visitor);

  int64_t size() const { return size_; }
  int64_t SizeOf(const std::string& user) const;
  /// How many jobs would be asked before this one if all had to wait.
  int64_t Before(const Waiting& job, const std::function<double(const std::string& user)>& usage) const;

 private:
  using Groups = std::map<Demand, Group>;
  using Users = std::map<std::string, Groups>;

  void VisitPriority(Users& users, const std::function<double(const std::string& user)>& usage,
                     const Visitor& visitor, std::set<Demand>* refused, bool* ended);

  std::map<int, Users, std::greater<>> by_priority_;
  std::map<std::string, int64_t> sizes_;  // by user
  int64_t size_ = 0;
};

}  // namespace heddle::cluster
