// SPDX-License-Identifier: Apache-2.0
// From a body to the steps of a tile. Cell-wise nodes are grouped into regions by (stage, columns): a value's
// stage is the number of steps that are no regions on the longest way to it, so no path leaves a region and
// comes back.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/values/panels.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/broadcast.h"
#include "ops/fused/lower_roots.h"
#include "ops/fused/places.h"
#include "ops/fused/region_walk.h"
#include "ops/fused/stages.h"
#include "ops/fused/tile_program.h"
#include "ops/product/matmul.h"
#include "ops/simd/elementwise_codes.h"

namespace heddle::ops {
namespace {

class Lowering : private Places {
 public:
  Lowering(FusedOperator fused, const Processor& processor, LongRowFolds long_rows)
      : Places(std::move(fused), processor), long_rows_(long_rows) {}

  Result<TileProgram> Run() {
    HEDDLE_ASSIGN_OR_RETURN(program_.roles, FindRoles(program_.fused, long_rows_));
    if (FoldsLongRows(*this)) HEDDLE_RETURN_IF_ERROR(Take(DivideIntoPhases(*this)));
    program_.single = IsSingle(Driver());
    HEDDLE_RETURN_IF_ERROR(MakeRoots(*this, &program_));
    program_.by_pattern = CanWalkEntries(*this);
    if (std::optional<DefaultedBody> made = FindDefaults(*this))
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
      if (IsRows(id) && node(id).Is("sampledProduct") && !program_.by_pattern)
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
  void SetStages() {
    stage_ = phases_.empty() ? FindStages(*this) : phases_;
    HastenDefaults(&stage_);
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

  struct RegionBuilder {
    Region region;
    Step step;
    std::map<NodeId, int> values;                     // Body node -> region node, for results.
    std::map<std::pair<NodeId, Pattern>, int> reads;  // Operand -> region node.
    std::vector<TileRef> row_folds;                   // Row aggregates that the region computes.
    // Of a fold of flat cells; all folds of a region have as many.
    int EightsOf(const TileRoot& root) const {
      return step.flat && root.kind == TileRoot::Kind::kColumns ? static_cast<int>(root.n) : 1;
    }
  };

  // True if the region must walk row by row: a vector is repeated along a row that is long enough to be
  // walked.
  bool WalksRows(const std::vector<NodeId>& members, int64_t columns) {
    if (columns < kNarrowRow) return false;
    for (NodeId id : members) {
      for (size_t i = 0; i < node(id).inputs.size(); ++i) {
        const NodeId input = node(id).inputs[i];
        if (input == kNoNode || !node(input).info.IsMatrix()) continue;
        if (PatternOf(id, i) != Pattern::kCells) return true;
        if (!IsCellwise(input) && !IsPattern(input) && PlaceOf(input).kind != Kind::kNone &&
            StrideOf(PlaceOf(input)) != columns)
          return true;
      }
    }
    return false;
  }

  Status MakeRegion(int stage, int64_t columns, bool pattern) {
    std::vector<NodeId> members;
    for (NodeId id = 0; id < body().size(); ++id)
      if (IsCellwise(id) && stage_[Index(id)] == stage && Columns(id) == columns && IsPattern(id) == pattern)
        members.push_back(id);
    if (members.empty()) return OkStatus();
    RegionBuilder builder;
    builder.step.kind = Step::Kind::kRegion;
    builder.step.columns = columns;
    const RegionWalk walk = pattern ? RegionWalk::kFlat : ChooseWalk(*this, members);
    if (walk == RegionWalk::kNarrow) builder.region.columns = static_cast<int>(columns);
    builder.step.flat = walk == RegionWalk::kFlat && (pattern || !WalksRows(members, columns));
    builder.step.by_entries = pattern;
    for (NodeId id : members) HEDDLE_RETURN_IF_ERROR(AddMember(&builder, id));
    for (NodeId id : members) AddOutputs(&builder, id);
    builder.step.stream = GoesPastCaches(*this, builder.step);
    builder.step.index = static_cast<int>(program_.regions.size());
    builder.region.inputs = static_cast<int>(builder.step.operands.size());
    program_.regions.push_back(std::move(builder.region));
    program_.steps.push_back(std::move(builder.step));
    for (const TileRef& fold : builder.row_folds) RoundIfSingle(fold, 1);
    return OkStatus();
  }

  static int Push(RegionBuilder* builder, RegionNode value) {
    builder->region.nodes.push_back(value);
    return static_cast<int>(builder->region.nodes.size()) - 1;
  }
  static int PushInput(RegionBuilder* builder, Access access, RegionOperand operand) {
    builder->step.operands.push_back(operand);
    return Push(builder, {.op = RegionOp::kInput,
                          .access = access,
                          .input = static_cast<int>(builder->step.operands.size()) - 1});
  }

  // Rows of an input or of what an earlier step made. A region reads floats itself.
  int PushCells(RegionBuilder* builder, Access access, NodeId input, bool contiguous) {
    if (!IsInput(input) || !IsSingle(input) || IsCsrInput(input)) {
      const TileRef tile = contiguous ? ContiguousPlace(input) : DensePlace(input);
      const int read = PushInput(builder, access, {.tile = tile});
      builder->region.nodes[static_cast<size_t>(read)].single = program_.single && tile.kind == Kind::kResult;
      return read;
    }
    const int read = PushInput(builder, access, {.tile = {Kind::kInput, InputPosition(node(input)), 0}});
    builder->region.nodes[static_cast<size_t>(read)].single = true;
    return read;
  }

  // The region's node for operand i of member `id`.
  Result<int> Operand(RegionBuilder* builder, NodeId id, size_t i) {
    const NodeId input = node(id).inputs[i];
    if (const auto found = builder->values.find(input);
        found != builder->values.end() && PatternOf(id, i) == Pattern::kCells)
      return found->second;
    const Pattern pattern = PatternOf(id, i);
    const auto [known, fresh] = builder->reads.try_emplace({input, pattern}, -1);
    if (!fresh) return known->second;
    const int64_t columns = builder->step.columns;
    int read = -1;
    if (IsPattern(id) && pattern != Pattern::kScalar) {
      if (pattern == Pattern::kRow && Columns(input) != columns)
        return Unimplemented("a row vector of {} columns beside {}", Columns(input), columns);
      read = PushInput(builder, Access::kCells, {.tile = PatternPlace(input, pattern)});
      builder->reads[{input, pattern}] = read;
      return read;
    }
    switch (pattern) {
      case Pattern::kScalar: {
        const Scalar* literal = node(input).Is("literal") ? node(input).FindAttribute("value") : nullptr;
        // Whole numbers are part of the code; others are arguments, so that a changing constant compiles
        // nothing anew.
        if (literal != nullptr && std::floor(literal->AsDouble()) == literal->AsDouble() &&
            std::abs(literal->AsDouble()) < 1e6)
          read = Push(builder, {.op = RegionOp::kLiteral, .literal = literal->AsDouble()});
        else
          read = PushInput(builder, Access::kScalar, {.from = RegionOperand::From::kScalar, .index = input});
        break;
      }
      case Pattern::kRow: {
        const int position = InputPosition(node(input));
        if (Columns(input) != columns)
          return Unimplemented("a row vector of {} columns beside {}", Columns(input), columns);
        if (columns == 1) {  // A 1 x 1 matrix.
          read =
              PushInput(builder, Access::kScalar, {.from = RegionOperand::From::kWhole, .index = position});
        } else if (!builder->step.flat) {
          read = PushInput(builder, Access::kPerColumn,
                           {.from = RegionOperand::From::kWhole, .index = position});
        } else {
          program_.repeated.push_back({position, columns});
          read = PushInput(builder, Access::kCells,
                           {.from = RegionOperand::From::kRepeated,
                            .index = static_cast<int>(program_.repeated.size()) - 1});
        }
        break;
      }
      case Pattern::kColumn: {
        if (columns == 1) {  // m x 1 op m x 1
          read = PushCells(builder, Access::kCells, input, true);
        } else if (!builder->step.flat) {
          read = PushCells(builder, Access::kPerRow, input, builder->region.columns > 0);
        } else {
          TileRef& expanded = expanded_[{input, columns}];
          if (expanded.kind == Kind::kNone) {
            expanded = {Kind::kBuffer, NewBuffer(columns), 0};
            program_.steps.push_back({.kind = Step::Kind::kExpand,
                                      .columns = columns,
                                      .from = ContiguousPlace(input),
                                      .to = expanded});
          }
          read = PushInput(builder, Access::kCells, {.tile = expanded});
        }
        break;
      }
      case Pattern::kCells:
        read = PushCells(builder, Access::kCells, input, builder->step.flat || builder->region.columns > 0);
        break;
    }
    builder->reads[{input, pattern}] = read;
    return read;
  }

  Status AddMember(RegionBuilder* builder, NodeId id) {
    const Node& n = node(id);
    RegionNode value;
    const bool binary = n.inputs.size() == 2 && n.inputs[1] != kNoNode;
    HEDDLE_ASSIGN_OR_RETURN(value.a, Operand(builder, id, 0));
    if (n.Is("ifelse")) {
      value.op = RegionOp::kSelect;
      HEDDLE_ASSIGN_OR_RETURN(value.b, Operand(builder, id, 1));
      HEDDLE_ASSIGN_OR_RETURN(value.c, Operand(builder, id, 2));
    } else if (n.Is("replace")) {  // x == pattern ? replacement : x
      RegionNode matches{.op = RegionOp::kUnary, .unary = UnaryCode::kIsNaN, .a = value.a};
      if (!std::isnan(node(n.inputs[1]).FindAttribute("value")->AsDouble())) {
        matches = {.op = RegionOp::kBinary, .binary = BinaryCode::kEqual, .a = value.a};
        HEDDLE_ASSIGN_OR_RETURN(matches.b, Operand(builder, id, 1));
      }
      value.op = RegionOp::kSelect;
      HEDDLE_ASSIGN_OR_RETURN(value.b, Operand(builder, id, 2));
      value.c = value.a;
      value.a = Push(builder, matches);
    } else if (binary) {
      value.op = RegionOp::kBinary;
      value.binary = *FindBinaryCode(n.op);
      HEDDLE_ASSIGN_OR_RETURN(value.b, Operand(builder, id, 1));
      const RegionNode& right = builder->region.nodes[static_cast<size_t>(value.b)];
      const bool known = value.binary == BinaryCode::kPower && right.op == RegionOp::kLiteral;
      switch (known ? FormOfPower(right.literal) : PowerForm::kFunction) {
        case PowerForm::kSquare:
          value.binary = BinaryCode::kMultiply;
          value.b = value.a;
          break;
        case PowerForm::kCube:
          value.binary = BinaryCode::kMultiply;
          value.b = value.a;
          value.a = Push(builder, value);
          break;
        case PowerForm::kReciprocal:
          value.binary = BinaryCode::kDivide;
          value.b = value.a;
          value.a = Push(builder, {.op = RegionOp::kLiteral, .literal = 1});
          break;
        case PowerForm::kFunction:
          value.skips_a = Skips(id, 0);
          value.skips_b = Skips(id, 1);
          break;
      }
    } else {
      value.op = RegionOp::kUnary;
      value.unary = IsSingle(id) ? InSingles(*FindUnaryCode(n.op)) : *FindUnaryCode(n.op);
    }
    if (IsSingle(id) && !KeepsSingles(value)) {
      const int exact = Push(builder, value);
      value = {.op = RegionOp::kUnary, .unary = UnaryCode::kRoundToSingle, .a = exact};
    }
    value.drops_negative_zero = n.info.format == Format::kSparse;
    builder->values[id] = Push(builder, value);
    return OkStatus();
  }

  void AddOutputs(RegionBuilder* builder, NodeId id) {
    bool is_read = IsDefault(id);  // By other steps.
    for (NodeId consumer : consumers(id)) {
      if (IsRows(consumer)) {
        if (!builder->step.flat && FoldsRows(node(consumer))) {
          SinkRowFold(builder, id, consumer);
          continue;
        }
        if (!builder->values.contains(consumer) || PatternOf(consumer, 0) == Pattern::kColumn) is_read = true;
        if (builder->values.contains(consumer)) {
          for (size_t i = 0; i < node(consumer).inputs.size(); ++i)
            if (node(consumer).inputs[i] == id && PatternOf(consumer, i) != Pattern::kCells &&
                builder->step.columns > 1)
              is_read = true;
        }
        continue;
      }
      for (size_t r = 0; r < program_.roots.size(); ++r) {
        const TileRoot& root = program_.roots[r];
        if (root.node != consumer) continue;
        if (CanSink(*builder, root) && !IsPattern(id)) {
          builder->region.outputs.push_back({.node = builder->values[id],
                                             .sink = builder->step.flat || root.kind == TileRoot::Kind::kFull
                                                         ? Sink::kFoldFlat
                                                         : Sink::kFoldColumns,
                                             .fold = FoldOf(root.aggregate),
                                             .eights = builder->EightsOf(root)});
          builder->step.outputs.push_back({});
          builder->step.output_roots.push_back(static_cast<int>(r));
          builder->step.output_folds.push_back(kNoNode);
          sunk_.insert(static_cast<int>(r));
        } else {
          is_read = true;
        }
      }
    }
    if (!is_read && RowRoot(id) < 0) return;
    const TileRef place = NewPlace(id, !is_read);
    PlaceOf(id) = place;
    builder->region.outputs.push_back(
        {.node = builder->values[id],
         .sink = Sink::kStore,
         .single = place.kind == Kind::kResult && program_.single && !builder->step.by_entries});
    builder->step.outputs.push_back(place);
    builder->step.output_roots.push_back(-1);
    builder->step.output_folds.push_back(kNoNode);
  }

  void SinkRowFold(RegionBuilder* builder, NodeId id, NodeId fold) {
    const AggregateKind kind = FindAggregate(node(fold).op)->kind;
    builder->region.outputs.push_back({.node = builder->values[id],
                                       .sink = Sink::kFoldRows,
                                       .fold = FoldOf(kind),
                                       .is_mean = kind == AggregateKind::kMean});
    const TileRef place = NewPlace(fold);
    PlaceOf(fold) = place;
    builder->step.outputs.push_back(place);
    builder->step.output_roots.push_back(-1);
    builder->step.output_folds.push_back(AddsUp(kind) ? fold : kNoNode);
    builder->row_folds.push_back(place);
    sunk_row_folds_.insert(fold);
  }

  bool CanSink(const RegionBuilder& builder, const TileRoot& root) const {
    const auto differs = [&](const RegionOutput& output) {
      return output.sink == Sink::kFoldFlat && output.eights != builder.EightsOf(root);
    };
    if (std::any_of(builder.region.outputs.begin(), builder.region.outputs.end(), differs)) return false;
    if (root.kind == TileRoot::Kind::kFull) return builder.step.flat || program_.cut_columns > 0;
    if (root.kind != TileRoot::Kind::kColumns) return false;
    // Sums of up to eight columns are sums of every n-th eight of the flat cells; the loop exists n times.
    if (root.n <= 8)
      return builder.step.flat && static_cast<int64_t>(builder.region.nodes.size()) * root.n <= kMostUnrolled;
    return !builder.step.flat;
  }

  Status MakeStep(NodeId id) {
    if (sunk_row_folds_.contains(id)) return OkStatus();
    const Node& n = node(id);
    if (n.Is("index")) {
      int64_t first = 0;
      if (n.inputs.size() > 3 && n.inputs[3] != kNoNode)
        first = node(n.inputs[3]).FindAttribute("value")->AsInteger() - 1;
      TileRef place = DensePlace(n.inputs[0]);
      place.column += first;
      PlaceOf(id) = place;
      return OkStatus();
    }
    Step step{.columns = Columns(id)};
    if (n.Is("cbind")) {
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
    if (n.Is("sampledProduct")) {
      step.kind = Step::Kind::kSample;
      step.index = InputPosition(node(n.inputs[1]));
      step.right = InputPosition(node(n.inputs[2]));
    } else if (n.Is("%*%")) {
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
      if (IsPattern(operand) && FoldsRows(n) && !(program_.has_defaults && IsCsrInput(operand))) {
        step.from = PlaceOf(operand);
        step.elsewhere = DefaultPlace(operand);
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
    if (n.Is("t%*%")) {
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
      const bool sparse = node(n.inputs[0]).info.format == Format::kSparse || !HasDefault(n.inputs[0]);
      const bool entries = IsPattern(n.inputs[0]) && sparse && FoldOf(root.aggregate) == simd::Fold::kAdd;
      if (entries) step.elsewhere = DefaultPlace(n.inputs[0]);
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
  std::vector<int> stage_;
  int last_stage_ = 0;
  size_t steps_of_stages_ = 0;  // Steps of the stages that have ended.
  std::vector<int64_t> widths_;
  std::map<std::pair<NodeId, int64_t>, TileRef> expanded_;
  std::set<int> sunk_;
  std::set<NodeId> sunk_row_folds_;
};

}  // namespace

Result<TileProgram> Lower(FusedOperator fused, const Processor& processor) {
  // Along entries a row is whole, however long it is.
  const NodeId driver = DriverOf(fused);
  if (driver != kNoNode && fused.body[driver].info.format == Format::kSparse &&
      fused.body[driver].info.shape.columns > kColumnChunk) {
    Result<TileProgram> program = Lowering(fused, processor, LongRowFolds::kWhole).Run();
    if (program.ok()) return program;
  }
  return Lowering(std::move(fused), processor, LongRowFolds::kInChunks).Run();
}

}  // namespace heddle::ops
