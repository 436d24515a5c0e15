// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/placement.h"

#include <algorithm>
#include <tuple>

#include "cluster/placement/device_of_job.h"

namespace heddle::cluster {
namespace {

constexpr int kFailuresThatExclude = 2;

}  // namespace

Share ShareOn(const WorkerDescription& worker, const Demand& demand) {
  const int slots = std::max(1, worker.slots);
  return {demand.threads > 0 ? demand.threads : std::max(1, worker.threads / slots),
          demand.memory_bytes > 0 ? demand.memory_bytes : worker.memory_bytes / slots};
}

bool IsAble(const WorkerDescription& worker, const Demand& demand) {
  const Share share = ShareOn(worker, demand);
  return share.threads <= worker.threads &&
         (worker.memory_bytes == 0 || share.memory_bytes <= worker.memory_bytes);
}

Placement::Placement(const std::vector<const Worker*>& workers,
                     const std::function<int64_t(const std::string& job)>& deadline_of)
    : order_(workers) {
  std::sort(order_.begin(), order_.end(), [](const Worker* a, const Worker* b) {
    return std::tie(a->description.name, a->description.uuid) <
           std::tie(b->description.name, b->description.uuid);
  });
  open_ = order_.size();
  for (const Worker* worker : order_) {
    Place& place = places_[worker];
    place.free = {worker->description.threads, worker->description.memory_bytes};
    place.has_memory = worker->description.memory_bytes > 0;
    for (const auto& [job, share] : worker->shares) {
      place.free.threads -= share.threads;
      place.free.memory_bytes -= share.memory_bytes;
      place.ends_ms = std::max(place.ends_ms, deadline_of(job));
      place.job = job;
    }
    Reopen(&place);
  }
}

// What is promised to others is there for a job that ends before they can have it.
bool Placement::Fits(const Place& place, const Share& share, int64_t deadline_ms) const {
  const bool ends_first = deadline_ms <= place.promised_until_ms && place.promised_until_ms != kNever;
  const int threads = place.free.threads - (ends_first ? 0 : place.promised_threads);
  const int64_t bytes = place.free.memory_bytes - (ends_first ? 0 : place.promised_bytes);
  return share.threads <= threads && (!place.has_memory || share.memory_bytes <= bytes);
}

Placement::Choice Placement::Choose(const Demand& demand, const std::map<std::string, int>& failures,
                                    int64_t deadline_ms) const {
  Choice choice;
  // Those that are free first, then those that are known to be free soon; of each kind those with the device
  // that it asks for, then the others, by name: what is promised to a job does not change by itself. Workers
  // on which it failed come last of all.
  using Ranked = std::pair<int64_t, const Worker*>;  // when it is free: 0 now, kNever unknown
  std::vector<Ranked> good, bad;
  for (const Worker* worker : order_) {
    if (!IsAble(worker->description, demand)) continue;
    const Place& place = places_.at(worker);
    const bool fits = Fits(place, ShareOn(worker->description, demand), deadline_ms);
    const auto failed = failures.find(worker->description.uuid);
    const bool is_bad = failed != failures.end() && failed->second >= kFailuresThatExclude;
    // Of one that is promised to others nobody knows.
    const int64_t free_at = place.promised_threads > 0 ? kNever : std::max<int64_t>(place.ends_ms, 1);
    (is_bad ? bad : good).emplace_back(fits ? 0 : free_at, worker);
  }
  choice.able = good.size() + bad.size();
  const auto wanted = static_cast<size_t>(demand.workers);
  const size_t least = demand.may_shrink ? 1 : std::max<size_t>(1, wanted);
  if (choice.able < least) return choice;
  if (good.size() < std::max(least, wanted)) {  // there are no others
    good.insert(good.end(), bad.begin(), bad.end());
  }
  std::stable_sort(good.begin(), good.end(),
                   [&](const Ranked& a, const Ranked& b) {
                     return std::pair(a.first, !Offers(a.second->description, demand.device)) <
                            std::pair(b.first, !Offers(b.second->description, demand.device));
                   });
  if (demand.may_shrink) {
    const auto free = static_cast<size_t>(
        std::count_if(good.begin(), good.end(), [](const Ranked& ranked) { return ranked.first == 0; }));
    good.resize(std::clamp<size_t>(free, 1, wanted > 0 ? std::min(wanted, good.size()) : good.size()));
  } else if (wanted > 0) {
    good.resize(wanted);
  }
  choice.fits = true;
  for (const auto& [free_at, worker] : good) {
    choice.workers.push_back(worker);
    if (free_at == 0) continue;
    const Place& place = places_.at(worker);
    const Share share = ShareOn(worker->description, demand);
    const bool is_free = share.threads <= place.free.threads &&
                         (!place.has_memory || share.memory_bytes <= place.free.memory_bytes);
    if (choice.fits && !is_free) choice.busy_with = place.job;
    choice.fits = false;
  }
  return choice;
}

void Placement::Take(const std::string& job, const Demand& demand, const std::vector<const Worker*>& workers,
                     int64_t deadline_ms) {
  for (const Worker* worker : workers) {
    Place& place = places_.at(worker);
    const Share share = ShareOn(worker->description, demand);
    place.free.threads -= share.threads;
    place.free.memory_bytes -= share.memory_bytes;
    place.ends_ms = std::max(place.ends_ms, deadline_ms);
    place.job = job;
    Reopen(&place);
  }
}

bool Placement::Promise(const Demand& demand, const std::vector<const Worker*>& workers) {
  int64_t until_ms = 0;  // P(H)
  for (const Worker* worker : workers) {
    const Place& place = places_.at(worker);
    if (Fits(place, ShareOn(worker->description, demand), kNever)) continue;
    // One that is promised to somebody else has no end that is known.
    until_ms = std::max(until_ms, place.promised_threads > 0 ? kNever : place.ends_ms);
  }
  bool was_open = false;
  for (const Worker* worker : workers) {
    Place& place = places_.at(worker);
    was_open = was_open || place.is_open;
    const Share share = ShareOn(worker->description, demand);
    place.promised_threads += share.threads;
    place.promised_bytes += share.memory_bytes;
    place.promised_until_ms = std::min(place.promised_until_ms, until_ms == kNever ? 0 : until_ms);
    Reopen(&place);
  }
  return was_open;
}

void Placement::Reopen(Place* place) {
  const bool for_some = place->promised_until_ms != 0 && place->promised_until_ms != kNever;
  const int threads = place->free.threads - (for_some ? 0 : place->promised_threads);
  const int64_t bytes = place->free.memory_bytes - (for_some ? 0 : place->promised_bytes);
  const bool is_open = threads > 0 && (!place->has_memory || bytes > 0);
  if (is_open == place->is_open) return;
  place->is_open = is_open;
  open_ += is_open ? 1 : -1;
}

}  // namespace heddle::cluster
