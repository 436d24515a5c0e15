// SPDX-License-Identifier: Apache-2.0
// From a body to the steps of a tile. Cell-wise nodes are grouped into regions by (stage, columns): a value's
// stage is the number of steps that are no regions on the longest way to it, so no path leaves a region and
// comes back.
#include <algorithm>
#include <set>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/lower/lower_regions.h"
#include "ops/fused/lower/lower_roots.h"
#include "ops/fused/lower/stages.h"
#include "ops/fused/program/region_walk.h"
#include "ops/fused/program/tile_program.h"
#include "ops/product/matmul.h"

namespace heddle::ops {
namespace {

class Lowering : private RegionMaker {
 public:
  // What a program may have that only devices run.
  struct OfDevice {
    bool has_long_products = false, unites_entries = false;
  };
  Lowering(FusedOperator fused, const Processor& processor, LongRowFolds long_rows, OfDevice of_device)
      : RegionMaker(std::move(fused), processor), long_rows_(long_rows), of_device_(of_device) {}

  Result<TileProgram> Run() {
    HEDDLE_ASSIGN_OR_RETURN(program_.roles,
                            FindRoles(program_.fused, long_rows_, of_device_.has_long_products));
    if (FoldsLongRows(*this)) HEDDLE_RETURN_IF_ERROR(Take(DivideIntoPhases(*this)));
    program_.single = IsSingle(Driver());
    HEDDLE_RETURN_IF_ERROR(MakeRoots(*this, &program_));
    if (of_device_.unites_entries) UniteEntries();
    program_.by_pattern = CanWalkEntries(*this);
    if (of_device_.unites_entries && !program_.by_pattern)
      return Unimplemented("CSR values with entries where no input has any");
    if (std::optional<BodyWithBackgrounds> made = FindBackgrounds(*this))
      Take(*std::move(made));
    else if (!program_.by_pattern && LosesSparsity(*this))
      return Unimplemented("CSR values with entries where the driver has none");
    if (long_rows_ == LongRowFolds::kWhole && !program_.by_pattern)
      return Unimplemented("long rows that do not go by their entries");
    SetStages();
    program_.cut_columns = CutColumns(*this);
    HEDDLE_RETURN_IF_ERROR(CheckLongRows(program_));
    PlacePayloadsOfLongRows(&program_);
    for (NodeId id = 0; id < body().size(); ++id)
      if (IsRows(id) && HasRole(node(id), Role::kSampledProduct) && !program_.by_pattern)
        return Unimplemented("a sampled product beside cells that are needed everywhere");
    PlaceInputs();
    for (int stage = 0; stage <= last_stage_; ++stage) {
      for (int64_t columns : widths_)
        for (const bool pattern : {true, false}) HEDDLE_RETURN_IF_ERROR(MakeRegion(stage, columns, pattern));
      for (NodeId id = 0; id < body().size(); ++id)
        if (IsRows(id) && !IsCellwise(id) && stage_[Index(id)] == stage + 1)
          HEDDLE_RETURN_IF_ERROR(MakeStep(id));
      HEDDLE_RETURN_IF_ERROR(EndStage(stage));
    }
    FinishPhases(&program_);
    ChooseReads(&program_);
    ChooseTileRows(&program_);
    return std::move(program_);
  }

 private:
  void UniteEntries() {
    for (NodeId id = 0; id < body().size(); ++id)
      if (IsCsrInput(id) && HasDriversShape(id) && id != Driver())
        program_.united.push_back(InputPosition(node(id)));
  }

  void SetStages() {
    stage_ = phases_.empty() ? FindStages(*this) : phases_;
    HastenBackgrounds(&stage_);
    std::set<int64_t> widths;
    for (NodeId id = 0; id < body().size(); ++id)
      if (IsCellwise(id)) widths.insert(Columns(id));
    last_stage_ = *std::max_element(stage_.begin(), stage_.end());
    widths_.assign(widths.begin(),
                   widths.end());  // Column vectors first: wider regions of the stage read them.
  }

