// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/memory_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "cluster/link/memory_socket.h"
#include "cluster/link/ring_memory.h"
#include "cluster/link/ring_space.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/environment/random.h"
#include "core/memory/memory_budget.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

// All rings of an executor together; each has room for so many pieces.
constexpr int64_t kRingsBytes = int64_t{32} << 20;
constexpr int64_t kMostRingBytes = int64_t{4} << 20;
constexpr int64_t kLeastRingBytes = int64_t{1} << 20;
constexpr int64_t kPiecesOfRing = 16;
// A ring takes at most this part of what the process may hold.
constexpr int64_t kPartOfMemory = 16;
// Frames that one peer gets before the next one is served.
constexpr int kFramesInTurn = 4;
// Values that one peer may be fetching at a time; a plan has far fewer copies in flight.
constexpr size_t kMostPulls = 65'536;
// Callers that have not said who they are, and how long they may take.
constexpr size_t kMostStrangers = 64;
constexpr int64_t kHelloNs = 2'000'000'000;

int64_t RingBytes(int ranks) {
  const int64_t share = kRingsBytes / std::max(ranks - 1, 1);
  int64_t bytes = kMostRingBytes;
  while (bytes > share && bytes > kLeastRingBytes) bytes /= 2;
  return bytes;
}

// One peer that pulls.
class Reader {
 public:
  Reader(MemorySocket socket, int64_t deadline_ns, int64_t ring_bytes)
      : socket_(std::move(socket)), deadline_ns_(deadline_ns), ring_bytes_(ring_bytes) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (is_charged_) MemoryBudget::Process().Release(ring_bytes_);
  }

  int fd() const { return socket_.fd(); }
  bool IsStranger() const { return is_stranger_; }
  int64_t deadline_ns() const { return deadline_ns_; }
  // Waits for the socket to take more.
  bool IsBlocked() const { return !unsent_.empty(); }
  // Has a frame that could be sent now.
  bool HasWork() const {
    return !IsBlocked() && !active_.empty() && space_->HasRoomFor(static_cast<uint64_t>(PieceBytes()));
  }

  // Takes in what the peer said; false when it goes.
  bool Receive(const Hello& own, actor::LinkHandler* handler) {
    for (;;) {
      std::string bytes;
      Descriptor unasked;
      const MemorySocket::Outcome outcome = socket_.Receive(&bytes, &unasked);
      if (outcome == MemorySocket::Outcome::kLater) return true;
      if (outcome == MemorySocket::Outcome::kClosed) return false;
      if (is_stranger_) {
        int rank = 0;
        if (handler == nullptr || !CheckHello(own, bytes, &rank)) return false;
        is_stranger_ = false;
        Packet welcome;
        welcome.kind = PacketKind::kWelcome;
        if (!Send(welcome.Encode())) return false;
        continue;
      }
      const Result<Packet> packet = Packet::Decode(bytes);
      if (!packet.ok() || !Accept(*packet, *handler)) return false;
    }
  }

  // Sends what the socket did not take before.
  bool Unblock() {
    const MemorySocket::Outcome outcome = socket_.Send(unsent_);
    if (outcome == MemorySocket::Outcome::kDone) unsent_.clear();
    return outcome != MemorySocket::Outcome::kClosed;
  }

  // The next frame of the values that are pulled, in turn. False when the peer goes.
  bool SendFrame(std::atomic<int64_t>* bytes_sent) {
    engine::OutgoingValue value = std::move(active_.front());
    active_.pop_front();
    const std::optional<engine::OutgoingFrame> frame = value.Next();
    if (!frame) return true;
    Packet packet;
    packet.kind = PacketKind::kFrame;
    packet.header = frame->header;
    const std::optional<RingHandle> room = space_->Take(frame->header.size);
    if (!room) return false;  // a failure with a text beyond any measure
    packet.handle = *room;
    const void* const payload = frame->payload != nullptr ? frame->payload : frame->owned.data();
    std::memcpy(memory_.at(room->offset), payload, frame->header.size);
    bytes_sent->fetch_add(frame->header.size, std::memory_order_relaxed);
    if (!frame->header.last) active_.push_back(std::move(value));
    return Send(packet.Encode());
  }

 private:
  int64_t PieceBytes() const { return ring_bytes_ / kPiecesOfRing; }

  bool Send(const std::string& bytes, int descriptor = -1) {
    const MemorySocket::Outcome outcome = socket_.Send(bytes, descriptor);
    // The ring goes out first, when there is room.
    if (outcome == MemorySocket::Outcome::kLater && descriptor < 0) unsent_ = bytes;
    return outcome == MemorySocket::Outcome::kDone || IsBlocked();
  }

  bool Accept(const Packet& packet, actor::LinkHandler& handler) {
    if (packet.kind == PacketKind::kReturn) return space_.has_value() && space_->Return(packet.handle);
    const engine::FrameHeader& pull = packet.header;
    if (packet.kind != PacketKind::kPull || pull.kind != engine::FrameKind::kPull) return false;
    if (active_.size() >= kMostPulls || (!space_ && !MakeRing())) return false;
    active_.emplace_back(pull.request, handler.Published(pull.run, pull.register_id, pull.slot),
                         PieceBytes());
    return true;
  }

  // The first pull brings it about: most pairs of executors never need one.
  bool MakeRing() {
    MemoryBudget& budget = MemoryBudget::Process();
    if (ring_bytes_ > budget.limit() / kPartOfMemory || !budget.TryCharge(ring_bytes_)) return false;
    is_charged_ = true;
    Result<RingMemory> memory = RingMemory::Make(static_cast<uint64_t>(ring_bytes_));
    if (!memory.ok()) return false;
    memory_ = *std::move(memory);
    const uint64_t arena = SystemRandom().Next();
    space_.emplace(arena, memory_.bytes());
    Packet packet;
    packet.kind = PacketKind::kRing;
    packet.handle = {arena, 0, memory_.bytes(), 0};
    return Send(packet.Encode(), memory_.descriptor());
  }

  MemorySocket socket_;
  const int64_t deadline_ns_;
  const int64_t ring_bytes_;
  bool is_stranger_ = true;
  bool is_charged_ = false;
  RingMemory memory_;
  std::optional<WrittenRing> space_;
  std::deque<engine::OutgoingValue> active_;
  std::string unsent_;  // one packet
};

