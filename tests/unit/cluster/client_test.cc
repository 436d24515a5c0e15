// SPDX-License-Identifier: Apache-2.0
// What users of a master hear when it has no answer for them.
#include "cluster/client/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "cluster/network/loopback.h"
#include "cluster/network/unreachable.h"
#include "cluster/security/rpc_security.h"
#include "proto/master.grpc.pb.h"
#include "tests/cluster/certificates.h"

namespace heddle::cluster {
namespace {

// Takes connections and closes them at once.
class ClosingServer {
 public:
  ClosingServer() {
    int port = 0;
    socket_ = ListenOnLoopback(&port).Release();
    EXPECT_GE(socket_, 0);
    address_ = fmt::format("127.0.0.1:{}", port);
    thread_ = std::thread([this] {
      for (int connection; (connection = accept(socket_, nullptr, nullptr)) >= 0;) close(connection);
    });
  }
  ~ClosingServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  const std::string& address() const { return address_; }

 private:
  int socket_;
  std::string address_;
  std::thread thread_;
};

TEST(WhyUnreachableTest, AServerThatClosesEveryConnectionIsNamed) {
  const ClosingServer server;
  const Status plain = WhyUnreachable(server.address(), {});
  EXPECT_EQ(plain.code(), StatusCode::kUnavailable);
  EXPECT_EQ(plain.ToString(),
            "the master at " + server.address() +
                " does not answer\n"
                "it may be starting, have too many connections, or be no master; try again");
  const testing_support::TemporaryFolder folder;
  const testing_support::TestCertificate authority(folder.path() + "/ca", {.authority = true});
  const Status tls = WhyUnreachable(server.address(), {.authority = authority.certificate()});
  EXPECT_EQ(tls.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(tls.message().starts_with("the master at " + server.address() + " breaks off TLS: "))
      << tls.message();
}

TEST(FromGrpcTest, CallsThatEndWithoutAnAnswerAreNamed) {
  const auto message = [](grpc::StatusCode code) {
    const Status status = FromGrpc(grpc::Status(code, "gone"), "here:80");
    EXPECT_EQ(ExitCode(status), 6);
    return status.message();
  };
  EXPECT_EQ(message(grpc::StatusCode::DEADLINE_EXCEEDED), "the master at here:80 did not answer in time");
  EXPECT_EQ(message(grpc::StatusCode::CANCELLED), "the master at here:80 ended the call");
  EXPECT_EQ(message(grpc::StatusCode::UNKNOWN), "the master at here:80: gone");
}

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
