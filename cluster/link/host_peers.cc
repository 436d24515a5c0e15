// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_peers.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cluster/link/host_socket.h"
#include "core/environment/clock.h"
#include "ops/io/checksums/sha256.h"

namespace heddle::cluster {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kPauseMs = 10;           // Before a system that refused a caller is asked again.
constexpr size_t kMostCallers = 1024;  // At a time; then the one that has been there longest goes.

int64_t PatienceEndsNs() { return SystemClock().MonotonicNs() + kHostSocketPatienceMs * kNsPerMs; }

template <typename Calls>
std::vector<pollfd> PollsOf(const Calls& calls) {
  std::vector<pollfd> polled;
  for (const auto& call : calls) polled.push_back({call.socket.get(), POLLIN, 0});
  return polled;
}

// Until the first of them is over; -1, for ever, of none.
template <typename Calls>
int WaitMs(const Calls& calls) {
  int64_t until_ns = INT64_MAX;
  for (const auto& call : calls) until_ns = std::min(until_ns, call.until_ns);
  if (until_ns == INT64_MAX) return -1;
  const int64_t left_ns = std::max<int64_t>(until_ns - SystemClock().MonotonicNs(), 0);
  return static_cast<int>((left_ns + kNsPerMs - 1) / kNsPerMs);
}

std::string_view Bytes(const ops::Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string Hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

HostPeers::HostPeers(const Hello& own, std::unique_ptr<SharedInbox> inbox)
    : key_(Bytes(ops::Sha256({own.token, "\n", own.job, "\n", std::to_string(own.attempt)}))),
      rank_(static_cast<size_t>(own.rank)),
      own_(std::move(inbox)),
      peers_(static_cast<size_t>(own.ranks)) {}

std::string HostPeers::SecretOf(std::string_view what, size_t from, size_t to) const {
  return std::string(Bytes(ops::HmacSha256(key_, {what, fmt::format(" {} {}", from, to)})));
}

std::string HostPeers::NameOf(size_t rank) const {
  return "heddle-" + Hexadecimal(SecretOf("name", rank, rank));
}

Result<std::unique_ptr<HostPeers>> HostPeers::Listen(const Hello& own) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> inbox,
                          SharedInbox::Create(static_cast<size_t>(own.ranks)));
  std::unique_ptr<HostPeers> peers(new HostPeers(own, std::move(inbox)));
  peers->listening_ = ListenOnHost(peers->NameOf(peers->rank_));
  if (peers->listening_.ok()) peers->stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!peers->stop_.ok())
    return Unavailable("peers of this machine cannot be answered: {}", std::strerror(errno));
  peers->thread_ = std::thread([owner = peers.get()] { owner->Answer(); });
  return peers;
}

HostPeers::~HostPeers() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void HostPeers::Settle() {
  const std::lock_guard lock(mutex_);
  is_settled_ = true;
}

bool HostPeers::ReachesAny() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.is_reached.load(); });
}

// --- the exchange: each end gives its inbox; the larger rank then says that it has what it needs ---

Status HostPeers::Take(size_t rank, const Descriptor& inbox) {
  Peer& peer = peers_[rank];
  HEDDLE_RETURN_IF_ERROR(own_->ReserveMessages(rank));
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> opened,
                          SharedInbox::Open(inbox, peers_.size(), rank_));
  const std::lock_guard lock(mutex_);
  if (is_settled_ || peer.inbox != nullptr) return Unavailable("the exchange is over");
  peer.inbox = std::move(opened);
  peer.shown.store(peer.inbox.get(), std::memory_order_release);
  return OkStatus();
}

void HostPeers::Reach(size_t rank) {
  const std::lock_guard lock(mutex_);
  if (!is_settled_) peers_[rank].is_reached.store(true, std::memory_order_release);
}

// The thread. Nobody is waited for alone: a caller that says nothing holds up no other one.
void HostPeers::Answer() {
  std::vector<Call> calls;
  bool is_refused = false;  // The system lets nobody in at present.
  while (true) {
    std::vector<pollfd> polled = PollsOf(calls);
    polled.push_back({is_refused ? -1 : listening_.get(), POLLIN, 0});
    polled.push_back({stop_.get(), POLLIN, 0});
    const int wait_ms = WaitMs(calls);
    if (poll(polled.data(), polled.size(), is_refused ? kPauseMs : wait_ms) < 0) continue;  // a signal
    if (polled[calls.size() + 1].revents != 0) return;
    const bool has_caller = polled[calls.size()].revents != 0;
    HearAll(&calls, polled.data());
    is_refused = has_caller && !LetIn(&calls);
  }
}

