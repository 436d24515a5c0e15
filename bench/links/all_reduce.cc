// SPDX-License-Identifier: Apache-2.0
#include "bench/links/all_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "bench/base/probe.h"
#include "bench/links/peer_process.h"
#include "cluster/link/grpc_link.h"
#include "cluster/security/token.h"

namespace heddle::bench {
namespace {

constexpr int kRanks[] = {2, 4};
constexpr int64_t kSizes[] = {int64_t{1} << 20, int64_t{4} << 20, int64_t{16} << 20, int64_t{64} << 20};
constexpr int64_t kRoundBytes = int64_t{256} << 20;  // Of sums one after the other.
constexpr RegisterId kTerms = 0;
constexpr RegisterId kSum = 1;

int SumsOf(int64_t bytes) {
  return static_cast<int>(std::clamp(kRoundBytes / bytes, int64_t{4}, int64_t{64}));
}

// One executor. Its vector is cut into a part for each rank.
class Member : private actor::LinkHandler {
 public:
  Member(int rank, int ranks, bool shares_memory, std::string token)
      : rank_(static_cast<uint32_t>(rank)), ranks_(static_cast<uint32_t>(ranks)) {
    Pin(rank);
    cluster::GrpcLinkOptions options;
    options.job = fmt::format("all-reduce {} {}", ranks, shares_memory);
    options.rank = rank;
    options.ranks = ranks;
    options.token = std::move(token);
    options.listen = "127.0.0.1:0";
    options.shares_memory = shares_memory;
    Result<std::unique_ptr<cluster::GrpcLink>> listening = cluster::GrpcLink::Listen(options);
    if (!listening.ok()) Stop(listening.status().ToString());
    link_ = *std::move(listening);
    link_->Serve(this, [](const Status& why) { Stop(why.ToString()); });
  }
  const std::string& endpoint() const { return link_->endpoint(); }

  void Connect(const std::vector<std::string>& endpoints) {
    std::vector<cluster::LinkPeer> peers;
    for (const std::string& each : endpoints) peers.push_back({each, "", ""});
    const Status status = link_->Connect(peers);
    if (!status.ok()) Stop(status.ToString());
  }

  // Waits for the others.
  void Finish() {
    const Status status = link_->Finish();
    if (!status.ok()) Stop(status.ToString());
  }

  void SetSize(int64_t bytes) {
    cells_ = bytes / static_cast<int64_t>(sizeof(double));
    own_ = *Matrix::Dense(cells_, 1);
    for (int64_t i = 0; i < cells_; ++i) own_.mutable_data()[i] = static_cast<double>(rank_ + 1);
    sum_ = *Matrix::Dense(cells_, 1);
  }

  void Reduce(int times) {
    for (int i = 0; i < times; ++i) ReduceOnce();
  }
  // Every cell is the sum of all ranks' cells.
  bool IsRight() const {
    const double expected = static_cast<double>(ranks_) * (ranks_ + 1) / 2;
    return std::all_of(sum_.data(), sum_.data() + cells_, [&](double cell) { return cell == expected; });
  }

 private:
  int64_t BeginOf(uint32_t rank) const { return cells_ * rank / ranks_; }
  int64_t LengthOf(uint32_t rank) const { return BeginOf(rank + 1) - BeginOf(rank); }

  void ReduceOnce() {
    Publish(kTerms, own_);
    TellAllAndWait();
    Matrix part = *Matrix::Dense(LengthOf(rank_), 1);
    std::memcpy(part.mutable_data(), own_.data() + BeginOf(rank_), SizeOf(rank_));
    PullAll(kTerms, [&](uint32_t, const Matrix& terms) {
      double* const into = part.mutable_data();
      const double* const from = terms.data();
      for (int64_t i = 0; i < part.rows(); ++i) into[i] += from[i];
    });
    Publish(kSum, part);
    TellAllAndWait();
    std::memcpy(sum_.mutable_data() + BeginOf(rank_), part.data(), SizeOf(rank_));
    PullAll(kSum, [&](uint32_t rank, const Matrix& piece) {
      std::memcpy(sum_.mutable_data() + BeginOf(rank), piece.data(), SizeOf(rank));
    });
    TellAllAndWait();  // What was published may change.
  }
  size_t SizeOf(uint32_t rank) const { return static_cast<size_t>(LengthOf(rank)) * sizeof(double); }

  void Publish(RegisterId id, Matrix value) {
    const std::lock_guard lock(mutex_);
    published_[id] = std::move(value);
  }

  void TellAllAndWait() {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      actor::Message message;
      message.source = TaskId::Make(rank_, 0, 0);
      message.destination = TaskId::Make(rank, 0, 0);
      message.type = actor::MessageType::kAck;
      link_->Send(rank, {&message, 1});
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::ranges::all_of(told_, [&](const auto& each) { return each.second > steps_; }) &&
             told_.size() == ranks_ - 1;
    });
    ++steps_;
  }

