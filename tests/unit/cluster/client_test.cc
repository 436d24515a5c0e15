// SPDX-License-Identifier: Apache-2.0
#include "cluster/client/client.h"

#include <gtest/gtest.h>

#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

TEST(OutcomeOfJobTest, AJobThatRunsHasNone) {
  JobDescription job;
  job.set_job("j7");
  job.set_state("RUNNING");
  const Status status = OutcomeOf(job);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "job j7 is not finished: RUNNING");
  job.set_state("SUCCEEDED");
  EXPECT_TRUE(OutcomeOf(job).ok());
}

}  // namespace
}  // namespace heddle::cluster
