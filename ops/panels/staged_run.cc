// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/staged_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ops/frame/row_pieces.h"
#include "ops/panels/kept_parts.h"

namespace heddle::ops {
namespace {

constexpr int64_t kLeastPanelBytes = 16 << 10;

// Whether two values are the same cells in the same memory.
bool AreSameCells(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.shape() != b.shape() || a.bytes() == 0) return false;
  if (a.IsFrame()) {
    if (a.frame().schema() != b.frame().schema()) return false;
    for (int64_t j = 0; j < a.frame().columns(); ++j)
      if (a.frame().column(j).offsets() != b.frame().column(j).offsets()) return false;
    return true;
  }
  return a.IsMatrix() && a.matrix().IsSameView(b.matrix());
}

class Run {
 public:
  Run(const StagedRun& run, int32_t stage, std::span<const Value* const> inputs,
      std::span<const Value* const> received)
      : run_(run),
        stage_(stage),
        now_(run.form.stages[static_cast<size_t>(stage)]),
        inputs_(inputs),
        received_(received),
        all_(static_cast<int32_t>(run.rows.cuts.size()) - 1),
        first_(run.rank * run.panels()),
        grid_(GridOf(run.node, all_)) {}

  Status ToOutputs(const Value* before, std::span<Value> outputs) {
    MakeChannels();
    Value from_before = before == nullptr ? Value() : *before;
    for (int32_t panel = first_; panel < first_ + run_.panels(); ++panel)
      HEDDLE_RETURN_IF_ERROR(RunPanel(panel, &from_before));
    return Finish(std::move(from_before), outputs);
  }