// False: the system does not allow it at present.
bool HostPeers::LetIn(std::vector<Call>* calls) const {
  Descriptor caller = AcceptOnHost(listening_);
  // Whoever has gone again, or comes while all descriptors are in use, is not the last caller.
  if (!caller.ok()) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  if (!IsOfThisUser(caller)) return true;
  if (calls->size() == kMostCallers) calls->erase(calls->begin());
  calls->push_back(
      {.socket = std::move(caller), .waits_for = Call::WaitsFor::kQuestion, .until_ns = PatienceEndsNs()});
  return true;
}

void HostPeers::FindPeers() {
  std::vector<Call> calls;
  for (size_t rank = 0; rank < rank_; ++rank) Ask(rank, &calls);
  while (!calls.empty()) {
    std::vector<pollfd> polled = PollsOf(calls);
    if (poll(polled.data(), polled.size(), WaitMs(calls)) < 0) continue;  // a signal
    HearAll(&calls, polled.data());
  }
}

void HostPeers::Ask(size_t rank, std::vector<Call>* calls) const {
  Descriptor peer = ConnectOnHost(NameOf(rank));
  if (!peer.ok() || !IsOfThisUser(peer)) return;
  const auto own = static_cast<uint32_t>(rank_);
  std::string question = SecretOf("asks", rank_, rank);
  question.append(reinterpret_cast<const char*>(&own), sizeof(own));
  if (!SendPacket(peer, question, own_->descriptor())) return;
  calls->push_back({.socket = std::move(peer),
                    .waits_for = Call::WaitsFor::kAnswer,
                    .rank = rank,
                    .until_ns = PatienceEndsNs()});
}

// What was said; calls that are over are dropped. `polled` has an entry for each.
void HostPeers::HearAll(std::vector<Call>* calls, const pollfd* polled) {
  const int64_t now_ns = SystemClock().MonotonicNs();
  std::vector<Call> open;
  for (size_t i = 0; i < calls->size(); ++i) {
    Call& call = (*calls)[i];
    const bool has_said_something = polled[i].revents != 0;
    if (has_said_something ? Hear(&call) : now_ns < call.until_ns) open.push_back(std::move(call));
  }
  *calls = std::move(open);
}

// The next word of a peer; false: the call is over.
bool HostPeers::Hear(Call* call) {
  std::string said;
  Descriptor inbox;
  if (!ReceivePacket(call->socket, &said, &inbox)) return false;
  call->until_ns = PatienceEndsNs();
  switch (call->waits_for) {
    case Call::WaitsFor::kQuestion: return HearQuestion(call, said, inbox);
    case Call::WaitsFor::kLastWord:
      // Without these words the peer cannot answer: then nothing is asked of it.
      if (EqualInConstantTime(said, SecretOf("takes", call->rank, rank_))) Reach(call->rank);
      return false;
    case Call::WaitsFor::kAnswer:
      if (!EqualInConstantTime(said, SecretOf("answers", call->rank, rank_)) || !Take(call->rank, inbox).ok())
        return false;
      // Whoever gave its inbox has that of this rank, so it answers. It closes when it has heard the last
      // word.
      Reach(call->rank);
      call->waits_for = Call::WaitsFor::kEnd;
      return SendPacket(call->socket, SecretOf("takes", rank_, call->rank));
    case Call::WaitsFor::kEnd: return false;
  }
  return false;
}

bool HostPeers::HearQuestion(Call* call, std::string_view said, const Descriptor& inbox) {
  uint32_t rank = 0;
  if (said.size() != kSecretBytes + sizeof(rank)) return false;
  std::memcpy(&rank, said.data() + kSecretBytes, sizeof(rank));
  if (rank <= rank_ || rank >= peers_.size() ||
      !EqualInConstantTime(said.substr(0, kSecretBytes), SecretOf("asks", rank, rank_)))
    return false;
  call->rank = rank;
  call->waits_for = Call::WaitsFor::kLastWord;
  return Take(rank, inbox).ok() &&
         SendPacket(call->socket, SecretOf("answers", rank_, rank), own_->descriptor());
}

}  // namespace heddle::cluster
