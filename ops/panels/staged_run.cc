// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/staged_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "ops/frame/row_pieces.h"
#include "ops/panels/kept_parts.h"

namespace heddle::ops {
namespace {

constexpr int64_t kLeastPanelBytes = 16 << 10;

// What all ranks make as one output of a stage, for the next one.
struct Channel {
  Reach reach;
  std::vector<std::unique_ptr<KeptParts>> parts;  // By target: a rank, or a row or column of the grid.
  std::vector<Value> of_all;                      // Of kAll, until
  Value joined;                                   // all of them are there.
};

// Whether two values are the same cells in the same memory.
bool AreSameCells(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.shape() != b.shape() || a.bytes() == 0) return false;
  if (a.IsFrame()) {
    if (a.frame().schema() != b.frame().schema()) return false;
    for (int64_t j = 0; j < a.frame().columns(); ++j)
      if (a.frame().column(j).offsets() != b.frame().column(j).offsets()) return false;
    return true;
  }
  return a.IsMatrix() && a.matrix().storage() == b.matrix().storage() &&
         a.matrix().data<char>() == b.matrix().data<char>() &&
         (!a.matrix().IsSparse() || a.matrix().row_offsets() == b.matrix().row_offsets());
}

class Run {
 public:
  explicit Run(const StagedRun& run, std::span<const Value* const> inputs)
      : run_(run),
        inputs_(inputs),
        ranks_(static_cast<int32_t>(run.rows.cuts.size()) - 1),
        grid_(GridOf(run.node, ranks_)) {}

  Status ToResults(std::span<Value> results) {
    const auto stages = static_cast<int32_t>(run_.form.stages.size());
    for (int32_t stage = 0; stage + 1 < stages; ++stage) {
      std::vector<Channel> next = ChannelsOf(run_.form.stages[static_cast<size_t>(stage)]);
      Value before;
      for (int32_t rank = 0; rank < ranks_; ++rank)
        HEDDLE_RETURN_IF_ERROR(RunStage(stage, rank, &before, &next));
      HEDDLE_RETURN_IF_ERROR(Finish(&next));
      channels_ = std::move(next);
    }
    return RunLast(stages - 1, results);
  }

 private:
  // What a rank reads in a stage, and where it was kept.
  struct Read {
    std::vector<Value> values;
    std::vector<KeptPart> kept;  // Of each value; without panels: only in memory.
  };

  std::vector<Channel> ChannelsOf(const Stage& stage) const {
    std::vector<Channel> channels;
    for (const Reach reach : stage.outputs) {
      int32_t targets = 0;
      switch (reach) {
        case Reach::kHere:
        case Reach::kFromLast: targets = 1; break;
        case Reach::kParts:
        case Reach::kRowParts: targets = ranks_; break;
        case Reach::kRowCopies: targets = grid_.rows(); break;
        case Reach::kColumnCopies: targets = grid_.columns; break;
        case Reach::kAll:
        case Reach::kNext: break;
      }
      Channel channel{.reach = reach};
      // What waits in memory to become a panel is multiplied by the targets.
      const int64_t least_panel_bytes = targets > 1 ? kLeastPanelBytes : 0;
      for (int32_t i = 0; i < targets; ++i)
        channel.parts.push_back(std::make_unique<KeptParts>(run_.store, least_panel_bytes));
      channels.push_back(std::move(channel));
    }
    return channels;
  }

  static Status Finish(std::vector<Channel>* channels) {
    for (Channel& channel : *channels) {
      for (const auto& parts : channel.parts) HEDDLE_RETURN_IF_ERROR(parts->Finish());
      if (channel.reach != Reach::kAll) continue;
      std::vector<const Value*> pieces;
      for (const Value& value : channel.of_all) pieces.push_back(&value);
      HEDDLE_ASSIGN_OR_RETURN(channel.joined, JoinRows(pieces));
      channel.of_all.clear();
    }
    return OkStatus();
  }

