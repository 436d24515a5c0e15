// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster/placement/membership.h"
#include "cluster/placement/resources.h"

namespace heddle::cluster {

/// What an executor of such a job gets of a worker.
Share ShareOn(const WorkerDescription& worker, const Demand& demand);
/// Whether the worker could run one if it had nothing else to do.
bool IsAble(const WorkerDescription& worker, const Demand& demand);

/// Which workers jobs get while somebody goes through those that wait: all of what a job asks for or nothing,
/// never more of a worker than it offers, and never what has been promised to a job that comes first.
///
/// A promise keeps workers R(H) for a waiting job H: on each of them H's share is set aside, whether it is
/// free already or not. What other jobs may still take there is what is free beyond it. Therefore:
///
///   H starts no later than all that holds its workers R(H) now has ended. Proof: nobody gets anything of
///   R(H) that H's share would miss, so that what holds a worker of R(H) beyond what H leaves there is there
///   already; when it has ended, H's share is free on all of R(H), and H, which is asked before whoever could
///   take it, starts.
///
/// Jobs with a deadline are the exception: they end by then. If all that keeps H from its workers has a
/// deadline, let P(H) be the last of them. A job whose own deadline is not behind P(H) may take what is
/// promised to H:
///
///   H starts by P(H). Proof: at P(H) all of them have ended, and so has whoever was let in, by its own
///   deadline; the others are kept out as above. P(H) of a later visit is not behind P(H) of an earlier one,
///   as workers with the earliest known end are promised first, and those of the earlier promise have none
///   behind P(H).
///
/// A worker whose end is not known keeps everybody out that H's share would miss. Plain data; not
/// thread-safe.
class Placement {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  /// Of the workers that take jobs. `deadline_of` says when a running job ends at the latest (by the wall
  /// clock in ms; kNever: unknown). `workers` outlive this.
  Placement(const std::vector<const Worker*>& workers,
            const std::function<int64_t(const std::string& job)>& deadline_of);

  /// Workers for one job: those it gets, or those that it waits for.
  struct Choice {
    std::vector<const Worker*> workers;
    bool fits = false;      ///< It may start.
    size_t able = 0;        ///< Workers that could run it if they were free.
    std::string busy_with;  ///< If not fits: a job on one of them; "": they are promised to others.
  };
  /// `failures`: how often the job has failed on a worker, by uuid; those where it did so twice come last.
  /// `deadline_ms`: of the job itself; kNever for none.
  Choice Choose(const Demand& demand, const std::map<std::string, int>& failures, int64_t deadline_ms) const;

  /// The job starts on these. It may get less memory there: the smallest share counts on all of them.
  void Take(const std::string& job, const Demand& demand, const std::vector<const Worker*>& workers,
            int64_t deadline_ms);
  /// The job waits for these, and they are kept for it. False when nobody could have had anything of them.
  bool Promise(const Demand& demand, const std::vector<const Worker*>& workers);
  /// Nobody fits anywhere.
  bool IsFull() const { return open_ == 0; }

  const std::vector<const Worker*>& workers() const { return order_; }

 private:
  struct Place {
    Share free;  // of what the worker offers; its memory counts only if `has_memory`
    bool has_memory = false;
    int promised_threads = 0;
    int64_t promised_bytes = 0;
    int64_t promised_until_ms = kNever;  // the first P(H) of those it is promised to; 0: one is not known
    int64_t ends_ms = 0;                 // when all that is there ends; kNever: unknown
    std::string job;                     // one that is there
    bool is_open = true;
  };
  bool Fits(const Place& place, const Share& share, int64_t deadline_ms) const;
  void Reopen(Place* place);

  std::vector<const Worker*> order_;  // by name
  std::map<const Worker*, Place> places_;
  size_t open_ = 0;
};

}  // namespace heddle::cluster
