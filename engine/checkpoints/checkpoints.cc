// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoints/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "core/environment/log.h"
#include "core/memory/memory_budget.h"
#include "engine/checkpoints/checkpoint_file.h"
#include "engine/variables/control_state.h"
#include "engine/variables/shared_changes.h"

namespace heddle::engine {
namespace {

constexpr double kMostShare = 0.02;
// A state may hold this part of the memory that is free while the program goes on.
constexpr int64_t kPartOfFree = 4;

// What is written of a state.
struct Contents {
  int64_t bytes = 0;  // In memory.
  bool has_panels = false;
};

Contents ContentsOf(const ControlState& state) {
  Contents contents;
  for (const VariableTable& frame : state.frames)
    for (const auto& [name, variable] : frame.variables())
      ForEachValue(variable, [&](const Variable& leaf) {
        if (leaf.source != nullptr || leaf.value.IsScalar()) return;
        if (leaf.value.IsPanels())
          contents.has_panels = true;
        else
          contents.bytes += leaf.value.bytes();
      });
  return contents;
}

}  // namespace

int64_t CheckpointIntervalOf(int64_t cost_ns, int64_t mean_time_to_loss_ns) {
  const double cost = static_cast<double>(std::max<int64_t>(cost_ns, 0));
  const double young = std::sqrt(2 * cost * static_cast<double>(mean_time_to_loss_ns));
  return std::max(Checkpoints::kLeastNs, static_cast<int64_t>(std::max(young, cost / kMostShare)));
}

Checkpoints::Checkpoints(const CheckpointOptions& options, int rank, CheckpointStore& store, Clock& clock,
                         std::function<int64_t()> printed,
                         std::function<void(const WrittenCheckpoint&)> written)
    : options_(options),
      rank_(rank),
      store_(store),
      clock_(clock),
      printed_(std::move(printed)),
      written_(std::move(written)),
      begun_ns_(clock.MonotonicNs()) {}

Checkpoints::~Checkpoints() {
  is_over_ = true;
  store_.GiveUp();
  WaitForWrite();
}

void Checkpoints::Drop(const std::vector<std::string>& checkpoints) {
  const std::lock_guard lock(mutex_);
  dropped_.insert(dropped_.end(), checkpoints.begin(), checkpoints.end());
}

Result<bool> Checkpoints::Wants(const Moment& moment, const Share& share) {
  if (moment.ends_round && moment.is_first_round) moments_.BeginLoop(moment.block, clock_.MonotonicNs());
  if (!moments_.Meet(moment)) return false;
  HEDDLE_ASSIGN_OR_RETURN(const std::string answer, share([&] { return Answer(moment.block); }));
  uint64_t rounds = 0;
  const char* const end = answer.data() + answer.size();
  if (answer.size() < 2 || std::from_chars(answer.data() + 1, end, rounds).ptr != end || rounds == 0)
    return Internal("what rank 0 says of a checkpoint arrived malformed");
  moments_.SetNext(moment.block, rounds, clock_.MonotonicNs());
  return answer[0] == '+';
}

std::string Checkpoints::Answer(int32_t block) {
  const int64_t now_ns = clock_.MonotonicNs();
  return fmt::format("{}{}", IsDue(now_ns) ? '+' : '-', moments_.NextOf(block, now_ns));
}

bool Checkpoints::IsDue(int64_t now_ns) const {
  if (asked_) return true;
  const int64_t interval_ns = options_.interval_ns > 0
                                  ? options_.interval_ns
                                  : CheckpointIntervalOf(cost_ns_, options_.mean_time_to_loss_ns);
  return now_ns - begun_ns_ >= interval_ns;
}

void Checkpoints::Write(const ControlState& state, WrittenCheckpoint* about) {
  const int64_t begin_ns = clock_.MonotonicNs();
  const Result<int64_t> bytes =
      WriteCheckpoint(state, rank_, fmt::format("{}-{}", options_.folder, about->number), store_,
                      CheckpointPieceBytes(MemoryBudget::Process().limit()), &is_over_);
  about->took_ns = clock_.MonotonicNs() - begin_ns;
  about->status = bytes.status();
  if (bytes.ok()) about->bytes = *bytes;
  if (!bytes.ok() && !is_over_)
    HEDDLE_LOG(kWarning, "no checkpoint", {"number", about->number}, {"why", about->status});
  std::vector<std::string> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(dropped_);
  }
  for (const std::string& checkpoint : dropped)
    if (const Status removed = store_.RemoveAll(checkpoint); !removed.ok() && !is_over_)
      HEDDLE_LOG(kWarning, "checkpoint not removed", {"checkpoint", checkpoint}, {"why", removed});
}

// Rows of a piece, and those that they are put together from.
int64_t Checkpoints::working_bytes() const {
  return 2 * CheckpointPieceBytes(MemoryBudget::Process().limit());
}

Status Checkpoints::Take(ControlState state) {
  begun_ns_ = clock_.MonotonicNs();
  asked_ = false;
  WaitForWrite();
  WrittenCheckpoint written{.number = ++number_, .printed = printed_()};
  const MemoryBudget& memory = MemoryBudget::Process();
  const Contents contents = ContentsOf(state);
  // Panels that are read take room for which the next plan would not know that it is taken.
  const bool goes_on =
      !contents.has_panels && contents.bytes <= (memory.limit() - memory.used()) / kPartOfFree;
  if (!goes_on) {
    Write(state, &written);
    written.stood_ns = clock_.MonotonicNs() - begun_ns_;
    cost_ns_ = written.stood_ns;
    written_(written);
    return OkStatus();
  }
  written.stood_ns = clock_.MonotonicNs() - begun_ns_;
  writing_ = std::thread([this, written, taken = std::make_unique<ControlState>(std::move(state))]() mutable {
    Write(*taken, &written);
    taken.reset();
    // A thread beside those of the program takes a share of the machine.
    cost_ns_ = std::max(written.stood_ns, written.took_ns / 2);
    written_(written);
  });
  return OkStatus();
}

void Checkpoints::WaitForWrite() {
  if (writing_.joinable()) writing_.join();
}

}  // namespace heddle::engine
