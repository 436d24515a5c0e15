// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/memory_client.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/link/memory_socket.h"
#include "cluster/link/ring_memory.h"
#include "cluster/link/ring_space.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kWelcomeNs = 2'000'000'000;
// The writer is told when this part of the ring has been read, so that it never waits for the rest.
constexpr uint64_t kReturnedPart = 4;
// A peer's ring has at most so many bytes.
constexpr uint64_t kMostRingBytes = uint64_t{1} << 30;

// A value on its way. Its value is touched by the thread of the client only.
struct Pending {
  engine::FrameHeader request;
  engine::IncomingValue value;
  MemoryClient::Done done;
};

struct Connection {
  enum class State { kNone, kGreeting, kOpen, kClosed };

  size_t rank = 0;
  MemorySocket socket;  // changed under the lock, by Connect and by the thread
  int64_t deadline_ns = 0;
  // Under the lock.
  State state = State::kNone;
  std::deque<std::string> unsent;
  std::map<uint64_t, std::shared_ptr<Pending>> pending;
  // Of the thread.
  RingMemory memory;
  std::optional<ReadRing> space;
};

class ClientImpl : public MemoryClient {
 public:
  ClientImpl(const Hello& own, Counters counters, Events events, Descriptor wake)
      : own_(own), counters_(counters), events_(std::move(events)), wake_(std::move(wake)) {
    for (size_t rank = 0; rank < static_cast<size_t>(own.ranks); ++rank) {
      connections_.push_back(std::make_unique<Connection>());
      connections_.back()->rank = rank;
    }
    thread_ = std::thread([this] { Serve(); });
  }

  ~ClientImpl() override {
    CloseAll();
    ended_.store(true);
    Wake();
    thread_.join();
  }

  void Connect(size_t rank, const std::string& name) override {
    {
      const std::lock_guard lock(mutex_);
      Connection& connection = *connections_[rank];
      if (connection.state != Connection::State::kNone) return;
      connection.state = Connection::State::kClosed;
      if (closed_ || !MemorySocket::IsName(name)) return;
      Result<MemorySocket> socket = MemorySocket::Connect(name);
      if (!socket.ok() || !socket->IsOfOwnUser() ||
          socket->Send(EncodeHello(own_)) != MemorySocket::Outcome::kDone) {
        HEDDLE_LOG(kDebug, "no shared memory with a peer", {"rank", rank}, {"error", socket.status()});
        return;
      }
      connection.socket = *std::move(socket);
      connection.deadline_ns = SystemClock().MonotonicNs() + kWelcomeNs;
      connection.state = Connection::State::kGreeting;
    }
    Wake();
  }

  bool IsSettled(size_t rank) const override {
    const std::lock_guard lock(mutex_);
    return connections_[rank]->state != Connection::State::kGreeting;
  }

  bool IsConnected(size_t rank) const override {
    const std::lock_guard lock(mutex_);
    return connections_[rank]->state == Connection::State::kOpen;
  }