  // Of all other ranks at once; `take` in the order of ranks.
  template <typename Take>
  void PullAll(RegisterId id, const Take& take) {
    std::vector<std::optional<Matrix>> arrived(ranks_);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      link_->Pull(rank, 1, id, static_cast<uint8_t>(rank_), [this, &arrived, rank](Result<Value> value) {
        if (!value.ok()) Stop(value.status().ToString());
        const std::lock_guard lock(mutex_);
        arrived[rank] = value->matrix();
        changed_.notify_all();
      });
    }
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return arrived[rank].has_value(); });
      }
      take(rank, *arrived[rank]);
    }
  }

  void OnMessage(const actor::Message& message) override {
    const std::lock_guard lock(mutex_);
    ++told_[message.source.rank()];
    changed_.notify_all();
  }
  void OnError(uint32_t, uint32_t, NodeId, const Status& status) override { Stop(status.ToString()); }
  // `slot`: who asks.
  Result<Value> Published(uint32_t, RegisterId id, uint8_t slot) override {
    const std::lock_guard lock(mutex_);
    const auto found = published_.find(id);
    if (found == published_.end() || slot >= ranks_) return Cancelled("not published");
    if (id == kSum) return Value(found->second);
    return Value(found->second.Rows(BeginOf(slot), BeginOf(slot + 1)));
  }

  const uint32_t rank_;
  const uint32_t ranks_;
  int64_t cells_ = 0;
  Matrix own_, sum_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RegisterId, Matrix> published_;  // Under mutex_,
  std::map<uint32_t, int64_t> told_;        // as this: messages of each rank.
  int64_t steps_ = 0;
  std::unique_ptr<cluster::GrpcLink> link_;
};

// What the first process says, and the others do.
void Measure(const BenchOptions& options, int ranks, bool shares_memory) {
  const std::string token = cluster::MakeToken();
  std::vector<PeerProcess> peers;
  auto own = std::make_unique<Member>(0, ranks, shares_memory, token);
  std::vector<std::string> endpoints = {own->endpoint()};
  for (int rank = 1; rank < ranks; ++rank) {
    peers.emplace_back("all-reduce-peer");
    endpoints.push_back(
        peers.back().Ask(fmt::format("join {} {} {} {}", rank, ranks, shares_memory ? 1 : 0, token)));
  }
  std::string all;
  for (const std::string& endpoint : endpoints) all += " " + endpoint;
  for (PeerProcess& peer : peers) peer.Tell("connect" + all);
  own->Connect(endpoints);
  for (PeerProcess& peer : peers) peer.Answer();
  for (const int64_t bytes : kSizes) {
    for (PeerProcess& peer : peers) peer.Ask(fmt::format("size {}", bytes));
    own->SetSize(bytes);
    double best_ms = 1e300;
    for (int round = 0; round <= options.rounds; ++round) {  // The first to warm up.
      for (PeerProcess& peer : peers) peer.Tell(fmt::format("reduce {}", SumsOf(bytes)));
      const double ms = Time([&] { own->Reduce(SumsOf(bytes)); }) / SumsOf(bytes);
      bool is_right = own->IsRight();
      for (PeerProcess& peer : peers) is_right &= peer.Answer() == "right";
      if (!is_right) Stop("a sum is wrong");
      if (round > 0) best_ms = std::min(best_ms, ms);
    }
    std::printf(options.json
                    ? "{\"bench\":\"all_reduce\",\"ranks\":%d,\"bytes\":%lld,\"way\":\"%s\",\"ms\":%.3f,"
                      "\"gb_s\":%.3f}\n"
                    : "all-reduce on %d executors, %lld bytes, %s: %.3f ms, %.2f GB/s\n",
                ranks, static_cast<long long>(bytes), shares_memory ? "shared memory" : "gRPC", best_ms,
                static_cast<double>(bytes) / best_ms / 1e6);
    std::fflush(stdout);
  }
  for (PeerProcess& peer : peers) peer.Tell("end");
  own->Finish();
}

}  // namespace

int RunAllReduce(const BenchOptions& options) {
  for (const int ranks : kRanks)
    for (const bool shares_memory : {true, false}) Measure(options, ranks, shares_memory);
  return 0;
}

int RunAllReducePeer(int fd) {
  cluster::LineChannel channel(fd);
  std::unique_ptr<Member> member;
  std::string line;
  while (channel.ReadLine(&line) == cluster::LineChannel::Outcome::kLine && line != "end") {
    std::istringstream words(line);
    std::string word;
    words >> word;
    std::string answer = "ok";
    if (word == "join") {
      int rank = 0, ranks = 0, shares_memory = 0;
      std::string token;
      words >> rank >> ranks >> shares_memory >> token;
      member = std::make_unique<Member>(rank, ranks, shares_memory != 0, token);
      answer = member->endpoint();
    } else if (word == "connect") {
      std::vector<std::string> endpoints;
      for (std::string endpoint; words >> endpoint;) endpoints.push_back(endpoint);
      member->Connect(endpoints);
    } else {
      int64_t number = 0;
      words >> number;
      if (word == "size") {
        member->SetSize(number);
      } else {
        member->Reduce(static_cast<int>(number));
        answer = member->IsRight() ? "right" : "wrong";
      }
    }
    channel.WriteLine(answer);
  }
  if (member != nullptr) member->Finish();
  return 0;
}

}  // namespace heddle::bench
