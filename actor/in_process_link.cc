// SPDX-License-Identifier: Apache-2.0
#include "actor/in_process_link.h"

#include <thread>
#include <utility>

namespace heddle::actor {

// One rank: its link (as source) and the way to its handler (as destination).
class InProcessNetwork::Port : public Link {
 public:
  Port(const InProcessNetwork& network, uint32_t rank) : network_(network), rank_(rank) {}

  void Send(uint32_t rank, std::span<const Message> messages) override {
    for (const Message& message : messages)
      network_.ports_[rank]->DeliverOrKeep([message](LinkHandler& handler) { handler.OnMessage(message); });
  }
  void SendError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    network_.ports_[rank]->DeliverOrKeep([source = rank_, run, node, status](LinkHandler& handler) {
      handler.OnError(source, run, node, status);
    });
  }
  void Pull(uint32_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
            std::function<void(Result<Value>)> done) override {
    Result<Value> body = Cancelled("rank {} has gone", rank);
    Port& port = *network_.ports_[rank];
    port.callers_.fetch_add(1);
    if (LinkHandler* handler = port.handler_.load()) body = handler->Published(run, register_id, slot);
    port.callers_.fetch_sub(1);
    done(std::move(body));
  }

  void Attach(LinkHandler& handler) {
    const std::lock_guard<std::mutex> lock(waiting_mutex_);
    for (const auto& call : waiting_) call(handler);
    waiting_.clear();
    handler_.store(&handler);
  }
  void Detach() {
    {
      const std::lock_guard<std::mutex> lock(waiting_mutex_);
      is_gone_ = true;
      handler_.store(nullptr);
    }
    while (callers_.load() > 0) std::this_thread::yield();
  }

 private:
  void DeliverOrKeep(const std::function<void(LinkHandler&)>& call) {
    callers_.fetch_add(1);
    LinkHandler* handler = handler_.load();
    if (handler == nullptr) {
      const std::lock_guard<std::mutex> lock(waiting_mutex_);
      handler = handler_.load();
      if (handler == nullptr && !is_gone_) waiting_.push_back(call);
    }
    if (handler != nullptr) call(*handler);
    callers_.fetch_sub(1);
  }

  const InProcessNetwork& network_;
  const uint32_t rank_;
  std::atomic<LinkHandler*> handler_{nullptr};
  std::atomic<int> callers_{0};
  std::mutex waiting_mutex_;
  std::vector<std::function<void(LinkHandler&)>> waiting_;
  bool is_gone_ = false;
};

InProcessNetwork::InProcessNetwork(uint32_t ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
}
InProcessNetwork::~InProcessNetwork() = default;
Link& InProcessNetwork::LinkOf(uint32_t rank) { return *ports_[rank]; }
void InProcessNetwork::Attach(uint32_t rank, LinkHandler& handler) { ports_[rank]->Attach(handler); }
void InProcessNetwork::Detach(uint32_t rank) { ports_[rank]->Detach(); }

}  // namespace heddle::actor
