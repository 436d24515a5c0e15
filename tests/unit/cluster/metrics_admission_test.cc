// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/metrics_admission.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace heddle::cluster {
namespace {

using grpc::StatusCode;

class MetricsAdmissionTest : public testing::Test {
 protected:
  StatusCode Show(const std::string& token) {
    return admission_.MaySeeMetrics("Bearer " + token, "127.0.0.1:1").error_code();
  }

  VirtualClock clock_;
  std::vector<std::string> asked_;
  grpc::Status answer_ = grpc::Status::OK;
  std::function<void(const std::string&)> meanwhile_;  // While the master is asked.
  MetricsAdmission admission_{[this](const std::string& token) {
                                asked_.push_back(token);
                                if (meanwhile_) meanwhile_(token);
                                return answer_;
                              },
                              "own", clock_};
};

TEST_F(MetricsAdmissionTest, ATokenThatIsLetInIsAskedAboutEachTimeAndItsOwnNever) {
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Show("viewer"), StatusCode::OK);
  EXPECT_EQ(asked_.size(), 50u) << "it may have been revoked";
  EXPECT_EQ(Show("own"), StatusCode::OK);
  EXPECT_EQ(Show("two words"), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(admission_.MaySeeMetrics("", "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(asked_.size(), 50u);
  answer_ = {StatusCode::UNAUTHENTICATED, "revoked"};
  EXPECT_EQ(Show("viewer"), StatusCode::UNAUTHENTICATED);
}

TEST_F(MetricsAdmissionTest, ARefusalHoldsForAWhile) {
  answer_ = {StatusCode::PERMISSION_DENIED, "another role"};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Show("submitter"), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(asked_.size(), 1u);
  clock_.Advance(MetricsAdmission::kRefusedNs);
  answer_ = grpc::Status::OK;
  EXPECT_EQ(Show("submitter"), StatusCode::OK);
}

TEST_F(MetricsAdmissionTest, TokensOfStrangersAreAskedAboutAFewInASecond) {
  EXPECT_EQ(Show("viewer"), StatusCode::OK);
  answer_ = {StatusCode::UNAUTHENTICATED, "unknown"};
  int refused = 0;
  for (int i = 0; i < 100; ++i) refused += Show(std::to_string(i)) == StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
  EXPECT_EQ(refused, 101 - MetricsAdmission::kMostAsked);
  answer_ = grpc::Status::OK;
  EXPECT_EQ(Show("viewer"), StatusCode::OK) << "one that was let in before is none of them";
  EXPECT_EQ(Show("new"), StatusCode::RESOURCE_EXHAUSTED);
  clock_.Advance(1'000'000'000);
  EXPECT_EQ(Show("new"), StatusCode::OK);
}

// The threads that answer are few: strangers take one of them at most.
TEST_F(MetricsAdmissionTest, OneStrangerWaitsForTheMasterAtATime) {
  EXPECT_EQ(Show("viewer"), StatusCode::OK);
  meanwhile_ = [&](const std::string& token) {
    if (token != "stranger") return;
    EXPECT_EQ(Show("another"), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Show("viewer"), StatusCode::OK);
    EXPECT_EQ(Show("own"), StatusCode::OK);
  };
  EXPECT_EQ(Show("stranger"), StatusCode::OK);
  EXPECT_EQ(Show("another"), StatusCode::OK);
}

TEST_F(MetricsAdmissionTest, AMasterThatDoesNotAnswerIsLeftAloneForAWhile) {
  answer_ = {StatusCode::UNAVAILABLE, "no master"};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Show(std::to_string(i)), StatusCode::UNAVAILABLE);
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_EQ(Show("own"), StatusCode::OK);
  clock_.Advance(MetricsAdmission::kAbsentNs);
  answer_ = grpc::Status::OK;
  EXPECT_EQ(Show("viewer"), StatusCode::OK);
}

}  // namespace
}  // namespace heddle::cluster
