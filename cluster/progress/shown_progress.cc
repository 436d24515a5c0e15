// SPDX-License-Identifier: Apache-2.0
#include "cluster/progress/shown_progress.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "core/memory/memory_budget.h"

namespace heddle::cluster {
namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

}  // namespace

ShownProgress::ShownProgress(bool is_quiet)
    : is_quiet_(is_quiet), line_(SystemClock(), StandardError(), [this] { return Look(); }) {}

void ShownProgress::Begin(engine::RunSurroundings* surroundings) {
  if (is_quiet_) return;
  surroundings->progress = &board_;
  surroundings->tell_progress = [this](const std::string& json) { Tell(json); };
  Begin();
}

void ShownProgress::Tell(const std::string& json) {
  std::optional<Progress> progress = ParseProgress(json);
  const std::lock_guard lock(mutex_);
  if (progress) told_ = std::move(progress);
}

void ShownProgress::Begin() {
  if (is_quiet_) return;
  try {
    ticks_ = std::make_unique<RepeatedWork>(kPause, kPause, [this] { line_.Tick(); });
  } catch (const std::system_error&) {
    // A machine without a thread to spare shows no progress.
  }
}

void ShownProgress::End() {
  ticks_ = nullptr;
  line_.Hide();
}

std::optional<Progress> ShownProgress::Look() {
  {
    const std::lock_guard lock(mutex_);
    if (told_) return told_;
  }
  const MemoryBudget& memory = MemoryBudget::Process();
  return Progress{.state = board_.Read(), .used_bytes = memory.used(), .limit_bytes = memory.limit()};
}

}  // namespace heddle::cluster