  bool Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done* done) override {
    Packet packet;
    packet.kind = PacketKind::kPull;
    packet.header.kind = engine::FrameKind::kPull;
    packet.header.run = run;
    packet.header.register_id = register_id;
    packet.header.slot = slot;
    const std::lock_guard lock(mutex_);
    Connection& connection = *connections_[rank];
    if (connection.state != Connection::State::kOpen) return false;
    packet.header.request = next_request_++;
    // Of a connection that is closed at the other end the thread will hear.
    SendOrKeep(connection, packet.Encode());
    auto pending = std::make_shared<Pending>();
    pending->request = packet.header;
    pending->done = std::move(*done);
    connection.pending.emplace(packet.header.request, std::move(pending));
    return true;
  }

  void CloseAll() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    for (const auto& connection : connections_) Close(*connection, "the executor ends");
    Wake();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
  }

  // Under the lock.
  void SendOrKeep(Connection& connection, std::string packet) {
    if (connection.unsent.empty() && connection.socket.Send(packet) != MemorySocket::Outcome::kLater) return;
    connection.unsent.push_back(std::move(packet));
    Wake();
  }

  // The thread lets go of the socket and the ring.
  void Close(Connection& connection, std::string_view why) {
    std::map<uint64_t, std::shared_ptr<Pending>> pending;
    {
      const std::lock_guard lock(mutex_);
      if (connection.state != Connection::State::kGreeting && connection.state != Connection::State::kOpen)
        return;
      connection.state = Connection::State::kClosed;
      pending.swap(connection.pending);
      connection.unsent.clear();
    }
    HEDDLE_LOG(kDebug, "shared memory with a peer ends", {"rank", connection.rank}, {"why", why});
    for (const auto& [number, pull] : pending)
      events_.elsewhere(connection.rank, pull->request.run, pull->request.register_id, pull->request.slot,
                        std::move(pull->done));
    events_.settled();
  }

  // --- the thread ---

  void Serve() {
    std::vector<pollfd> polled;
    std::vector<Connection*> polled_connections;
    while (!ended_.load()) {
      Wait(&polled, &polled_connections);
      if (polled[0].revents != 0) {
        uint64_t count = 0;
        (void)!read(wake_.get(), &count, sizeof(count));
      }
      for (size_t i = 0; i < polled_connections.size(); ++i) {
        Connection& connection = *polled_connections[i];
        const int events = polled[i + 1].revents;
        if ((events & POLLOUT) != 0) SendKept(connection);
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
          const Status status = Receive(connection);
          if (!status.ok()) Close(connection, status.message());
        }
      }
    }
  }

  void Wait(std::vector<pollfd>* polled, std::vector<Connection*>* polled_connections) {
    polled->assign({{wake_.get(), POLLIN, 0}});
    polled_connections->clear();
    std::vector<Connection*> late;
    int64_t wait_ns = -1;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& connection : connections_) {
        switch (connection->state) {
          case Connection::State::kNone: continue;
          case Connection::State::kClosed:
            connection->socket.Close();
            connection->memory = RingMemory();
            continue;
          case Connection::State::kGreeting: {
            const int64_t left_ns = connection->deadline_ns - SystemClock().MonotonicNs();
            if (left_ns <= 0) {
              late.push_back(connection.get());
              continue;
            }
            wait_ns = wait_ns < 0 ? left_ns : std::min(wait_ns, left_ns);
            break;
          }
          case Connection::State::kOpen: break;
        }
        const int events = POLLIN | (connection->unsent.empty() ? 0 : POLLOUT);
        polled->push_back({connection->socket.fd(), static_cast<short>(events), 0});
        polled_connections->push_back(connection.get());
      }
    }
    for (Connection* connection : late) Close(*connection, "the peer does not answer");
    if (late.empty())
      (void)poll(polled->data(), polled->size(),
                 wait_ns < 0 ? -1 : static_cast<int>(wait_ns / 1'000'000 + 1));
  }

  void SendKept(Connection& connection) {
    const std::lock_guard lock(mutex_);
    std::deque<std::string>& unsent = connection.unsent;
    while (!unsent.empty() && connection.socket.Send(unsent.front()) != MemorySocket::Outcome::kLater)
      unsent.pop_front();
  }

  // All packets that are there.
  Status Receive(Connection& connection) {
    for (;;) {
      std::string bytes;
      Descriptor descriptor;
      switch (connection.socket.Receive(&bytes, &descriptor)) {
        case MemorySocket::Outcome::kLater: return OkStatus();
        case MemorySocket::Outcome::kClosed: return Unavailable("the peer has closed");
        case MemorySocket::Outcome::kDone: break;
      }
      HEDDLE_ASSIGN_OR_RETURN(const Packet packet, Packet::Decode(bytes));
      switch (packet.kind) {
        case PacketKind::kWelcome: Open(connection); break;
        case PacketKind::kRing: {
          if (connection.space || packet.handle.bytes > kMostRingBytes) return DataLoss("a second ring");
          HEDDLE_ASSIGN_OR_RETURN(connection.memory,
                                  RingMemory::Map(std::move(descriptor), packet.handle.bytes));
          connection.space.emplace(packet.handle.arena, packet.handle.bytes);
          break;
        }
        case PacketKind::kFrame: HEDDLE_RETURN_IF_ERROR(TakeFrame(connection, packet)); break;
        case PacketKind::kPull:
        case PacketKind::kReturn: return DataLoss("a packet in the wrong direction");
      }
    }
  }

  void Open(Connection& connection) {
    {
      const std::lock_guard lock(mutex_);
      if (connection.state != Connection::State::kGreeting) return;
      connection.state = Connection::State::kOpen;
    }
    events_.settled();
  }

  Status TakeFrame(Connection& connection, const Packet& packet) {
    const engine::FrameHeader& header = packet.header;
    if (!connection.space || packet.handle.bytes != header.size || !connection.space->Accept(packet.handle))
      return DataLoss("a frame that is not in the ring");
    counters_.bytes_received->fetch_add(header.size, std::memory_order_relaxed);
    counters_.bytes_shared->fetch_add(header.size, std::memory_order_relaxed);
    std::shared_ptr<Pending> pull;
    {
      const std::lock_guard lock(mutex_);
      const auto found = connection.pending.find(header.request);
      if (found != connection.pending.end()) pull = found->second;
    }
    Status status;
    if (pull != nullptr) status = TakePayload(header, connection.memory.at(packet.handle.offset), *pull);
    if (connection.space->unreturned() * kReturnedPart >= connection.memory.bytes()) Return(connection);
    if (pull == nullptr || (status.ok() && !header.last)) return OkStatus();
    {
      const std::lock_guard lock(mutex_);
      if (connection.pending.erase(header.request) == 0) return OkStatus();  // went elsewhere meanwhile
    }
    pull->done(status.ok() ? pull->value.Finish() : Result<Value>(status));
    return OkStatus();
  }

  static Status TakePayload(const engine::FrameHeader& header, const char* payload, Pending& pull) {
    if (header.kind != engine::FrameKind::kData) {
      // The peer could change the bytes while they are looked at: look at a copy.
      const std::string copy(payload, header.size);
      return pull.value.Accept(header, copy);
    }
    HEDDLE_ASSIGN_OR_RETURN(uint8_t* const place, pull.value.Place(header));
    std::memcpy(place, payload, header.size);
    return OkStatus();
  }

  void Return(Connection& connection) {
    Packet packet;
    packet.kind = PacketKind::kReturn;
    packet.handle = connection.space->Return();
    const std::lock_guard lock(mutex_);
    SendOrKeep(connection, packet.Encode());
  }

  const Hello own_;
  const Counters counters_;
  const Events events_;
  const Descriptor wake_;
  mutable std::mutex mutex_;                              // never held while events or `done` are called
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank
  uint64_t next_request_ = 1;
  bool closed_ = false;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MemoryClient>> MemoryClient::Start(const Hello& own, Counters counters,
                                                          Events events) {
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return Unavailable("no shared memory: too many open files");
  return std::unique_ptr<MemoryClient>(new ClientImpl(own, counters, std::move(events), std::move(wake)));
}

}  // namespace heddle::cluster