  // Roots and results come last; of long rows each in the phase that makes it.
  Status EndStage(int stage) {
    const auto ends = [&](int last) { return (program_.cut_columns > 0 ? last : last_stage_) == stage; };
    for (size_t r = 0; r < program_.roots.size(); ++r) {
      TileRoot& root = program_.roots[r];
      root.phase = stage_[Index(root.node)] - (root.of_rows ? 1 : 0);
      if (ends(root.phase)) HEDDLE_RETURN_IF_ERROR(MakeRootStep(static_cast<int>(r)));
    }
    for (const NodeId root : program_.fused.roots)
      if (RowRoot(root) >= 0 && ends(stage_[Index(root)])) FinishResult(root);
    for (size_t& s = steps_of_stages_; program_.cut_columns > 0 && s < program_.steps.size(); ++s)
      program_.steps[s].phase = stage;
    return OkStatus();
  }

  Status MakeStep(NodeId id) {
    if (sunk_row_folds_.contains(id)) return OkStatus();
    const Node& n = node(id);
    if (HasRole(n, Role::kRange)) {
      int64_t first = 0;
      if (n.inputs.size() > 3 && n.inputs[3] != kNoNode)
        first = node(n.inputs[3]).FindAttribute("value")->AsInteger() - 1;
      TileRef place = DensePlace(n.inputs[0]);
      place.column += first;
      PlaceOf(id) = place;
      return OkStatus();
    }
    Step step{.columns = Columns(id)};
    if (HasRole(n, Role::kCbind)) {
      const TileRef place = NewPlace(id);
      PlaceOf(id) = place;
      TileRef to = place;
      for (NodeId part : n.inputs) {
        program_.steps.push_back(
            {.kind = Step::Kind::kCopy, .columns = Columns(part), .from = DensePlace(part), .to = to});
        to.column += Columns(part);
      }
      return OkStatus();
    }
    if (HasRole(n, Role::kSampledProduct)) {
      step.kind = Step::Kind::kSample;
      step.index = InputPosition(node(n.inputs[1]));
      step.right = InputPosition(node(n.inputs[2]));
    } else if (HasRole(n, Role::kProduct)) {
      step.kind = Step::Kind::kMultiply;
      step.right = InputPosition(node(n.inputs[1]));
      if (step.columns > kFewColumns && node(n.inputs[1]).info.format == Format::kSparse)
        return Unimplemented("a product with a CSR right operand");
      HEDDLE_RETURN_IF_ERROR(ReadForProduct(n.inputs[0], &step, &step.index));
    } else {
      const Aggregate& aggregate = *FindAggregate(n.op);
      step.kind = Step::Kind::kFoldRows;
      step.node = id;
      step.index = -1;
      step.aggregate = aggregate.kind;
      step.columns = Columns(n.inputs[0]);
      const NodeId operand = n.inputs[0];
      if (IsPattern(operand) && FoldsRows(n) && !(program_.has_background && IsCsrInput(operand))) {
        step.from = PlaceOf(operand);
        step.background = BackgroundPlace(operand);
      } else if (IsCsrInput(operand)) {  // By its entries: dense cells would be mostly zeros.
        step.index = InputPosition(node(operand));
      } else {
        step.from = IsReadAsSingles(operand) ? SinglesPlace(operand)
                    : aggregate.kind == AggregateKind::kIndexMax || aggregate.kind == AggregateKind::kIndexMin
                        ? ContiguousPlace(operand)
                        : DensePlace(operand);
      }
    }
    step.to = NewPlace(id);
    PlaceOf(id) = step.to;
    program_.steps.push_back(std::move(step));
    RoundIfSingle(PlaceOf(id), Columns(id));
    return OkStatus();
  }

