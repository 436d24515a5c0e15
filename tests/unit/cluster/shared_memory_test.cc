// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>

#include "cluster/link/memory_client.h"
#include "cluster/link/memory_server.h"
#include "cluster/link/memory_socket.h"
#include "cluster/link/ring_memory.h"
#include "core/memory/memory_budget.h"
#include "tests/unit/cluster/linked_ranks.h"

namespace heddle::cluster {
namespace {

constexpr int kPatienceMs = 20'000;

std::array<Value, 6> ValuesOfAllKinds() {
  Matrix part = *ToSparse(Numbered(5000, 30));
  const std::vector<double> numbers(70'000, 0.5);
  const std::vector<std::string_view> texts(70'000, "some text");
  return {Value(Numbered(300'000, 3)),
          Value(part.Rows(1000, 4000)),
          Value(*Frame::Of({"a", "b"}, {*Column::OfDoubles(numbers), *Column::OfTexts(texts)})),
          Value(Scalar(std::string(3'000'000, 't'))),
          Value(*Matrix::Dense(0, 7)),
          Value(*Matrix::Sparse(0, 7, 0))};
}

void ExpectSame(const Value& a, const Value& b) {
  ASSERT_EQ(a.kind(), b.kind());
  switch (a.kind()) {
    case Value::Kind::kScalar: EXPECT_EQ(a.scalar().AsString(), b.scalar().AsString()); break;
    case Value::Kind::kMatrix: EXPECT_TRUE(Matrix::SameCells(a.matrix(), b.matrix())); break;
    case Value::Kind::kFrame: EXPECT_TRUE(Frame::SameCells(a.frame(), b.frame())); break;
  }
}

// Pulls values of all kinds both ways; the bytes that came through memory.
int64_t PullAll(const std::vector<bool>& share_memory) {
  Links links(2, {}, "127.0.0.1:0", 400, share_memory);
  for (const Status& status : links.Connect()) EXPECT_TRUE(status.ok()) << status.ToString();
  const std::array<Value, 6> values = ValuesOfAllKinds();
  for (size_t i = 0; i < values.size(); ++i)
    for (const size_t rank : {0, 1}) links.runtime(rank).Publish(1, static_cast<RegisterId>(i), 0, values[i]);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (const size_t rank : {0, 1}) {
        const Result<Value> pulled =
            links.Pull(rank, static_cast<uint32_t>(1 - rank), 1, static_cast<RegisterId>(i), 0);
        EXPECT_TRUE(pulled.ok()) << pulled.status().ToString();
        if (pulled.ok()) ExpectSame(*pulled, values[i]);
      }
    }
  }
  EXPECT_EQ(links.Pull(0, 1, 7, 0, 0).status().code(), StatusCode::kCancelled);
  const LinkStatistics statistics = links[0].statistics();
  EXPECT_EQ(links[0].SharesMemoryWith(1), statistics.bytes_shared > 0);
  EXPECT_GT(statistics.bytes_received, 3 * values[0].bytes());
  EXPECT_GT(links[1].statistics().bytes_sent, 3 * values[0].bytes());
  if (statistics.bytes_shared > 0) {
    EXPECT_EQ(statistics.bytes_shared, statistics.bytes_received);
  }
  return statistics.bytes_shared;
}

TEST(SharedMemoryTest, ValuesOfAllKindsComeThroughIt) { EXPECT_GT(PullAll({true, true}), 0); }
TEST(SharedMemoryTest, WhereItIsForbiddenTheSameValuesComeByTheStream) {
  EXPECT_EQ(PullAll({false, false}), 0);
  EXPECT_EQ(PullAll({true, false}), 0);
  EXPECT_EQ(PullAll({false, true}), 0);
}

TEST(SharedMemoryTest, ALargeValueHoldsUpNoSmallOne) {
  Links links(2, {}, "127.0.0.1:0", 400, {true, true});
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  constexpr int kPulls = 40;
  std::vector<std::promise<Result<Value>>> promises(kPulls);
  for (int i = 0; i < kPulls; ++i) {
    links.runtime(0).Publish(1, i, 0, Numbered(i == 0 ? 2'000'000 : 1000 + i, i % 2 == 0 ? 2 : 1));
    links[1].Pull(0, 1, i, 0, [&promises, i](Result<Value> value) {
      promises[static_cast<size_t>(i)].set_value(std::move(value));
    });
  }
  for (int i = 0; i < kPulls; ++i) {
    const Result<Value> value = promises[static_cast<size_t>(i)].get_future().get();
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_TRUE(
        Matrix::SameCells(value->matrix(), Numbered(i == 0 ? 2'000'000 : 1000 + i, i % 2 == 0 ? 2 : 1)));
  }
}

// --- a server, and whoever calls it ---

Hello HelloOf(int rank) { return {"test", 1, rank, 2, "0123456789abcdef"}; }

struct Server {
  Server() : server(*MemoryServer::Start(HelloOf(0), &bytes_sent)) { server->SetHandler(&runtime); }
  FakeRuntime runtime;
  std::atomic<int64_t> bytes_sent{0};
  std::unique_ptr<MemoryServer> server;
};

bool WaitFor(const MemorySocket& socket, int events) {
  pollfd polled = {socket.fd(), static_cast<short>(events), 0};
  return poll(&polled, 1, kPatienceMs) == 1;
}

MemorySocket::Outcome Next(const MemorySocket& socket, Packet* packet, Descriptor* descriptor) {
  EXPECT_TRUE(WaitFor(socket, POLLIN));
  std::string bytes;
  const MemorySocket::Outcome outcome = socket.Receive(&bytes, descriptor);
  if (outcome == MemorySocket::Outcome::kDone) *packet = *Packet::Decode(bytes);
  return outcome;
}

TEST(SharedMemoryTest, AStrangerGetsNothing) {
  Server server;
  server.runtime.Publish(1, 1, 0, Numbered(10'000, 1));
  Packet pull;
  pull.header.run = 1;
  pull.header.register_id = 1;
  std::vector<std::string> first_words = {pull.Encode(), "", "x", std::string(100, '\0')};
  for (const auto& change : std::vector<std::function<void(Hello*)>>{
           [](Hello* hello) { hello->token = "0123456789abcdeF"; }, [](Hello* hello) { hello->token = ""; },
           [](Hello* hello) { hello->job = "another"; }, [](Hello* hello) { hello->attempt = 2; },
           [](Hello* hello) { hello->ranks = 3; }, [](Hello* hello) { hello->rank = 0; },
           [](Hello* hello) { hello->rank = 2; }, [](Hello* hello) { hello->rank = -1; }}) {
    Hello hello = HelloOf(1);
    change(&hello);
    first_words.push_back(EncodeHello(hello));
  }
  first_words.push_back(EncodeHello(HelloOf(1)) + "x");
  for (const std::string& words : first_words) {
    const MemorySocket socket = *MemorySocket::Connect(server.server->name());
    socket.Send(words);
    socket.Send(pull.Encode());
    Packet packet;
    Descriptor descriptor;
    EXPECT_EQ(Next(socket, &packet, &descriptor), MemorySocket::Outcome::kClosed) << words;
    EXPECT_FALSE(descriptor.ok());
  }
  EXPECT_EQ(server.bytes_sent.load(), 0);
}

TEST(SharedMemoryTest, WhoSaysNothingIsLetGo) {
  Server server;
  const MemorySocket socket = *MemorySocket::Connect(server.server->name());
  Packet packet;
  Descriptor descriptor;
  EXPECT_EQ(Next(socket, &packet, &descriptor), MemorySocket::Outcome::kClosed);
}

TEST(SharedMemoryTest, APeerReadsTheRingAndCannotWriteOrShrinkIt) {
  Server server;
  server.runtime.Publish(1, 1, 0, Numbered(10'000, 1));
  const MemorySocket socket = *MemorySocket::Connect(server.server->name());
  socket.Send(EncodeHello(HelloOf(1)));
  Packet packet;
  Descriptor descriptor;
  ASSERT_EQ(Next(socket, &packet, &descriptor), MemorySocket::Outcome::kDone);
  EXPECT_EQ(packet.kind, PacketKind::kWelcome);
  Packet pull;
  pull.header.run = 1;
  pull.header.register_id = 1;
  socket.Send(pull.Encode());
  ASSERT_EQ(Next(socket, &packet, &descriptor), MemorySocket::Outcome::kDone);
  EXPECT_EQ(packet.kind, PacketKind::kRing);
  ASSERT_TRUE(descriptor.ok());
  EXPECT_NE(ftruncate(descriptor.get(), 0), 0);
  EXPECT_LT(pwrite(descriptor.get(), "x", 1, 0), 0);
  EXPECT_EQ(mmap(nullptr, packet.handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0),
            MAP_FAILED);
  const Result<RingMemory> memory = RingMemory::Map(std::move(descriptor), packet.handle.bytes);
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  // Returning what was never written ends the connection.
  Packet forged;
  forged.kind = PacketKind::kReturn;
  forged.handle = {packet.handle.arena, 0, packet.handle.bytes, 3};
  socket.Send(forged.Encode());
  for (;;) {
    Descriptor none;
    if (Next(socket, &packet, &none) == MemorySocket::Outcome::kClosed) break;
  }
}

TEST(SharedMemoryTest, ARingCountsAndGoesWithItsReader) {
  Server server;
  server.runtime.Publish(1, 1, 0, Numbered(10'000, 1));
  const int64_t before = MemoryBudget::Process().used();
  {
    const MemorySocket socket = *MemorySocket::Connect(server.server->name());
    socket.Send(EncodeHello(HelloOf(1)));
    Packet pull;
    pull.header.run = 1;
    pull.header.register_id = 1;
    socket.Send(pull.Encode());
    Packet packet;
    Descriptor descriptor;
    while (packet.kind != PacketKind::kRing)
      ASSERT_EQ(Next(socket, &packet, &descriptor), MemorySocket::Outcome::kDone);
    EXPECT_GE(MemoryBudget::Process().used(), before + static_cast<int64_t>(packet.handle.bytes));
  }
  while (MemoryBudget::Process().used() >= before + (int64_t{1} << 20)) std::this_thread::yield();
}

TEST(SharedMemoryTest, WhatIsNoRingIsNotMapped) {
  EXPECT_EQ(RingMemory::Map(Descriptor(), 4096).status().message(),
            "no shared memory: fstat: Bad file descriptor");
  Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(RingMemory::Map(std::move(unsealed), 4096).status().message(),
            "no shared memory: what came is not a ring");
  const RingMemory memory = *RingMemory::Make(4096);
  EXPECT_EQ(RingMemory::Map(Descriptor(dup(memory.descriptor())), 8192).status().message(),
            "no shared memory: what came is not a ring");
}

TEST(SharedMemoryTest, PacketsAreReadWithCare) {
  Packet packet;
  packet.kind = PacketKind::kFrame;
  packet.handle = {1, 3'000'000'000, 5'000'000'000, 7};
  packet.header.run = 9;
  const std::string bytes = packet.Encode();
  const Packet decoded = *Packet::Decode(bytes);
  EXPECT_EQ(decoded.kind, PacketKind::kFrame);
  EXPECT_EQ(decoded.handle.offset, 3'000'000'000u);
  EXPECT_EQ(decoded.handle.bytes, 5'000'000'000u);
  EXPECT_EQ(decoded.handle.generation, 7u);
  EXPECT_EQ(decoded.header.run, 9u);
  EXPECT_EQ(Packet::Decode("").status().message(), "a packet of unknown kind");
  EXPECT_EQ(Packet::Decode("\x09" + bytes.substr(1)).status().message(), "a packet of unknown kind");
  EXPECT_EQ(Packet::Decode(bytes.substr(0, 20)).status().message(), "a packet is cut off");
  EXPECT_EQ(Packet::Decode(bytes + "x").status().message(), "a packet of the wrong length");
  EXPECT_FALSE(MemorySocket::IsName("heddle-memory-short"));
  EXPECT_TRUE(MemorySocket::IsName(MemorySocket::MakeName()));
  EXPECT_EQ(MemorySocket::Connect(MemorySocket::MakeName()).status().message(),
            "no socket for shared memory: Connection refused");
}

// --- a client, and servers that break ---

struct Client {
  Client() {
    MemoryClient::Events events;
    events.settled = [this] { Settle(); };
    events.elsewhere = [](size_t, uint32_t, RegisterId, uint8_t, MemoryClient::Done done) {
      done(NotFound("elsewhere"));
    };
    client = *MemoryClient::Start(HelloOf(1), {&received, &shared}, std::move(events));
  }
  void Settle() {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
  void WaitUntilSettled() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return client->IsSettled(0); });
  }
  std::future<Result<Value>> Pull() {
    auto promise = std::make_shared<std::promise<Result<Value>>>();
    MemoryClient::Done done = [promise](Result<Value> value) { promise->set_value(std::move(value)); };
    if (!client->Pull(0, 1, 1, 0, &done)) done(NotFound("elsewhere at once"));
    return promise->get_future();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int64_t> received{0};
  std::atomic<int64_t> shared{0};
  std::unique_ptr<MemoryClient> client;
};

std::string WhereFrom(std::future<Result<Value>> pulled) {
  const Result<Value> value = pulled.get();
  return value.ok() ? "" : std::string(value.status().message());
}

// Takes the caller in as a server does, up to the first pull.
MemorySocket Greet(const MemorySocket& listener, Client* client) {
  EXPECT_TRUE(WaitFor(listener, POLLIN));
  std::optional<MemorySocket> caller = listener.Accept();
  std::string hello;
  Descriptor none;
  EXPECT_TRUE(WaitFor(*caller, POLLIN));
  caller->Receive(&hello, &none);
  int rank = 0;
  EXPECT_TRUE(CheckHello(HelloOf(0), hello, &rank));
  Packet welcome;
  welcome.kind = PacketKind::kWelcome;
  caller->Send(welcome.Encode());
  client->WaitUntilSettled();
  EXPECT_TRUE(client->client->IsConnected(0));
  return *std::move(caller);
}

TEST(SharedMemoryTest, WhatAServerThatGoesOwesComesFromElsewhere) {
  Client client;
  const std::string name = MemorySocket::MakeName();
  const MemorySocket listener = *MemorySocket::Listen(name);
  client.client->Connect(0, name);
  std::future<Result<Value>> pulled;
  {
    const MemorySocket caller = Greet(listener, &client);
    pulled = client.Pull();
  }
  EXPECT_EQ(WhereFrom(std::move(pulled)), "elsewhere");
  while (client.client->IsConnected(0)) std::this_thread::yield();
  EXPECT_EQ(WhereFrom(client.Pull()), "elsewhere at once");
}

TEST(SharedMemoryTest, AServerThatIsAbsentOrSilentIsDoneWithout) {
  Client absent;
  absent.client->Connect(0, MemorySocket::MakeName());
  EXPECT_TRUE(absent.client->IsSettled(0));
  EXPECT_EQ(WhereFrom(absent.Pull()), "elsewhere at once");
  Client silent;
  const std::string name = MemorySocket::MakeName();
  const MemorySocket listener = *MemorySocket::Listen(name);
  silent.client->Connect(0, name);
  silent.WaitUntilSettled();
  EXPECT_FALSE(silent.client->IsConnected(0));
}

TEST(SharedMemoryTest, NonsenseOfAServerIsNotRead) {
  const RingMemory memory = *RingMemory::Make(4096);
  Packet ring;
  ring.kind = PacketKind::kRing;
  ring.handle = {77, 0, 4096, 0};
  Packet frame;
  frame.kind = PacketKind::kFrame;
  frame.header.kind = engine::FrameKind::kBegin;
  frame.header.request = 1;
  frame.header.size = 16;
  frame.handle = {77, 0, 16, 0};
  const auto with = [&](const std::function<void(Packet*)>& change) {
    Packet changed = frame;
    change(&changed);
    return changed;
  };
  const std::vector<std::vector<Packet>> all = {
      {frame},  // without a ring
      {ring, ring},
      {ring, with([](Packet* packet) { packet->kind = PacketKind::kPull; })},
      {ring, with([](Packet* packet) { packet->handle.arena = 78; })},
      {ring, with([](Packet* packet) { packet->handle.offset = 4090; })},
      {ring, with([](Packet* packet) { packet->handle.generation = 2; })},
      {ring, with([](Packet* packet) { packet->header.size = 17; })},
  };
  for (const std::vector<Packet>& packets : all) {
    Client client;
    const std::string name = MemorySocket::MakeName();
    const MemorySocket listener = *MemorySocket::Listen(name);
    client.client->Connect(0, name);
    const MemorySocket caller = Greet(listener, &client);
    std::future<Result<Value>> pulled = client.Pull();
    for (const Packet& packet : packets)
      caller.Send(packet.Encode(), packet.kind == PacketKind::kRing ? memory.descriptor() : -1);
    EXPECT_EQ(WhereFrom(std::move(pulled)), "elsewhere");
  }
}

}  // namespace
}  // namespace heddle::cluster
