// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/control_channel_in_process.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace heddle::engine {
namespace {

struct Inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> decisions;
  Status interrupted;
};

class InProcessChannel : public ControlChannel {
 public:
  InProcessChannel(int rank, std::vector<std::shared_ptr<Inbox>> inboxes)
      : rank_(rank), inboxes_(std::move(inboxes)) {}

  void Broadcast(const std::string& decision) override {
    for (size_t rank = 0; rank < inboxes_.size(); ++rank) {
      if (static_cast<int>(rank) == rank_) continue;
      std::lock_guard lock(inboxes_[rank]->mutex);
      inboxes_[rank]->decisions.push_back(decision);
      inboxes_[rank]->changed.notify_all();
    }
  }

  Result<std::string> Receive() override {
    Inbox& inbox = *inboxes_[static_cast<size_t>(rank_)];
    std::unique_lock lock(inbox.mutex);
    inbox.changed.wait(lock, [&] { return !inbox.decisions.empty() || !inbox.interrupted.ok(); });
    if (!inbox.interrupted.ok()) return inbox.interrupted;
    std::string decision = std::move(inbox.decisions.front());
    inbox.decisions.pop_front();
    return decision;
  }

  void Interrupt(const Status& why) override {
    Inbox& inbox = *inboxes_[static_cast<size_t>(rank_)];
    std::lock_guard lock(inbox.mutex);
    if (inbox.interrupted.ok()) inbox.interrupted = why;
    inbox.changed.notify_all();
  }

 private:
  int rank_;
  std::vector<std::shared_ptr<Inbox>> inboxes_;
};

}  // namespace

std::vector<std::unique_ptr<ControlChannel>> InProcessChannels(int ranks) {
  std::vector<std::shared_ptr<Inbox>> inboxes;
  for (int rank = 0; rank < ranks; ++rank) inboxes.push_back(std::make_shared<Inbox>());
  std::vector<std::unique_ptr<ControlChannel>> channels;
  for (int rank = 0; rank < ranks; ++rank)
    channels.push_back(std::make_unique<InProcessChannel>(rank, inboxes));
  return channels;
}

}  // namespace heddle::engine