class ServerImpl : public MemoryServer {
 public:
  ServerImpl(const Hello& own, std::atomic<int64_t>* bytes_sent, std::string name, MemorySocket listener,
             Descriptor wake)
      : own_(own),
        bytes_sent_(bytes_sent),
        name_(std::move(name)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        thread_([this] { Serve(); }) {}

  ~ServerImpl() override {
    ended_.store(true);
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    thread_.join();
  }

  const std::string& name() const override { return name_; }
  void SetHandler(actor::LinkHandler* handler) override { handler_.store(handler); }

 private:
  using Readers = std::vector<std::unique_ptr<Reader>>;

  void Serve() {
    Readers readers;
    std::vector<pollfd> polled;
    while (!ended_.load()) {
      const bool has_work =
          std::ranges::any_of(readers, [](const auto& reader) { return reader->HasWork(); });
      Wait(readers, has_work, &polled);
      const size_t served = readers.size();
      for (size_t i = 0; i < served; ++i)
        if (!Serve(*readers[i], polled[i + 2].revents)) readers[i].reset();
      std::erase(readers, nullptr);
      DropSilentStrangers(&readers);
      if (polled[1].revents != 0) AcceptAll(&readers);
    }
  }

  void Wait(const Readers& readers, bool has_work, std::vector<pollfd>* polled) {
    polled->assign({{wake_.get(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}});
    int64_t deadline_ns = INT64_MAX;
    for (const auto& reader : readers) {
      const int events = POLLIN | (reader->IsBlocked() ? POLLOUT : 0);
      polled->push_back({reader->fd(), static_cast<short>(events), 0});
      if (reader->IsStranger()) deadline_ns = std::min(deadline_ns, reader->deadline_ns());
    }
    int timeout_ms = has_work ? 0 : -1;
    if (!has_work && deadline_ns != INT64_MAX)
      timeout_ms =
          static_cast<int>(std::max<int64_t>(0, (deadline_ns - SystemClock().MonotonicNs()) / 1'000'000 + 1));
    (void)poll(polled->data(), polled->size(), timeout_ms);
  }

  bool Serve(Reader& reader, int events) {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !reader.Receive(own_, handler_.load())) return false;
    if ((events & POLLOUT) != 0 && reader.IsBlocked() && !reader.Unblock()) return false;
    for (int i = 0; i < kFramesInTurn && reader.HasWork(); ++i)
      if (!reader.SendFrame(bytes_sent_)) return false;
    return true;
  }

  void DropSilentStrangers(Readers* readers) {
    std::erase_if(*readers, [](const auto& reader) {
      return reader->IsStranger() && reader->deadline_ns() <= SystemClock().MonotonicNs();
    });
  }

  void AcceptAll(Readers* readers) {
    while (std::optional<MemorySocket> caller = listener_.Accept()) {
      const auto strangers = static_cast<size_t>(
          std::ranges::count_if(*readers, [](const auto& reader) { return reader->IsStranger(); }));
      if (!caller->IsOfOwnUser() || strangers >= kMostStrangers) continue;
      readers->push_back(std::make_unique<Reader>(*std::move(caller), SystemClock().MonotonicNs() + kHelloNs,
                                                  RingBytes(own_.ranks)));
    }
  }

  const Hello own_;
  std::atomic<int64_t>* const bytes_sent_;
  const std::string name_;
  const MemorySocket listener_;
  const Descriptor wake_;
  std::atomic<actor::LinkHandler*> handler_{nullptr};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MemoryServer>> MemoryServer::Start(const Hello& own,
                                                          std::atomic<int64_t>* bytes_sent) {
  HEDDLE_RETURN_IF_ERROR(RingMemory::Make(1).status());
  std::string name = MemorySocket::MakeName();
  HEDDLE_ASSIGN_OR_RETURN(MemorySocket listener, MemorySocket::Listen(name));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return Unavailable("no shared memory: too many open files");
  return std::unique_ptr<MemoryServer>(
      new ServerImpl(own, bytes_sent, std::move(name), std::move(listener), std::move(wake)));
}

}  // namespace heddle::cluster
