// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/lower_regions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/aggregate/wide_sums.h"
#include "ops/base/broadcast.h"
#include "ops/base/operator.h"
#include "ops/fused/program/region_walk.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {

bool RegionMaker::WalksRows(const std::vector<NodeId>& members, int64_t columns) {
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

Status RegionMaker::MakeRegion(int stage, int64_t columns, bool pattern) {
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

int RegionMaker::Push(RegionBuilder* builder, RegionNode value) {
  builder->region.nodes.push_back(value);
  return static_cast<int>(builder->region.nodes.size()) - 1;
}

int RegionMaker::PushInput(RegionBuilder* builder, Access access, RegionOperand operand) {
  builder->step.operands.push_back(operand);
  return Push(builder, {.op = RegionOp::kInput,
                        .access = access,
                        .input = static_cast<int>(builder->step.operands.size()) - 1});
}

int RegionMaker::PushCells(RegionBuilder* builder, Access access, NodeId input, bool contiguous) {
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

Result<int> RegionMaker::Operand(RegionBuilder* builder, NodeId id, size_t i) {
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
        read = PushInput(builder, Access::kScalar, {.from = RegionOperand::From::kWhole, .index = position});
      } else if (!builder->step.flat) {
        read =
            PushInput(builder, Access::kPerColumn, {.from = RegionOperand::From::kWhole, .index = position});
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

Status RegionMaker::AddMember(RegionBuilder* builder, NodeId id) {
  const Node& n = node(id);
  RegionNode value;
  const bool binary = n.inputs.size() == 2 && n.inputs[1] != kNoNode;
  HEDDLE_ASSIGN_OR_RETURN(value.a, Operand(builder, id, 0));
  if (HasRole(n, Role::kChoose)) {
    value.op = RegionOp::kSelect;
    HEDDLE_ASSIGN_OR_RETURN(value.b, Operand(builder, id, 1));
    HEDDLE_ASSIGN_OR_RETURN(value.c, Operand(builder, id, 2));
  } else if (HasRole(n, Role::kReplace)) {  // x == pattern ? replacement : x
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

void RegionMaker::AddOutputs(RegionBuilder* builder, NodeId id) {
  bool is_read = IsBackground(id);  // By other steps.
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

void RegionMaker::SinkRowFold(RegionBuilder* builder, NodeId id, NodeId fold) {
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

bool RegionMaker::CanSink(const RegionBuilder& builder, const TileRoot& root) const {
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

}  // namespace heddle::ops