  // The piece of input `i` that rank `rank` has.
  Status AddInput(size_t i, int32_t rank, Read* read) const {
    const Value& input = *inputs_[i];
    KeptPart part{.in_memory = input};
    if (InputUseOf(run_.form, run_.node, run_.infos, static_cast<int>(i)) == InputUse::kRows) {
      const int64_t length = input.shape().rows;
      const Split own =
          length == run_.rows.Length() ? run_.rows : Distribution::SplitRows(length, ranks_).split;
      const int64_t begin = own.Begin(rank), end = own.End(rank);
      if (input.IsPanels()) {
        part = {.panels = input.panels(), .begin = begin, .end = end};
      } else {
        HEDDLE_ASSIGN_OR_RETURN(part.in_memory, SliceRows(input, begin, end));
      }
    } else if (input.IsPanels()) {
      return Internal("'{}' reads a value whole that is panels", run_.node.op);
    }
    HEDDLE_ASSIGN_OR_RETURN(Value value, part.Read());
    read->values.push_back(std::move(value));
    read->kept.push_back(std::move(part));
    return OkStatus();
  }

  // What arrives of a channel at a rank. Nobody else reads what is for one rank alone.
  Status AddReceived(Channel* channel, int32_t rank, Read* read) const {
    const auto add_one = [&](const KeptPart& part) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(Value value, part.Read());
      read->values.push_back(std::move(value));
      read->kept.push_back(part);
      return OkStatus();
    };
    const auto add_all = [&](const KeptParts& parts) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> values, parts.ReadAll());
      for (size_t i = 0; i < values.size(); ++i) {
        read->values.push_back(std::move(values[i]));
        read->kept.push_back(parts.part(i));
      }
      return OkStatus();
    };
    const auto at = [&](int32_t target) -> std::unique_ptr<KeptParts>& {
      return channel->parts[static_cast<size_t>(target)];
    };
    switch (channel->reach) {
      case Reach::kNext: return OkStatus();
      case Reach::kHere:
      case Reach::kFromLast: return add_one(at(0)->part(static_cast<size_t>(rank)));
      case Reach::kAll:
        read->values.push_back(channel->joined);
        read->kept.push_back({.in_memory = channel->joined});
        return OkStatus();
      case Reach::kParts:
      case Reach::kRowParts: {
        const std::unique_ptr<KeptParts> parts = std::move(at(rank));
        return add_all(*parts);
      }
      case Reach::kRowCopies: return add_all(*at(grid_.RowOf(rank)));
      case Reach::kColumnCopies: return add_all(*at(grid_.ColumnOf(rank)));
    }
    return Internal("'{}' sends what no rank gets", run_.node.op);
  }

  Result<Read> ReadFor(int32_t stage, int32_t rank) {
    Read read;
    if (stage == 0 || run_.form.stages[static_cast<size_t>(stage)].reads_inputs)
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i] != nullptr) HEDDLE_RETURN_IF_ERROR(AddInput(i, rank, &read));
    for (Channel& channel : channels_) HEDDLE_RETURN_IF_ERROR(AddReceived(&channel, rank, &read));
    return read;
  }

  Status Perform(int32_t stage, int32_t rank, const Read& read, const Value* before,
                 std::span<Value> outputs) const {
    std::vector<const Value*> pointers;
    size_t next = 0;
    if (stage == 0 || run_.form.stages[static_cast<size_t>(stage)].reads_inputs)
      for (const Value* const input : inputs_)
        pointers.push_back(input == nullptr ? nullptr : &read.values[next++]);
    for (; next < read.values.size(); ++next) pointers.push_back(&read.values[next]);
    const StagePlace place{.form = run_.form,
                           .stage = stage,
                           .rank = rank,
                           .rows = run_.rows,
                           .result_rows = run_.result_rows,
                           .before = before};
    return run_.run_stage(place, pointers, outputs);
  }

  Status RunStage(int32_t stage, int32_t rank, Value* before, std::vector<Channel>* next) {
    const Stage& now = run_.form.stages[static_cast<size_t>(stage)];
    std::vector<Value> made(ValuesMade(now, grid_, rank));
    HEDDLE_ASSIGN_OR_RETURN(const Read read, ReadFor(stage, rank));
    HEDDLE_RETURN_IF_ERROR(Perform(stage, rank, read, HandsOn(now) && rank > 0 ? before : nullptr, made));
    size_t place = 0;
    for (Channel& channel : *next) {
      const size_t count = ValuesMade(channel.reach, grid_, rank);
      for (size_t i = 0; i < count; ++i)
        HEDDLE_RETURN_IF_ERROR(
            Keep(&channel, rank, static_cast<int32_t>(i), std::move(made[place + i]), read, before));
      place += count;
    }
    return OkStatus();
  }

  // The `number`-th value that a rank makes of a channel.
  Status Keep(Channel* channel, int32_t rank, int32_t number, Value value, const Read& read,
              Value* before) const {
    int32_t target = 0;
    switch (channel->reach) {
      case Reach::kNext: *before = std::move(value); return OkStatus();
      case Reach::kAll: {
        HEDDLE_ASSIGN_OR_RETURN(value, WithMemoryOfItsOwn(std::move(value)));
        channel->of_all.push_back(std::move(value));
        return OkStatus();
      }
      case Reach::kHere:
      case Reach::kFromLast: break;
      case Reach::kParts: target = number; break;
      case Reach::kRowParts: target = grid_.At(grid_.RowOf(rank), number); break;
      case Reach::kRowCopies: target = grid_.RowOf(rank); break;
      case Reach::kColumnCopies: target = grid_.ColumnOf(rank); break;
    }
    KeptParts& parts = *channel->parts[static_cast<size_t>(target)];
    // What a rank hands on as it came is kept already.
    for (size_t i = 0; i < read.values.size(); ++i)
      if (read.kept[i].panels != nullptr && AreSameCells(read.values[i], value)) {
        parts.Add(read.kept[i]);
        return OkStatus();
      }
    return parts.Add(std::move(value));
  }

  Status RunLast(int32_t stage, std::span<Value> results) {
    const bool is_each = run_.form.result == StagedResult::kEach;
    std::vector<std::unique_ptr<PanelStore::Collector>> collectors(results.size());
    for (int32_t rank = 0; rank < (is_each ? 1 : ranks_); ++rank) {
      std::vector<Value> made(results.size());
      {
        HEDDLE_ASSIGN_OR_RETURN(const Read read, ReadFor(stage, rank));
        HEDDLE_RETURN_IF_ERROR(Perform(stage, rank, read, nullptr, made));
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (!IsCutByRows(run_.form, i)) {
          if (rank == 0) results[i] = std::move(made[i]);
          continue;
        }
        HEDDLE_ASSIGN_OR_RETURN(Value rows, WithMemoryOfItsOwn(std::move(made[i])));
        // Who has no rows may not know how many columns there are.
        const bool is_last = rank + 1 == ranks_;
        if (rows.shape().rows == 0 && (collectors[i] != nullptr || !is_last)) continue;
        if (collectors[i] == nullptr)
          collectors[i] = run_.store.Collect({kUnknown, rows.shape().columns}, rows.IsFrame());
        HEDDLE_RETURN_IF_ERROR(collectors[i]->Add(std::move(rows)));
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (collectors[i] == nullptr) continue;
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, collectors[i]->Finish());
      results[i] = Value(std::move(panels));
    }
    return OkStatus();
  }

  const StagedRun& run_;
  const std::span<const Value* const> inputs_;
  const int32_t ranks_;
  const RankGrid grid_;
  std::vector<Channel> channels_;  // What the stage before has made.
};

}  // namespace

bool IsCutByRows(const StagedForm& form, size_t i) {
  if (i > 0 && !form.all_alike) return false;
  switch (form.result) {
    case StagedResult::kSameRows:
    case StagedResult::kRows:
    case StagedResult::kUneven: return true;
    case StagedResult::kEach:
    case StagedResult::kSameColumns:
    case StagedResult::kTurned:
    case StagedResult::kFinished:
    case StagedResult::kColumns: break;
  }
  return false;
}

Status RunStagesInPanels(const StagedRun& run, std::span<const Value* const> inputs,
                         std::span<Value> results) {
  return Run(run, inputs).ToResults(results);
}

}  // namespace heddle::ops
