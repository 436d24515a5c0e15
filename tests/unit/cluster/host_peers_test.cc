// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_peers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/link/host_socket.h"
#include "ops/io/checksums/sha256.h"
#include "tests/unit/cluster/trapped_call.h"

namespace heddle::cluster {
namespace {

Hello HelloOf(int rank, const std::string& token = "secret") {
  return {.job = "peers " + std::to_string(getpid()), .attempt = 1, .rank = rank, .ranks = 3, .token = token};
}

// What only executors of the attempt can say.
std::string SecretOf(const std::string& what, size_t from, size_t to) {
  const Hello own = HelloOf(0);
  const auto text = [](const ops::Sha256Digest& digest) {
    return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  const std::string key = text(ops::Sha256({own.token, "\n", own.job, "\n", "1"}));
  return text(ops::HmacSha256(key, {what, fmt::format(" {} {}", from, to)}));
}

std::string NameOf(size_t rank) {
  std::string name = "heddle-";
  for (const char byte : SecretOf("name", rank, rank))
    name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

std::string Question(size_t from, size_t to) {
  const auto rank = static_cast<uint32_t>(from);
  return SecretOf("asks", from, to) + std::string(reinterpret_cast<const char*>(&rank), sizeof(rank));
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Whether the other end has said something, or does so before it closes.
bool IsAnswered(const Descriptor& socket) {
  std::string said;
  Descriptor inbox;
  return ReceivePacket(socket, &said, &inbox);
}

TEST(HostPeersTest, APairGetsAtEachOthersMemoryByOneExchange) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const auto second = *HostPeers::Listen(HelloOf(1));
  second->FindPeers();
  EXPECT_TRUE(first->Reaches(1) && second->Reaches(0));
  EXPECT_TRUE(first->ReachesAny());
  EXPECT_FALSE(first->Reaches(2)) << "nobody is there";
  EXPECT_EQ(first->inbox(2), nullptr);
  EXPECT_TRUE(HostPeers::Listen(HelloOf(1))
                  .status()
                  .message()
                  .starts_with("peers of this machine cannot be answered: "))
      << "one for each rank";

  RingWriter writer(second->inbox(0)->messages(1));
  ASSERT_TRUE(writer.Append({"hello"}));
  writer.Publish();
  RingReader reader(first->own().messages(1));
  std::string record;
  ASSERT_TRUE(*reader.Next(&record));
  EXPECT_EQ(record, "hello");
  second->own().doorbell_of_thread().store(1);
  EXPECT_TRUE(first->inbox(1)->RingForMessages());
  EXPECT_EQ(second->own().doorbell_of_thread().load(), 0u);
}

TEST(HostPeersTest, WhoDoesNotKnowTheSecretIsNotFound) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const auto stranger = *HostPeers::Listen(HelloOf(1, "guess"));
  stranger->FindPeers();
  EXPECT_FALSE(stranger->ReachesAny());
  EXPECT_FALSE(first->ReachesAny());
}

TEST(HostPeersTest, AStrangerWhoFoundTheSocketGetsNothing) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const auto memory = *SharedInbox::Create(3);
  std::string wrong_secret = Question(1, 0);
  wrong_secret[3] = static_cast<char>(wrong_secret[3] ^ 1);
  std::string wrong_rank = Question(1, 0);
  wrong_rank[wrong_rank.size() - 4] = 2;
  for (const std::string& words :
       {std::string("x"), wrong_secret, wrong_rank, Question(0, 0), Question(3, 0), Question(1, 0) + "x",
        Question(1, 0).substr(0, 32), std::string(300, 'x')}) {
    const Descriptor socket = ConnectOnHost(NameOf(0));
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(SendPacket(socket, words, memory->descriptor()));
    EXPECT_FALSE(IsAnswered(socket));
  }
  const Descriptor without_memory = ConnectOnHost(NameOf(0));
  ASSERT_TRUE(SendPacket(without_memory, Question(1, 0)));
  EXPECT_FALSE(IsAnswered(without_memory));
  EXPECT_EQ(first->inbox(1), nullptr);
}

// Whether the other end still holds the connection.
bool IsOpen(const Descriptor& socket) {
  pollfd polled = {socket.get(), POLLIN, 0};
  return poll(&polled, 1, 0) == 0;
}

// Silent from the beginning, and behind a question that was answered. A machine that stands still for two
// seconds says nothing.
TEST(HostPeersTest, WhoSaysNothingHoldsNobodyUp) {
  bool is_shown = false;
  for (int attempt = 0; attempt < 10 && !is_shown; ++attempt) {
    const auto first = *HostPeers::Listen(HelloOf(0));
    const auto memory = *SharedInbox::Create(3);
    const Descriptor silent = ConnectOnHost(NameOf(0));
    const Descriptor half_silent = ConnectOnHost(NameOf(0));
    ASSERT_TRUE(silent.ok() && half_silent.ok());
    ASSERT_TRUE(SendPacket(half_silent, Question(2, 0), memory->descriptor()));
    EXPECT_TRUE(IsAnswered(half_silent));
    const auto second = *HostPeers::Listen(HelloOf(1));
    second->FindPeers();
    EXPECT_TRUE(first->Reaches(1));
    is_shown = IsOpen(silent) && IsOpen(half_silent);
  }
  EXPECT_TRUE(is_shown) << "the silent ones had to go first";
}

TEST(HostPeersTest, WhoSaysNothingIsLetGo) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const Descriptor silent = ConnectOnHost(NameOf(0));
  pollfd polled = {silent.get(), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 60'000), 1) << "it is closed";
}

std::atomic<int> accepts{0};

// Want of descriptors, and callers that have gone again, are over some time.
TEST(HostPeersDeathTest, ASystemThatRefusesCallersForAWhileIsAskedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        TrapCall(SYS_accept4, [](const std::array<int64_t, 3>& arguments) -> int64_t {
          constexpr int kRefusals[] = {EMFILE, ECONNABORTED, ENFILE, EINTR, ENOMEM, ENOBUFS, EPROTO};
          if (const int i = accepts.fetch_add(1); i < static_cast<int>(std::size(kRefusals)))
            return -kRefusals[i];
          const int64_t accepted = syscall(SYS_accept, arguments[0], nullptr, nullptr);
          return accepted >= 0 ? accepted : -errno;
        });
        const auto first = *HostPeers::Listen(HelloOf(0));
        const auto second = *HostPeers::Listen(HelloOf(1));
        second->FindPeers();
        _exit(first->Reaches(1) && second->Reaches(0) && accepts > 7 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Rank 2 asks two ranks, of which one has stopped.
TEST(HostPeersTest, AFrozenPeerHoldsUpNoOther) {
  bool is_shown = false;
  for (int attempt = 0; attempt < 10 && !is_shown; ++attempt) {
    const Descriptor frozen = ListenOnHost(NameOf(0));
    ASSERT_TRUE(frozen.ok());
    const auto second = *HostPeers::Listen(HelloOf(1));
    const auto third = *HostPeers::Listen(HelloOf(2));
    std::future<void> finding = std::async(std::launch::async, [&] { third->FindPeers(); });
    while (!second->Reaches(2)) std::this_thread::yield();
    const Descriptor asked = AcceptOnHost(frozen);
    ASSERT_TRUE(asked.ok());
    EXPECT_TRUE(IsAnswered(asked)) << "its question is there";
    is_shown = IsOpen(asked);
    finding.get();
    EXPECT_TRUE(third->Reaches(1));
    EXPECT_FALSE(third->Reaches(0));
  }
  EXPECT_TRUE(is_shown) << "the frozen one was given up first";
}

// It would be asked for values that it cannot send.
TEST(HostPeersTest, APeerThatDoesNotSayThatItHasTheMemoryIsNotReached) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const auto memory = *SharedInbox::Create(3);
  {
    const Descriptor socket = ConnectOnHost(NameOf(0));
    ASSERT_TRUE(SendPacket(socket, Question(1, 0), memory->descriptor()));
    EXPECT_TRUE(IsAnswered(socket));
  }
  const Descriptor again = ConnectOnHost(NameOf(0));
  ASSERT_TRUE(SendPacket(again, Question(1, 0), memory->descriptor()));
  EXPECT_FALSE(IsAnswered(again)) << "a pair exchanges memory once";
  EXPECT_FALSE(first->Reaches(1));
}

TEST(HostPeersTest, WhoComesLateIsNotReached) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  first->Settle();
  const auto second = *HostPeers::Listen(HelloOf(1));
  second->FindPeers();
  EXPECT_FALSE(first->Reaches(1));
  EXPECT_FALSE(second->Reaches(0));
}

// Room for one descriptor is room for two, because of padding.
TEST(HostPeersTest, DescriptorsThatNobodyAskedForAreClosed) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const Descriptor sender(pair[0]), receiver(pair[1]);
  const size_t before = OpenDescriptors();
  for (const size_t count : {2u, 3u}) {
    std::vector<int> sent(count, sender.get());
    char byte = 'x';
    iovec part{.iov_base = &byte, .iov_len = 1};
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), sent.data(), count * sizeof(int));
    ASSERT_EQ(sendmsg(sender.get(), &message, 0), 1);
    std::string text;
    Descriptor descriptor;
    EXPECT_FALSE(ReceivePacket(receiver, &text, &descriptor));
    EXPECT_EQ(OpenDescriptors(), before + (descriptor.ok() ? 1 : 0)) << count;
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(SharedInboxTest, MemoryOfAnotherKindIsRefused) {
  const auto of_three = *SharedInbox::Create(3);
  const auto open = [](int descriptor, size_t ranks) {
    return SharedInbox::Open(Descriptor(dup(descriptor)), ranks, /*writer=*/1).status();
  };
  EXPECT_TRUE(open(of_three->descriptor(), 3).ok());
  EXPECT_EQ(open(of_three->descriptor(), 4).message(), "a peer offers memory of the wrong kind");
  const Descriptor zeros(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(open(zeros.get(), 3).ok());
  EXPECT_FALSE(open(-1, 3).ok());
  // Of the right size, but a peer could make it smaller, and so kill who reads it.
  const auto bytes =
      static_cast<off_t>(std::filesystem::file_size(fmt::format("/proc/self/fd/{}", of_three->descriptor())));
  const Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const Descriptor for_ever_unsealed(memfd_create("test", MFD_CLOEXEC));
  const Descriptor without_shrink(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::string path = testing::TempDir() + "shared_inbox_XXXXXX";
  const Descriptor file(mkstemp(path.data()));
  std::filesystem::remove(path);
  for (const Descriptor* memory : {&unsealed, &for_ever_unsealed, &without_shrink, &file})
    ASSERT_EQ(ftruncate(memory->get(), bytes), 0);
  ASSERT_EQ(fcntl(without_shrink.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  for (const Descriptor* memory : {&unsealed, &for_ever_unsealed, &without_shrink, &file})
    EXPECT_EQ(open(memory->get(), 3).message(), "a peer offers memory of the wrong kind");
}

TEST(SharedInboxTest, NobodyCanShrinkIt) {
  const auto inbox = *SharedInbox::Create(3);
  EXPECT_NE(ftruncate(inbox->descriptor(), 0), 0);
  EXPECT_NE(ftruncate(inbox->descriptor(), int64_t{1} << 40), 0);
}

TEST(SharedInboxTest, RingsOfDifferentRanksAndKindsDoNotOverlap) {
  const auto inbox = *SharedInbox::Create(3);
  std::vector<std::pair<std::byte*, std::byte*>> pieces;
  for (size_t rank = 0; rank < 3; ++rank) {
    for (const RingMemory& ring : {inbox->messages(rank), inbox->pulls(rank), inbox->values(rank)}) {
      auto* const positions = reinterpret_cast<std::byte*>(ring.positions);
      pieces.emplace_back(positions, positions + sizeof(RingPositions));
      pieces.emplace_back(ring.bytes, ring.bytes + ring.capacity);
      EXPECT_EQ(ring.capacity & (ring.capacity - 1), 0u);
    }
    EXPECT_TRUE(inbox->ReserveMessages(rank).ok());
    EXPECT_TRUE(inbox->ReserveValues(rank).ok());
  }
  std::ranges::sort(pieces);
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i - 1].second, pieces[i].first);
  EXPECT_EQ(SharedInbox::ValueBytes(2), size_t{4} << 20);
  EXPECT_EQ(SharedInbox::ValueBytes(17), size_t{2} << 20);
  EXPECT_EQ(SharedInbox::ValueBytes(1000), size_t{1} << 20);
}

}  // namespace
}  // namespace heddle::cluster
