// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/job_queue.h"

#include <queue>
#include <tuple>
#include <vector>

#include "core/status.h"

namespace heddle::cluster {

void JobQueue::Add(const Waiting& job) {
  const bool is_new = by_priority_[job.priority][job.user][job.demand].jobs.insert(job.number).second;
  HEDDLE_CHECK(is_new, "a job waits once");
  ++sizes_[job.user];
  ++size_;
}

void JobQueue::Remove(const Waiting& job) {
  const auto users = by_priority_.find(job.priority);
  HEDDLE_CHECK(users != by_priority_.end() && users->second[job.user][job.demand].jobs.erase(job.number),
               "only a job that waits can stop waiting");
  Groups& groups = users->second[job.user];
  if (groups[job.demand].jobs.empty()) groups.erase(job.demand);
  if (groups.empty()) users->second.erase(job.user);
  if (users->second.empty()) by_priority_.erase(users);
  if (--sizes_[job.user] == 0) sizes_.erase(job.user);
  --size_;
}

int64_t JobQueue::SizeOf(const std::string& user) const {
  const auto found = sizes_.find(user);
  return found == sizes_.end() ? 0 : found->second;
}

void JobQueue::Visit(const std::function<double(const std::string& user)>& usage, const Visitor& visitor) {
  std::set<Demand> refused;
  bool ended = false;
  std::vector<int> priorities;  // A priority is gone when its last job has started.
  for (const auto& [priority, users] : by_priority_) priorities.push_back(priority);
  for (const int priority : priorities) {
    if (ended) return;
    VisitPriority(by_priority_[priority], usage, visitor, &refused, &ended);
    if (by_priority_[priority].empty()) by_priority_.erase(priority);
  }
}

// Whoever has the least usage is asked for the job with the smallest number of those whose demand has not
// been refused yet. Of users with equal usage the smallest number decides.
void JobQueue::VisitPriority(Users& users, const std::function<double(const std::string& user)>& usage,
                             const Visitor& visitor, std::set<Demand>* refused, bool* ended) {
  using Head = std::pair<int64_t, Demand>;  // the first job of a group
  struct User {
    const std::string* name = nullptr;  // of the map, while a job of his waits
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  };
  std::vector<User> visited;
  visited.reserve(users.size());
  using Candidate = std::tuple<double, int64_t, size_t>;  // usage, first job, user
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](size_t index) {
    User& user = visited[index];
    while (!user.heads.empty() && refused->contains(user.heads.top().second)) user.heads.pop();
    if (!user.heads.empty()) candidates.emplace(usage(*user.name), user.heads.top().first, index);
  };
  for (const auto& [name, groups] : users) {
    User& user = visited.emplace_back();
    user.name = &name;
    for (const auto& [demand, group] : groups)
      if (!refused->contains(demand)) user.heads.emplace(*group.jobs.begin(), demand);
    offer(visited.size() - 1);
  }
  while (!candidates.empty() && !*ended) {
    const size_t index = std::get<2>(candidates.top());
    candidates.pop();
    User& user = visited[index];
    const auto [number, demand] = user.heads.top();
    if (!refused->contains(demand)) {
      const auto groups = users.find(*user.name);
      Group& group = groups->second[demand];
      const Answer answer = visitor(number, group);
      if (answer == Answer::kStarts || answer == Answer::kIsKept) {
        user.heads.pop();
        const auto next = group.jobs.upper_bound(number);
        if (next != group.jobs.end()) user.heads.emplace(*next, demand);
      } else {
        refused->insert(demand);
        *ended = answer == Answer::kEnd;
      }
      if (answer == Answer::kStarts) {
        if (--sizes_[*user.name] == 0) sizes_.erase(*user.name);
        --size_;
        group.jobs.erase(number);
        if (group.jobs.empty()) groups->second.erase(demand);
        if (groups->second.empty()) users.erase(groups);
      }
    }
    offer(index);
  }
}

int64_t JobQueue::Before(const Waiting& job,
                         const std::function<double(const std::string& user)>& usage) const {
  const double own = usage(job.user);
  int64_t before = 0;
  for (const auto& [priority, users] : by_priority_) {
    if (priority < job.priority) break;
    for (const auto& [user, groups] : users) {
      const double theirs = priority > job.priority || user == job.user ? own : usage(user);
      if (theirs > own) continue;
      for (const auto& [demand, group] : groups) {
        const bool by_number = priority == job.priority && theirs == own;
        before += static_cast<int64_t>(by_number ? group.jobs.order_of_key(job.number) : group.jobs.size());
      }
    }
  }
  return before;
}

}  // namespace heddle::cluster
