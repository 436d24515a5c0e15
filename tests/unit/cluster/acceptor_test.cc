// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <vector>

#include "cluster/network/address.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

void WaitForInput(int fd) {
  pollfd poller = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&poller, 1, 20'000), 1);
}

// A server that holds what it is given.
class Holder {
 public:
  Holder(const std::string& address, const ConnectionLimits& limits,
         std::shared_ptr<Newcomers> newcomers = nullptr) {
    auto acceptor = Acceptor::Listen(address, limits, std::move(newcomers));
    EXPECT_TRUE(acceptor.ok()) << acceptor.status().ToString();
    acceptor_ = *std::move(acceptor);
    acceptor_->Start([this](int fd) {
      const std::lock_guard lock(mutex_);
      held_.push_back(fd);
      changed_.notify_all();
    });
  }
  ~Holder() {
    acceptor_.reset();
    for (const int fd : held_) close(fd);
  }
  void WaitFor(size_t number) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return held_.size() >= number; }));
    EXPECT_EQ(held_.size(), number);
  }
  /// What gRPC would call the peer of a connection of a unix socket.
  std::string PeerOf(size_t i) {
    const std::lock_guard lock(mutex_);
    SocketAddress peer;
    peer.size = sizeof(peer.storage);
    EXPECT_EQ(getpeername(held_[i], peer.get(), &peer.size), 0);
    const char* const name = reinterpret_cast<const sockaddr_un*>(&peer.storage)->sun_path + 1;
    return "unix-abstract:" + std::string(name, peer.size - offsetof(sockaddr_un, sun_path) - 1);
  }
  std::string Receive(size_t i) {
    char bytes[100];
    const ssize_t got = (WaitForInput(held_[i]), recv(held_[i], bytes, sizeof(bytes), 0));
    return got < 0 ? "error" : std::string(bytes, static_cast<size_t>(got));
  }
  void Reply(size_t i, const std::string& text) {
    EXPECT_EQ(send(held_[i], text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  void CloseOne() {
    const std::lock_guard lock(mutex_);
    close(held_.back());
    held_.pop_back();
  }
  const std::string& address() const { return acceptor_->address(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> held_;
  std::unique_ptr<Acceptor> acceptor_;
};

class Caller {
 public:
  std::string Receive() const {
    char bytes[100];
    WaitForInput(fd_);
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    return got < 0 ? "error" : std::string(bytes, static_cast<size_t>(got));
  }
  void EndSending() const { shutdown(fd_, SHUT_WR); }

  explicit Caller(const std::string& address) {
    const SocketAddress to = (*Resolve(address))[0];
    fd_ = socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    connected_ = connect(fd_, to.get(), to.size) == 0;
  }
  ~Caller() { close(fd_); }
  Caller(const Caller&) = delete;
  bool connected() const { return connected_; }
  int port() const {
    SocketAddress own;
    own.size = sizeof(own.storage);
    EXPECT_EQ(getsockname(fd_, own.get(), &own.size), 0);
    return ntohs(own.family() == AF_INET ? reinterpret_cast<const sockaddr_in*>(&own.storage)->sin_port
                                         : reinterpret_cast<const sockaddr_in6*>(&own.storage)->sin6_port);
  }
  void Send(size_t bytes) const {
    const std::string text(bytes, 'x');
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  bool IsOpen() const {
    char byte = 0;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  /// True when the other side has closed the connection; waits for it.
  bool IsRefused() const {
    pollfd poller = {fd_, POLLIN, 0};
    char byte = 0;
    return poll(&poller, 1, 20'000) == 1 && recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

TEST(AcceptorTest, APeerAtItsLimitIsRefusedAndAnotherIsNot) {
  Holder server("0.0.0.0:0", {/*most=*/3, /*most_of_a_peer=*/2});
  const std::string port = server.address().substr(server.address().rfind(':'));
  const Caller first("127.0.0.1" + port);
  const Caller second("127.0.0.1" + port);
  server.WaitFor(2);
  EXPECT_TRUE(Caller("127.0.0.1" + port).IsRefused());
  server.CloseOne();
  const Caller third("127.0.0.1" + port);
  server.WaitFor(2);
  EXPECT_TRUE(Caller("127.0.0.1" + port).IsRefused()) << "the limit holds again";
}

TEST(AcceptorTest, TheWholeServerHasALimit) {
  testing_support::TemporaryFolder folder;
  const std::string address = "unix:" + folder.path() + "/socket";
  {
    Holder server(address, {/*most=*/1, /*most_of_a_peer=*/5});
    const Caller first(address);
    server.WaitFor(1);
    EXPECT_TRUE(Caller(address).IsRefused());
    server.CloseOne();
    const Caller second(address);
    server.WaitFor(1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the socket goes with its server";
}

// The reserve is taken to take connections and refuse them; as soon as there are descriptors all is as
// before.
TEST(AcceptorTest, WithoutDescriptorsConnectionsAreRefusedAndTakenAgainAfterwards) {
  Holder server("127.0.0.1:0", {/*most=*/1000, /*most_of_a_peer=*/1000});
  const Caller first(server.address());
  server.WaitFor(1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> all;
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  // The callers' own come first.
  const SocketAddress to = (*Resolve(server.address()))[0];
  std::vector<int> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) all.push_back(fd);
  for (const int caller : callers) {
    EXPECT_EQ(connect(caller, to.get(), to.size), 0);
    pollfd poller = {caller, POLLIN, 0};
    char byte = 0;
    EXPECT_EQ(poll(&poller, 1, 20'000), 1);
    EXPECT_LE(recv(caller, &byte, 1, 0), 0) << "refused";
  }
  for (const int fd : all) close(fd);
  for (const int caller : callers) close(caller);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  server.WaitFor(1);
  const Caller second(server.address());
  server.WaitFor(2);
}

TEST(AcceptorTest, LimitsFollowTheDescriptors) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) GTEST_SKIP() << "this process has few descriptors";
  rlimit now = before;
  now.rlim_cur = 1024;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(LimitsForStrangers().most, 896);
  EXPECT_EQ(LimitsForStrangers().most_of_a_peer, 224);
  EXPECT_EQ(LimitsForPeers(2).most, 32);
  now.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(LimitsForStrangers().most, 50);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(AcceptorTest, AStrangerThatSaysMuchIsShutOut) {
  const auto newcomers = std::make_shared<Newcomers>(/*most_bytes=*/1000);
  Holder server("127.0.0.1:0", {10, 10}, newcomers);
  const Caller talker(server.address()), quiet(server.address()), known(server.address());
  server.WaitFor(3);
  newcomers->Admit("ipv4:127.0.0.1:" + std::to_string(known.port()));
  quiet.Send(1000);
  known.Send(2000);
  talker.Send(1001);
  EXPECT_TRUE(talker.IsRefused());
  EXPECT_TRUE(quiet.IsOpen());
  EXPECT_TRUE(known.IsOpen());
}

TEST(AcceptorTest, AStrangerThatSaysMuchOverAUnixSocketIsShutOut) {
  testing_support::TemporaryFolder folder;
  const std::string address = "unix:" + folder.path() + "/socket";
  const auto newcomers = std::make_shared<Newcomers>(/*most_bytes=*/1000);
  ASSERT_TRUE(newcomers->CountUnixSockets().ok());
  Holder server(address, {10, 10}, newcomers);
  const Caller known(address);
  server.WaitFor(1);
  const Caller talker(address), quiet(address);
  server.WaitFor(3);
  newcomers->Admit(server.PeerOf(0));
  quiet.Send(1000);
  known.Send(200'000);
  talker.Send(1001);
  EXPECT_TRUE(talker.IsRefused());
  EXPECT_TRUE(quiet.IsOpen());
  EXPECT_TRUE(known.IsOpen());
  EXPECT_EQ(newcomers->ShutDownTalkers(), 1);
  newcomers->Admit(server.PeerOf(2));
  EXPECT_EQ(newcomers->NextLookMs(), -1) << "all are known";
}

TEST(AcceptorTest, WhatIsCountedArrivesOnBothWays) {
  testing_support::TemporaryFolder folder;
  const std::string address = "unix:" + folder.path() + "/socket";
  const auto newcomers = std::make_shared<Newcomers>();
  ASSERT_TRUE(newcomers->CountUnixSockets().ok());
  Holder server(address, {10, 10}, newcomers);
  const Caller caller(address);
  server.WaitFor(1);
  caller.Send(3);
  EXPECT_EQ(server.Receive(0), "xxx");
  server.Reply(0, "answer");
  EXPECT_EQ(caller.Receive(), "answer");
  caller.EndSending();
  EXPECT_EQ(server.Receive(0), "");
  server.Reply(0, "farewell");
  EXPECT_EQ(caller.Receive(), "farewell");
  server.CloseOne();
  EXPECT_EQ(caller.Receive(), "");
}

// Another process of the superuser takes the part of the other user.
TEST(AcceptorTest, AUnixSocketForOneUserTakesNoOther) {
  if (geteuid() != 0) GTEST_SKIP() << "only the superuser can be another user";
  const std::string address = "unix-abstract:heddle-test-" + std::to_string(getpid());
  Holder server(address, LimitsForPeers(1));
  const Caller own(address);
  server.WaitFor(1);
  const pid_t other = fork();
  if (other == 0) {
    constexpr uid_t kNobody = 65534;
    if (setuid(kNobody) != 0) _exit(2);
    _exit(Caller(address).IsRefused() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(own.IsOpen());
}

// As gRPC writes addresses of the new kind, and those of the old kind that a socket for both shows.
TEST(AcceptorTest, NewcomersOfBothKindsOfAddressesAreKnownByTheirName) {
  const auto newcomers = std::make_shared<Newcomers>(/*most_bytes=*/0);
  Result<std::unique_ptr<Acceptor>> probe = Acceptor::Listen("[::]:0", {10, 10});
  if (!probe.ok()) GTEST_SKIP() << "this machine has no addresses of that kind";
  Holder server("[::]:0", {10, 10}, newcomers);
  const std::string port = server.address().substr(server.address().rfind(':'));
  const Caller v6("[::1]" + port), v4("127.0.0.1" + port);
  if (!v6.connected()) GTEST_SKIP() << "the loopback has no address of that kind";
  server.WaitFor(2);
  EXPECT_GE(newcomers->NextLookMs(), 0);
  newcomers->Admit("ipv6:%5B::1%5D:" + std::to_string(v6.port()));
  newcomers->Admit("ipv4:127.0.0.1:" + std::to_string(v4.port()));
  EXPECT_EQ(newcomers->NextLookMs(), -1) << "all are known";
}

TEST(AcceptorTest, AnAddressInUseIsTold) {
  Holder server("127.0.0.1:0", {1, 1});
  EXPECT_EQ(Acceptor::Listen(server.address(), {1, 1}).status().message(),
            "cannot listen on " + server.address() + ": Address already in use");
}

}  // namespace
}  // namespace heddle::cluster
