// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/random_plan.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/simulation/plan_writer.h"

namespace heddle::actor {

namespace {

class Generator {
 public:
  Generator(uint64_t seed, const RandomPlanOptions& options)
      : options_(options),
        random_(seed),
        ranks_(Below(static_cast<uint64_t>(options.most_ranks)) + 1),
        streams_(Below(static_cast<uint64_t>(options.most_streams)) + 1),
        writer_(static_cast<int32_t>(ranks_)) {}

  Plan Make() {
    const size_t tasks = 2 + Below(static_cast<uint64_t>(options_.most_tasks) - 1);
    AddSource();
    // An act of AddTask may bring some copies; room is left for the sinks that read what nobody reads.
    while (writer_.size() + 8 < tasks) AddTask();
    while (writer_.size() < tasks) AddSink();
    return writer_.Finish();
  }

 private:
  struct Made {
    RegisterId id;
    uint32_t rank;
    int64_t pieces;
    size_t task;
    bool control;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  uint32_t AnyRank() { return static_cast<uint32_t>(Below(ranks_)); }
  uint32_t AnyStream() { return static_cast<uint32_t>(Below(streams_)); }

  void AddSource() {
    static constexpr int64_t kCounts[] = {1, 2, 3, 4, 6, 8, 12};
    const int64_t count = kCounts[Below(std::size(kCounts))];
    const uint32_t rank = AnyRank();
    Produce(writer_.Add(TaskKind::kSource, rank, AnyStream(), {}, 1, count), rank, count);
  }

  void Produce(size_t task, uint32_t rank, int64_t pieces) {
    const TaskKind kind = writer_.task(task).kind;
    const bool may_be_several = kind == TaskKind::kSource || kind == TaskKind::kCompute;
    const uint64_t results = may_be_several && Below(4) == 0 ? 2 + Below(2) : 1;
    for (uint64_t i = 0; i < results; ++i) made_.push_back({writer_.Output(task), rank, pieces, task, false});
    if (Below(3) == 0) made_.push_back({writer_.ControlOutput(task), rank, pieces, task, true});
  }

  const Made& AnyData() {
    for (;;) {
      const Made& made = made_[Below(made_.size())];
      if (!made.control) return made;
    }
  }

  // A register of `rank` with the content of `made`: itself or a copy.
  RegisterId On(uint32_t rank, const Made& made) {
    if (made.rank == rank) return made.id;
    for (const auto& [key, copy] : copies_) {
      if (key == std::pair(made.id, rank)) return copy;
    }
    const size_t task = writer_.Add(TaskKind::kCopy, rank, AnyStream(), {made.id});
    const RegisterId copy = writer_.Output(task);
    const int64_t pieces = made.pieces;
    copies_.push_back({{made.id, rank}, copy});
    made_.push_back({copy, rank, pieces, task, false});
    return copy;
  }

  // Sometimes lets `task` wait for an older task of the same rate on its rank; over a copy if on another
  // rank.
  void MaybeControl(size_t task, uint32_t rank, int64_t pieces) {
    if (Below(2) == 0) return;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Made made = made_[Below(made_.size())];
      if (!made.control || made.pieces != pieces || made.task >= task) continue;
      const std::vector<RegisterId>& already = writer_.task(task).control_in;
      if (std::find(already.begin(), already.end(), made.id) != already.end()) continue;
      if (made.rank == rank) writer_.Control(made.id, task);
      return;
    }
  }

  // A copy task that waits for a control register of another rank and hands it on as one of its own.
  void AddControlCopy() {
    const Made made = made_[Below(made_.size())];
    const uint32_t rank = AnyRank();
    if (!made.control || made.rank == rank) return;
    const size_t task = writer_.Add(TaskKind::kCopy, rank, AnyStream(), {});
    writer_.Control(made.id, task);
    made_.push_back({writer_.ControlOutput(task), rank, made.pieces, task, true});
  }

  void AddTask() {
    const Made first = AnyData();
    const uint32_t rank = AnyRank();
    const int64_t rate = 1 + static_cast<int64_t>(Below(static_cast<uint64_t>(options_.most_rate)));
    switch (Below(11)) {
      case 0: return AddSource();
      case 1: return AddControlCopy();
      case 2:
        if (first.pieces * rate <= options_.most_pieces)
          return AddRated(TaskKind::kRepeat, first, rank, rate, first.pieces * rate);
        break;
      case 3:
        if (first.pieces * rate <= options_.most_pieces)
          return AddRated(TaskKind::kUnpack, first, rank, rate, first.pieces * rate);
        break;
      case 4:
        if (first.pieces % rate == 0)
          return AddRated(TaskKind::kAccumulate, first, rank, rate, first.pieces / rate);
        break;
      case 5:
        if (first.pieces % rate == 0)
          return AddRated(TaskKind::kPack, first, rank, rate, first.pieces / rate);
        break;
      case 6:
        if (rate > 1 && first.pieces % rate == 0) return AddReconvergence(first, rank, rate);
        break;
      default: break;
    }
    std::vector<RegisterId> inputs{On(rank, first)};
    for (uint64_t extra = Below(3); extra > 0; --extra) {
      const Made other = AnyData();
      if (other.pieces == first.pieces) inputs.push_back(On(rank, other));
    }
    if (Below(6) == 0) inputs.insert(inputs.begin(), -1);
    const size_t task = writer_.Add(TaskKind::kCompute, rank, AnyStream(), inputs);
    MaybeControl(task, rank, first.pieces);
    Produce(task, rank, first.pieces);
  }

  void AddRated(TaskKind kind, const Made& input, uint32_t rank, int64_t rate, int64_t pieces) {
    const int64_t pieces_in = input.pieces;
    const size_t task = writer_.Add(kind, rank, AnyStream(), {On(rank, input)}, rate);
    MaybeControl(task, rank, pieces_in);
    Produce(task, rank, pieces);
  }

  // A -> accumulate(k) -> repeat(k) -> B and A -> B: the direct edge needs about k slots (runtime
  // reference 2.11, T3).
  void AddReconvergence(const Made& first, uint32_t rank, int64_t rate) {
    const RegisterId direct = On(rank, first);
    const size_t few = writer_.Add(Below(2) == 0 ? TaskKind::kAccumulate : TaskKind::kPack, rank, AnyStream(),
                                   {direct}, rate);
    const RegisterId fewer = writer_.Output(few);
    const size_t many =
        writer_.Add(Below(2) == 0 ? TaskKind::kRepeat : TaskKind::kUnpack, rank, AnyStream(), {fewer}, rate);
    const RegisterId again = writer_.Output(many);
    Produce(writer_.Add(TaskKind::kCompute, rank, AnyStream(), {again, direct}), rank, first.pieces);
  }

  void AddSink() {
    Made made = AnyData();
    for (int attempt = 0; attempt < 8 && !writer_.reg(made.id).consumers.empty(); ++attempt) made = AnyData();
    const size_t task = writer_.Add(TaskKind::kSink, made.rank, AnyStream(), {made.id});
    MaybeControl(task, made.rank, made.pieces);
  }

  const RandomPlanOptions options_;
  std::mt19937_64 random_;
  const uint64_t ranks_;
  const uint64_t streams_;
  PlanWriter writer_;
  std::vector<Made> made_;
  std::vector<std::pair<std::pair<RegisterId, uint32_t>, RegisterId>> copies_;
};

}  // namespace

Plan RandomPlan(uint64_t seed, const RandomPlanOptions& options) { return Generator(seed, options).Make(); }

}  // namespace heddle::actor