  Status MakeRootStep(int r) {
    if (sunk_.contains(r)) return OkStatus();
    const TileRoot& root = program_.roots[static_cast<size_t>(r)];
    if (root.kind == TileRoot::Kind::kMoments) return OkStatus();
    const Node& n = node(root.node);
    Step step{.kind = Step::Kind::kRoot, .index = r, .columns = root.n};
    if (HasRole(n, Role::kTransposedProduct)) {
      HEDDLE_RETURN_IF_ERROR(ReadForProduct(n.inputs[0], &step, &step.right));
      if (node(n.inputs[1]).info.format == Format::kSparse) return Unimplemented("t(X) %*% a CSR matrix");
      step.from_right = AddsSingles(program_, root) ? SinglesPlace(n.inputs[1]) : DensePlace(n.inputs[1]);
      if (root.kind == TileRoot::Kind::kLanes && step.right < 0) {
        if (!IsPattern(n.inputs[0]) && !IsReadAsSingles(n.inputs[0]))
          step.from = ContiguousPlace(n.inputs[0]);
        step.from_right = ContiguousPlace(n.inputs[1]);
      }
    } else {
      const bool gaps = root.kind == TileRoot::Kind::kColumns && root.n > 8;
      const bool sparse = node(n.inputs[0]).info.format == Format::kSparse || !HasBackground(n.inputs[0]);
      const bool entries = IsPattern(n.inputs[0]) && sparse && FoldOf(root.aggregate) == simd::Fold::kAdd;
      if (entries) step.background = BackgroundPlace(n.inputs[0]);
      step.from = entries                        ? PlaceOf(n.inputs[0])
                  : IsReadAsSingles(n.inputs[0]) ? SinglesPlace(n.inputs[0])
                  : gaps                         ? DensePlace(n.inputs[0])
                                                 : ContiguousPlace(n.inputs[0]);
    }
    program_.steps.push_back(std::move(step));
    return OkStatus();
  }

  // A result that no step wrote where it belongs: a column range, or one that later steps read as doubles.
  void FinishResult(NodeId root) {
    const TileRef result{Kind::kResult, RowRoot(root), 0};
    if (IsPattern(root) && node(root).info.format == Format::kSparse) return FinishPatterned(root, result);
    if (IsPattern(root) && !program_.single) {
      program_.steps.push_back(SpreadTo(root, result));
      return;
    }
    const TileRef place = DensePlace(root);
    if (place == result) return;
    program_.steps.push_back({.kind = program_.single ? Step::Kind::kNarrow : Step::Kind::kCopy,
                              .columns = Columns(root),
                              .from = place,
                              .to = result});
  }

  const LongRowFolds long_rows_;
  const OfDevice of_device_;
  int last_stage_ = 0;
  size_t steps_of_stages_ = 0;  // Steps of the stages that have ended.
  std::vector<int64_t> widths_;
};

Result<TileProgram> LowerWith(FusedOperator fused, const Processor& processor, Lowering::OfDevice of_device) {
  // Along entries a row is whole, however long it is.
  const NodeId driver = DriverOf(fused);
  if (driver != kNoNode && fused.body[driver].info.format == Format::kSparse &&
      fused.body[driver].info.shape.columns > kColumnChunk) {
    Result<TileProgram> program = Lowering(fused, processor, LongRowFolds::kWhole, of_device).Run();
    if (program.ok()) return program;
  }
  return Lowering(std::move(fused), processor, LongRowFolds::kInChunks, of_device).Run();
}

}  // namespace

Result<TileProgram> Lower(FusedOperator fused, const Processor& processor) {
  return LowerWith(std::move(fused), processor, {});
}

Result<TileProgram> LowerForDevice(FusedOperator fused) {
  Result<TileProgram> program = LowerWith(fused, {}, {.has_long_products = true});
  if (program.ok()) return program;
  Result<TileProgram> united =
      Lowering(std::move(fused), {}, LongRowFolds::kWhole, {.unites_entries = true}).Run();
  return united.ok() && !united->united.empty() ? united : program;
}

}  // namespace heddle::ops