  Status ToResults(std::span<Value> results) {
    const int32_t last = run_.form.result == StagedResult::kEach ? first_ + 1 : first_ + run_.panels();
    std::vector<std::unique_ptr<PanelStore::Collector>> collectors(results.size());
    for (int32_t panel = first_; panel < last; ++panel) {
      std::vector<Value> made(results.size());
      {
        HEDDLE_ASSIGN_OR_RETURN(const Read read, ReadFor(panel));
        HEDDLE_RETURN_IF_ERROR(Perform(panel, read, nullptr, made));
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (!IsCutByRows(run_.form, i)) {
          if (panel == first_) results[i] = std::move(made[i]);
          continue;
        }
        HEDDLE_ASSIGN_OR_RETURN(Value rows, WithMemoryOfItsOwn(std::move(made[i])));
        // Who has no rows may not know how many columns there are.
        if (rows.shape().rows == 0 && (collectors[i] != nullptr || panel + 1 < last)) continue;
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

 private:
  // What the panels of this rank make as one output of the stage.
  struct Channel {
    Reach reach;
    // By who gets it: a panel of any rank, or a row or column of the grid.
    std::vector<std::unique_ptr<KeptParts>> parts;
    std::vector<Value> of_all;  // Of kAll.
  };
  // What a panel reads in the stage, and where it was kept.
  struct Read {
    std::vector<Value> values;
    std::vector<KeptPart> kept;  // Of each value; without panels: only in memory.
  };

  void MakeChannels() {
    for (const Reach reach : now_.outputs) {
      int32_t targets = 0;
      switch (reach) {
        case Reach::kHere:
        case Reach::kFromLast: targets = 1; break;
        case Reach::kParts:
        case Reach::kRowParts: targets = all_; break;
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
      channels_.push_back(std::move(channel));
    }
  }

  // Hands on what all panels have made.
  Status Finish(Value before, std::span<Value> outputs) {
    size_t place = 0;
    for (Channel& channel : channels_) {
      std::vector<std::vector<KeptPart>> parts;
      for (const auto& kept : channel.parts) {
        HEDDLE_RETURN_IF_ERROR(kept->Finish());
        parts.push_back(kept->TakeParts());
      }
      channel.parts.clear();
      const size_t values = ValuesOfRank(channel.reach, run_.ranks, run_.rank);
      for (size_t to = 0; to < values; ++to) {
        HEDDLE_ASSIGN_OR_RETURN(outputs[place + to], OutputOf(&channel, static_cast<int32_t>(to), &parts));
        if (channel.reach == Reach::kNext) outputs[place + to] = std::move(before);
      }
      place += values;
    }
    return OkStatus();
  }

  Result<Value> OutputOf(Channel* channel, int32_t to, std::vector<std::vector<KeptPart>>* parts) const {
    const int32_t panels = run_.panels();
    std::vector<KeptPart> of_rank;
    const auto add = [&](const auto& target_of) {
      for (int32_t panel = to * panels; panel < (to + 1) * panels; ++panel) {
        const std::vector<KeptPart>& of_panel = (*parts)[static_cast<size_t>(target_of(panel))];
        of_rank.insert(of_rank.end(), of_panel.begin(), of_panel.end());
      }
    };
    switch (channel->reach) {
      case Reach::kNext: return Value();
      case Reach::kAll: {
        std::vector<const Value*> pieces;
        for (const Value& value : channel->of_all) pieces.push_back(&value);
        return JoinRows(pieces);
      }
      case Reach::kHere: of_rank = std::move((*parts)[0]); break;
      case Reach::kFromLast: {
        const auto first = (*parts)[0].begin() + std::ptrdiff_t{to} * panels;
        of_rank.assign(first, first + panels);
        break;
      }
      case Reach::kParts:
      case Reach::kRowParts: add([](int32_t panel) { return panel; }); break;
      case Reach::kRowCopies: add([&](int32_t panel) { return grid_.RowOf(panel); }); break;
      case Reach::kColumnCopies: add([&](int32_t panel) { return grid_.ColumnOf(panel); }); break;
    }
    const size_t of_each = of_rank.size() / static_cast<size_t>(panels);
    return Value(std::make_shared<const PartsOfPanels>(std::move(of_rank), of_each));
  }

  // The piece of input `i` that is of a panel.
  Status AddInput(size_t i, int32_t panel, Read* read) const {
    const Value& input = *inputs_[i];
    KeptPart part{.in_memory = input};
    if (InputUseOf(run_.form, run_.node, run_.infos, static_cast<int>(i)) == InputUse::kRows) {
      const int64_t length = run_.infos[i].shape.rows;
      const Split own =
          length == run_.rows.Length() ? run_.rows : Distribution::SplitRows(length, all_).split;
      const int64_t begin = own.Begin(panel) - own.Begin(first_), end = own.End(panel) - own.Begin(first_);
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

  // What arrives at a panel of a value from the stage before: all of it, or its parts.
  Status AddReceived(const Value& received, int32_t panel, Read* read) const {
    const PartsOfPanels* const parts = PartsIn(received);
    if (parts == nullptr) {
      read->values.push_back(received);
      read->kept.push_back({.in_memory = received});
      return OkStatus();
    }
    std::vector<KeptPart> taken = parts->TakeFor(static_cast<size_t>(panel - first_));
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> values, ReadAll(taken));
    for (size_t i = 0; i < values.size(); ++i) {
      read->values.push_back(std::move(values[i]));
      read->kept.push_back(std::move(taken[i]));
    }
    return OkStatus();
  }

  Result<Read> ReadFor(int32_t panel) const {
    Read read;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i] != nullptr) HEDDLE_RETURN_IF_ERROR(AddInput(i, panel, &read));
    for (const Value* const received : received_)
      HEDDLE_RETURN_IF_ERROR(AddReceived(*received, panel, &read));
    return read;
  }

  Status Perform(int32_t panel, const Read& read, const Value* before, std::span<Value> outputs) const {
    std::vector<const Value*> pointers;
    size_t next = 0;
    for (const Value* const input : inputs_)
      pointers.push_back(input == nullptr ? nullptr : &read.values[next++]);
    for (; next < read.values.size(); ++next) pointers.push_back(&read.values[next]);
    const StagePlace place{.form = run_.form,
                           .stage = stage_,
                           .rank = panel,
                           .rows = run_.rows,
                           .result_rows = run_.result_rows,
                           .before = before};
    return run_.run_stage(place, pointers, outputs);
  }

  Status RunPanel(int32_t panel, Value* before) {
    std::vector<Value> made(ValuesMade(now_, grid_, panel));
    HEDDLE_ASSIGN_OR_RETURN(const Read read, ReadFor(panel));
    HEDDLE_RETURN_IF_ERROR(Perform(panel, read, HandsOn(now_) && panel > 0 ? before : nullptr, made));
    size_t place = 0;
    for (Channel& channel : channels_) {
      const size_t count = ValuesMade(channel.reach, grid_, panel);
      for (size_t i = 0; i < count; ++i)
        HEDDLE_RETURN_IF_ERROR(
            Keep(&channel, panel, static_cast<int32_t>(i), std::move(made[place + i]), read, before));
      place += count;
    }
    return OkStatus();
  }

  // The `number`-th value that a panel makes of a channel.
  Status Keep(Channel* channel, int32_t panel, int32_t number, Value value, const Read& read,
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
      case Reach::kRowParts: target = grid_.At(grid_.RowOf(panel), number); break;
      case Reach::kRowCopies: target = grid_.RowOf(panel); break;
      case Reach::kColumnCopies: target = grid_.ColumnOf(panel); break;
    }
    KeptParts& parts = *channel->parts[static_cast<size_t>(target)];
    // What a panel hands on as it came is kept already.
    for (size_t i = 0; i < read.values.size(); ++i)
      if (read.kept[i].panels != nullptr && AreSameCells(read.values[i], value)) {
        parts.Add(read.kept[i]);
        return OkStatus();
      }
    return parts.Add(std::move(value));
  }

  const StagedRun& run_;
  const int32_t stage_;
  const Stage& now_;
  const std::span<const Value*const> inputs_, received_;
  const int32_t all_;    // Panels of all ranks.
  const int32_t first_;  // Of this one.
  const RankGrid grid_;
  std::vector<Channel> channels_;
};

bool IsOfGrid(Reach reach) {
  return reach == Reach::kRowParts || reach == Reach::kRowCopies || reach == Reach::kColumnCopies;
}

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

bool MakesPanels(const StagedForm& form) {
  return form.units == nullptr && form.axis == Axis::kRows &&
         (form.result == StagedResult::kEach || IsCutByRows(form, 0));
}

bool CanShareInPanels(const StagedForm& form) {
  return MakesPanels(form) && std::none_of(form.stages.begin(), form.stages.end(), [](const Stage& stage) {
           return std::any_of(stage.outputs.begin(), stage.outputs.end(), IsOfGrid);
         });
}

size_t ValuesOfRank(Reach reach, int32_t ranks, int32_t rank) {
  if (reach == Reach::kParts) return static_cast<size_t>(ranks);
  if (reach == Reach::kFromLast) return rank + 1 == ranks ? static_cast<size_t>(ranks) : 0;
  return 1;
}

namespace {

// The output whose value is the `i`-th of those that a rank makes.
std::optional<Reach> ReachOf(const Stage& stage, int32_t ranks, int32_t rank, size_t i) {
  for (const Reach reach : stage.outputs) {
    const size_t values = ValuesOfRank(reach, ranks, rank);
    if (i < values) return reach;
    i -= values;
  }
  return std::nullopt;
}

}  // namespace

bool IsKeptInPanels(const Stage& stage, int32_t ranks, int32_t rank, size_t i) {
  const std::optional<Reach> reach = ReachOf(stage, ranks, rank, i);
  return reach && *reach != Reach::kAll && *reach != Reach::kNext;
}

size_t PartsOfEachPanel(const Stage& stage, int32_t ranks, int32_t rank, size_t i, int32_t panels) {
  return ReachOf(stage, ranks, rank, i) == Reach::kParts ? static_cast<size_t>(panels) : 1;
}

Status RunStageInPanels(const StagedRun& run, int32_t stage, std::span<const Value* const> inputs,
                        std::span<const Value* const> received, const Value* before,
                        std::span<Value> outputs) {
  const bool is_last = stage + 1 == static_cast<int32_t>(run.form.stages.size());
  Run panels(run, stage, inputs, received);
  return is_last ? panels.ToResults(outputs) : panels.ToOutputs(before, outputs);
}

Status RunStagesInPanels(const StagedRun& run, std::span<const Value* const> inputs,
                         std::span<Value> results) {
  std::vector<Value> received;  // What the stage before has made.
  for (size_t stage = 0; stage < run.form.stages.size(); ++stage) {
    const Stage& now = run.form.stages[stage];
    std::vector<const Value*> pointers;
    for (const Value& value : received) pointers.push_back(&value);
    std::vector<Value> made(now.outputs.size());
    const bool is_last = stage + 1 == run.form.stages.size();
    const auto given = now.reads_inputs ? inputs : std::span<const Value* const>();
    HEDDLE_RETURN_IF_ERROR(RunStageInPanels(run, static_cast<int32_t>(stage), given, pointers, nullptr,
                                            is_last ? results : std::span(made)));
    if (HandsOn(now)) made.pop_back();
    received = std::move(made);
  }
  return OkStatus();
}

}  // namespace heddle::ops
