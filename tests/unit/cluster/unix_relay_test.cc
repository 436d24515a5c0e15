// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/unix_relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "cluster/network/relay_direction.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kMostBytes = 1000;

// The two ends of a connection by a relay: the caller's, and the server's.
struct Ends {
  int caller = -1, server = -1;
};

class UnixRelayTest : public testing::Test {
 protected:
  UnixRelayTest() : relay_(*UnixRelay::Start(kMostBytes)) {}
  ~UnixRelayTest() override {
    for (const Ends& ends : all_) {
      close(ends.caller);
      close(ends.server);
    }
  }
  Ends Join(const std::string& name) {
    std::array<int, 2> pair = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    all_.push_back({pair[0], relay_->Join(pair[1], name + std::to_string(getpid()))});
    EXPECT_GE(all_.back().server, 0);
    return all_.back();
  }
  void Admit(const std::string& name) { relay_->Admit(name + std::to_string(getpid())); }
  // What comes within 20 s, until there are `bytes` or the other side has ended.
  static std::string Read(int fd, size_t bytes) {
    std::string text;
    std::array<char, 4096> piece = {};
    pollfd polled = {fd, POLLIN, 0};
    while (text.size() < bytes && poll(&polled, 1, 20'000) == 1) {
      const ssize_t got = read(fd, piece.data(), std::min(piece.size(), bytes - text.size()));
      if (got <= 0) break;
      text.append(piece.data(), static_cast<size_t>(got));
    }
    return text;
  }
  static void Write(int fd, const std::string& text) {
    ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  std::unique_ptr<UnixRelay> relay_;
  std::vector<Ends> all_;
};

TEST_F(UnixRelayTest, PassesOnBothDirectionsOfManyConnections) {
  for (int i = 0; i < 300; ++i) Join("c" + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < all_.size(); ++i) {
      Write(all_[i].caller, "call " + std::to_string(i));
      Write(all_[i].server, "answer " + std::to_string(i));
    }
    for (size_t i = 0; i < all_.size(); ++i) {
      const std::string call = "call " + std::to_string(i), answer = "answer " + std::to_string(i);
      EXPECT_EQ(Read(all_[i].server, call.size()), call);
      EXPECT_EQ(Read(all_[i].caller, answer.size()), answer);
    }
  }
}

// What waits for a side that does not read goes on when it does, and ends behind the last byte.
TEST_F(UnixRelayTest, ASideThatDoesNotReadHoldsUpNoOtherConnection) {
  const Ends slow = Join("slow"), quick = Join("quick");
  Admit("slow");
  std::string sent;
  for (;;) {  // until nobody takes any more
    const std::string piece(10'000, static_cast<char>('a' + sent.size() / 10'000 % 26));
    pollfd polled = {slow.caller, POLLOUT, 0};
    if (poll(&polled, 1, 500) != 1) break;
    const ssize_t taken = send(slow.caller, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken > 0) sent += piece.substr(0, static_cast<size_t>(taken));
  }
  ASSERT_GT(sent.size(), RelayDirection::kBufferBytes);
  shutdown(slow.caller, SHUT_WR);
  Write(quick.caller, "hello");
  EXPECT_EQ(Read(quick.server, 5), "hello");
  EXPECT_EQ(Read(slow.server, sent.size() + 1), sent);
  Write(slow.server, "answer");
  EXPECT_EQ(Read(slow.caller, 6), "answer") << "one side has ended, the other has not";
}

TEST_F(UnixRelayTest, OnlyThoseThatAreAdmittedSendMuch) {
  const Ends known = Join("known"), stranger = Join("stranger");
  EXPECT_EQ(relay_->Newcomers(10).size(), 2u);
  EXPECT_EQ(relay_->Newcomers(1).size(), 1u);
  Admit("known");
  EXPECT_EQ(relay_->Newcomers(10), std::vector<std::string>{"stranger" + std::to_string(getpid())});
  const std::string text(2 * kMostBytes, 'x');
  Write(known.caller, text);
  EXPECT_EQ(Read(known.server, text.size()), text);
  Write(stranger.caller, text);
  EXPECT_EQ(Read(stranger.caller, 1), "");
  EXPECT_EQ(relay_->TakeTalkers(), 1);
  EXPECT_FALSE(relay_->HasNewcomers());
}

// A master has thousands of connections that are idle most of the time.
TEST(RelayDirectionTest, HoldsNoMemoryWhileNothingWaits) {
  std::array<int, 2> in = {-1, -1}, out = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, in.data()), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, out.data()), 0);
  RelayDirection direction;
  direction.from = in[1];
  direction.to = out[0];
  const auto all = [](std::string_view) { return true; };
  ASSERT_EQ(write(in[0], "text", 4), 4);
  EXPECT_TRUE(direction.Move(all));
  EXPECT_TRUE(direction.Move(all)) << "nothing is there";
  EXPECT_EQ(direction.passed, 4);
  EXPECT_EQ(direction.unsent.capacity(), 0u);
  close(in[0]);
  EXPECT_TRUE(direction.Move(all));
  EXPECT_TRUE(direction.has_ended);
  EXPECT_EQ(direction.unsent.capacity(), 0u);
  for (const int fd : {in[1], out[0], out[1]}) close(fd);
}

}  // namespace
}  // namespace heddle::cluster
