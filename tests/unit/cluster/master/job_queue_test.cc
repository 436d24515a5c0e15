// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/job_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace heddle::cluster {
namespace {

using Answer = JobQueue::Answer;
using Numbers = std::vector<int64_t>;

JobQueue::Waiting Job(int64_t number, int priority, const std::string& user, int workers = 1) {
  return {number, priority, user, {.workers = workers}};
}

// Who is asked, in order, when all get the same answer.
Numbers Asked(JobQueue* queue, Answer answer, std::map<std::string, double> usage = {}) {
  Numbers asked;
  queue->Visit([&](const std::string& user) { return usage[user]; },
               [&](int64_t number, JobQueue::Group&) {
                 asked.push_back(number);
                 return answer;
               });
  return asked;
}

TEST(JobQueueTest, PriorityThenUsageThenSubmission) {
  JobQueue queue;
  int64_t number = 0;
  for (const int priority : {0, 5, -5})
    for (const char* user : {"ann", "bob"})
      for (int i = 0; i < 2; ++i) queue.Add(Job(++number, priority, user));
  EXPECT_EQ(queue.size(), 12);
  EXPECT_EQ(queue.SizeOf("bob"), 6);
  const auto bob_has_had_less = [](const std::string& user) { return user == "ann" ? 2.0 : 1.0; };
  EXPECT_EQ(queue.Before(Job(1, 0, "ann"), bob_has_had_less), 6) << "4 of higher priority, 2 of bob's";
  EXPECT_EQ(queue.Before(Job(4, 0, "bob"), bob_has_had_less), 5);
  EXPECT_EQ(Asked(&queue, Answer::kStarts, {{"ann", 2}, {"bob", 1}}),
            (Numbers{7, 8, 5, 6, 3, 4, 1, 2, 11, 12, 9, 10}));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.SizeOf("bob"), 0);
}

TEST(JobQueueTest, WhoGetsAJobComesLaterWithTheNext) {
  JobQueue queue;
  for (int64_t number = 1; number <= 6; ++number) queue.Add(Job(number, 0, number <= 3 ? "ann" : "bob"));
  std::map<std::string, double> usage;
  Numbers asked;
  queue.Visit([&](const std::string& user) { return usage[user]; },
              [&](int64_t number, JobQueue::Group&) {
                asked.push_back(number);
                usage[number <= 3 ? "ann" : "bob"] += 1;
                return Answer::kStarts;
              });
  EXPECT_EQ(asked, (Numbers{1, 4, 2, 5, 3, 6}));
}

TEST(JobQueueTest, OfEqualDemandsOnlyTheFirstIsAsked) {
  JobQueue queue;
  for (int64_t number = 1; number <= 10'000; ++number)
    queue.Add(Job(number, 0, number % 2 == 0 ? "ann" : "bob", static_cast<int>(number % 3)));
  EXPECT_EQ(Asked(&queue, Answer::kWaits), (Numbers{1, 2, 3}));
  EXPECT_EQ(Asked(&queue, Answer::kEnd), Numbers{1});
  EXPECT_EQ(Asked(&queue, Answer::kIsKept).size(), 10'000u) << "each may want workers to be kept";
  EXPECT_EQ(queue.size(), 10'000);
}

TEST(JobQueueTest, WhatStopsWaitingIsNotAsked) {
  JobQueue queue;
  for (int64_t number = 1; number <= 3; ++number) queue.Add(Job(number, 0, "ann"));
  queue.Remove(Job(1, 0, "ann"));
  EXPECT_EQ(Asked(&queue, Answer::kWaits), Numbers{2});
  queue.Remove(Job(2, 0, "ann"));
  queue.Remove(Job(3, 0, "ann"));
  EXPECT_EQ(Asked(&queue, Answer::kWaits), Numbers{});
}

constexpr int64_t kSecond = 1'000'000'000;

TEST(FairShareTest, HalfIsForgottenInAnHour) {
  FairShare shares;
  shares.Hold("ann", 4, 0);
  EXPECT_DOUBLE_EQ(shares.Usage("ann", 0), 240) << "a minute ahead";
  EXPECT_NEAR(shares.CoreSeconds("ann", 10 * kSecond), 40, 0.1);
  shares.Hold("ann", -4, 10 * kSecond);
  EXPECT_NEAR(shares.Usage("ann", 10 * kSecond), 40, 0.1);
  EXPECT_NEAR(shares.Usage("ann", 3610 * kSecond), 20, 0.1);
  EXPECT_NEAR(FairShare::Faded(40, 7200), 10, 1e-9);
  EXPECT_EQ(shares.Usage("bob", 0), 0);
  shares.Restore("bob", 7, 5 * kSecond);
  EXPECT_DOUBLE_EQ(shares.Usage("bob", 5 * kSecond), 7);
  // Held for ever it tends to what an hour and a half is worth.
  shares.Hold("eve", 1, 0);
  EXPECT_NEAR(shares.CoreSeconds("eve", 1'000'000 * kSecond), 3600 / std::log(2.0), 1);
}

TEST(FairShareTest, ThousandsOfUsersAreForgotten) {
  FairShare shares;
  for (int i = 0; i < 10'000; ++i) {
    const std::string user = std::to_string(i);
    shares.Hold(user, 1, i * kSecond);
    shares.Hold(user, -1, i * kSecond + 1000);
  }
  EXPECT_EQ(shares.CoreSeconds("0", 10'000 * kSecond), 0);
}

}  // namespace
}  // namespace heddle::cluster
