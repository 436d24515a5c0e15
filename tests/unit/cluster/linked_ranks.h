// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/link/grpc_link.h"
#include "core/programs/plan.h"

namespace heddle::cluster {

// Stands in for a runtime: keeps what arrives, publishes what the test says.
class FakeRuntime : public actor::LinkHandler {
 public:
  void OnMessage(const actor::Message& message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    changed_.notify_all();
  }
  void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    const std::lock_guard lock(mutex_);
    error_ = fmt::format("rank {} run {} node {}: {}", rank, run, node, status.ToString());
    changed_.notify_all();
  }
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) override {
    const std::lock_guard lock(mutex_);
    auto found = published_.find({run, register_id, slot});
    if (found == published_.end()) return Cancelled("not published");
    return found->second;
  }
  void Publish(uint32_t run, RegisterId register_id, uint8_t slot, Value value) {
    const std::lock_guard lock(mutex_);
    published_[{run, register_id, slot}] = std::move(value);
  }
  std::vector<actor::Message> WaitForMessages(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_.size() >= count; });
    return messages_;
  }
  std::string WaitForError() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !error_.empty(); });
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<actor::Message> messages_;
  std::string error_;
  std::map<std::tuple<uint32_t, RegisterId, uint8_t>, Value> published_;
};

inline GrpcLinkOptions OptionsOf(int rank, int ranks) {
  GrpcLinkOptions options;
  // Of this process: peers on one machine find each other by it.
  options.job = fmt::format("test {}", getpid());
  options.rank = rank;
  options.ranks = ranks;
  options.token = "0123456789abcdef";
  options.repair_ms = 400;
  return options;
}

// Links of one job in this process, joined; `share_memory` says for each rank whether it may, all when it is
// left out.
class Links {
 public:
  explicit Links(int ranks, const std::vector<std::string>& tokens = {},
                 const std::string& listen = "127.0.0.1:0", int64_t repair_ms = 400,
                 const std::vector<bool>& share_memory = {})
      : failures_(static_cast<size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      GrpcLinkOptions options = OptionsOf(rank, ranks);
      if (!tokens.empty()) options.token = tokens[static_cast<size_t>(rank)];
      options.listen = listen;
      options.repair_ms = repair_ms;
      options.shares_memory = share_memory.empty() || share_memory[static_cast<size_t>(rank)];
      runtimes_.push_back(std::make_unique<FakeRuntime>());
      links_.push_back(*GrpcLink::Listen(options));
      links_.back()->Serve(runtimes_.back().get(), [this, rank](const Status& why) {
        failures_[static_cast<size_t>(rank)].set_value(why);
      });
      peers_.push_back({links_.back()->endpoint(), links_.back()->certificate(),
                        fmt::format("worker {} (pid {})", rank, 1000 + rank)});
    }
  }
  ~Links() {  // all at once, as executors do: each waits for the others to close
    std::vector<std::future<void>> closing;
    for (auto& link : links_) closing.push_back(std::async(std::launch::async, [&link] { link.reset(); }));
  }
  std::vector<Status> Connect() {
    std::vector<std::future<Status>> results;
    for (auto& link : links_)
      results.push_back(std::async(std::launch::async, [&link, this] { return link->Connect(peers_); }));
    std::vector<Status> statuses;
    for (auto& result : results) statuses.push_back(result.get());
    return statuses;
  }
  LinkPeer& peer(size_t rank) { return peers_[rank]; }
  GrpcLink& operator[](size_t rank) { return *links_[rank]; }
  FakeRuntime& runtime(size_t rank) { return *runtimes_[rank]; }
  void Drop(size_t rank) { links_[rank].reset(); }
  Status WaitForFailure(size_t rank) { return failures_[rank].get_future().get(); }
  Result<Value> Pull(size_t from, uint32_t to, uint32_t run, RegisterId register_id, uint8_t slot) {
    std::promise<Result<Value>> promise;
    links_[from]->Pull(to, run, register_id, slot,
                       [&](Result<Value> value) { promise.set_value(std::move(value)); });
    return promise.get_future().get();
  }

 private:
  std::vector<std::promise<Status>> failures_;
  std::vector<std::unique_ptr<FakeRuntime>> runtimes_;
  std::vector<LinkPeer> peers_;
  std::vector<std::unique_ptr<GrpcLink>> links_;
};

inline Matrix Numbered(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) matrix.mutable_data()[i] = static_cast<double>(i);
  return matrix;
}

}  // namespace heddle::cluster
