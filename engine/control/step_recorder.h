// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/environment/recorder.h"
#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"

namespace heddle::engine {

/// Where the statements of a block begin.
inline const SourcePosition& PositionOf(const Block& block) {
  return block.kind == Block::Kind::kBasic && !block.graph.nodes.empty() ? block.graph.nodes.front().position
                                                                         : block.position;
}

/// Records what a control program does: its calls and loops as events, and by place what takes time between
/// operators and plans. To ask the clock takes about as long as a step of scalar arithmetic, so several short
/// steps are measured at once. For the thread of the program.
class StepRecorder {
 public:
  /// Both outlive it.
  StepRecorder(BlockRunner& blocks, Recorder& recorder);

  /// Steps follow.
  void Begin();
  /// None follows until the next Begin. Loops and calls that an error has ended end here.
  void End();
  /// A step begins, which is about `block`; and is over, well or not.
  void BeginStep(const Block& block);
  void EndStep();

  void EnterLoop(const Block& block);
  void NextRound() { ++open_.back().rounds; }
  void EnterCall(const Block& block, const Function& function);
  /// The loop or call that was entered last is over.
  void Leave();

 private:
  struct Way;
  // A block where the calls of `way` are open.
  struct Place {
    const Block* block = nullptr;
    const Way* way = nullptr;
    PlaceStatistics* statistics = nullptr;
    int64_t short_ns = 0;               // What a step takes here; 0: not known, or more than a short one.
    Place* next = nullptr;              // Of the step that came next the last time.
    std::optional<uint32_t> loop_site;  // In the record, of a loop.
  };
  struct Called {
    Way* way = nullptr;
    uint32_t site = 0;
  };
  // Calls that are open. A recursion adds none to those of its first call, however deep it is.
  struct Way {
    OpenCalls calls;
    std::unordered_map<const Block*, Place> places;
    std::map<std::pair<const Block*, const Function*>, Called> called;
  };
  // A loop or call that is not over.
  struct Open {
    uint32_t site;
    int64_t begin_ns;
    Way* way_before = nullptr;  // Of a call.
    int64_t rounds = 1;
  };
  static constexpr size_t kMostAtOnce = 16;

  int64_t Now() const { return recorder_.clock().MonotonicNs(); }
  // What has its own places: operators and plans.
  int64_t CountedNs() const { return blocks_.statistics().operators_ns + blocks_.compiler().planning_ns(); }
  void Restart();
  void Charge();
  Way& WayOf(const OpenCalls& calls);
  Called& CalledFrom(Way& way, const Block& block, const Function& function);
  Place& PlaceIn(Way& way, const Block& block);
  Place& NextPlace(const Block& block);
  uint32_t SiteOf(const Block& block, RecordedKind kind, const std::string& name);

  BlockRunner& blocks_;
  Recorder& recorder_;
  std::map<const std::vector<CallSite>*, Way> ways_;  // By their calls, which they hold.
  Way* way_ = nullptr;                                // Where the program is.
  Place* last_ = nullptr;
  std::vector<Open> open_;
  // Steps that are not charged to their places, and since when.
  std::array<Place*, kMostAtOnce> pending_;
  size_t pending_count_ = 0;
  int64_t since_ns_ = 0, counted_ns_ = 0;
};

}  // namespace heddle::engine
