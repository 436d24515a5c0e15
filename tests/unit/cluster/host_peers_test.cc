// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_peers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cluster/link/host_socket.h"
#include "ops/io/checksums/sha256.h"

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

// Whether the other end says something before it closes.
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

TEST(HostPeersTest, WhoSaysNothingHoldsNobodyUpForLong) {
  const auto first = *HostPeers::Listen(HelloOf(0));
  const Descriptor silent = ConnectOnHost(NameOf(0));
  ASSERT_TRUE(silent.ok());
  EXPECT_FALSE(IsAnswered(silent));
  const auto second = *HostPeers::Listen(HelloOf(1));
  second->FindPeers();
  EXPECT_TRUE(first->Reaches(1));
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
  const Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(),
                      std::filesystem::file_size(fmt::format("/proc/self/fd/{}", of_three->descriptor()))),
            0);
  EXPECT_EQ(open(unsealed.get(), 3).message(), "a peer offers memory of the wrong kind");
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
