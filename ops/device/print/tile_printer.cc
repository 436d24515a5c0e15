// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/tile_printer.h"

#include <algorithm>
#include <set>

#include "core/values/panels.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/prelude.h"
#include "ops/fused/program/body_view.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {

Result<PrintedTiles> TilePrinter::Print() {
  HEDDLE_RETURN_IF_ERROR(Check());
  FindArguments();
  printed_.group_size = limits_.group_size;
  if (IsCut()) {
    PrintLongRows();
    return std::move(printed_);
  }
  if (IsDirect()) {
    PrintDirect();
    return std::move(printed_);
  }
  expanded_.clear();
  ChooseRows();
  PrintHead();
  PrintTasks();
  printed_.passes[0].source = std::string(printed::Prelude()) + text_;
  return std::move(printed_);
}

Status TilePrinter::Check() const {
  if (!IsCut() && program_.chunks > 1) HEDDLE_RETURN_IF_ERROR(CheckLongLeaves());
  for (const TileRoot& root : program_.roots)
    if (IsCut() && root.n != program_.cut_columns)
      return Unimplemented("on a device: a reduction beside rows longer than a column chunk");
  if (program_.by_pattern) HEDDLE_RETURN_IF_ERROR(CheckEntries());
  for (const Step& step : program_.steps) HEDDLE_RETURN_IF_ERROR(CheckStep(step));
  return OkStatus();
}

// Full aggregates of CSR rows longer than a column chunk: tiles are single rows.
Status TilePrinter::CheckLongLeaves() const {
  for (const TileRoot& root : program_.roots)
    if (root.n <= kColumnChunk && root.kind != TileRoot::Kind::kVectors &&
        root.kind != TileRoot::Kind::kProduct)
      return Unimplemented("on a device: a reduction beside rows longer than a column chunk");
  return OkStatus();
}

// Rows longer than a column chunk are never written out.
Status TilePrinter::CheckEntries() const {
  if (InfoOfInput(program_.fused.driver).shape.columns <= kColumnChunk) return OkStatus();
  for (const Step& step : program_.steps)
    if (SpreadsRows(step) || step.kind == Step::Kind::kSpread)
      return Unimplemented("on a device: all cells of CSR rows longer than a column chunk");
  return OkStatus();
}

Status TilePrinter::CheckStep(const Step& step) const {
  switch (step.kind) {
    case Step::Kind::kFoldRows:
      if (FoldsDensified(step) && InfoOfInput(step.index).shape.columns > kColumnChunk)
        return Unimplemented("on a device: rows longer than a column chunk");
      break;
    case Step::Kind::kMultiply:
      // Of entries, lanes are joined chunk by chunk.
      if (step.columns <= kFewColumns && InfoOfInput(step.right).shape.rows > kColumnChunk &&
          step.index < 0 && !IsByEntry(step.from))
        return Unimplemented("on a device: rows longer than a column chunk");
      break;
    default: break;
  }
  return OkStatus();
}

const ValueInfo& TilePrinter::InfoOfInput(int input) const {
  return program_.fused.body[program_.roles.variables[static_cast<size_t>(input)]].info;
}

bool TilePrinter::IsSingleInput(int input) const {
  return InfoOfInput(input).element_type == ElementType::kFloat32;
}

void TilePrinter::FindArguments() {
  for (size_t i = 0; i < program_.roles.inputs.size(); ++i)
    if (program_.roles.variables[i] != kNoNode && program_.roles.inputs[i] != BodyRole::kScalar &&
        program_.roles.inputs[i] != BodyRole::kUnused) {
      printed_.inputs.push_back(static_cast<int>(i));
      printed_.sparse.push_back(program_.roles.inputs[i] == BodyRole::kRows &&
                                InfoOfInput(static_cast<int>(i)).format == Format::kSparse);
    }
  std::set<NodeId> scalars;
  for (const Step& step : program_.steps)
    for (const RegionOperand& operand : step.operands)
      if (operand.from == RegionOperand::From::kScalar) scalars.insert(operand.index);
  printed_.scalars.assign(scalars.begin(), scalars.end());
  std::set<int> checked;
  for (const Step& step : program_.steps)
    if (step.multiplies_zeros) checked.insert(step.right);
  printed_.checked.assign(checked.begin(), checked.end());
  FindScalarsInMemory();
  for (size_t r = 0; r < program_.fused.roots.size(); ++r) {
    const BodyRole role = program_.roles.nodes[static_cast<size_t>(program_.fused.roots[r])];
    if (role == BodyRole::kRows || role == BodyRole::kFold) printed_.results.push_back(static_cast<int>(r));
  }
}

void TilePrinter::FindScalarsInMemory() {
  const Graph& body = program_.fused.body;
  std::vector<bool> in_memory(body.nodes.size(), false);
  for (NodeId id = 0; id < body.size(); ++id) {
    if (program_.roles.nodes[static_cast<size_t>(id)] != BodyRole::kScalar) continue;
    bool is_there = false;
    if (body[id].Is("variable")) {
      const auto input = static_cast<size_t>(BodyView::InputPosition(body[id]));
      is_there = input < limits_.scalars_in_memory.size() && limits_.scalars_in_memory[input];
    }
    for (const NodeId input : body[id].inputs)
      is_there |= input != kNoNode && in_memory[static_cast<size_t>(input)];
    in_memory[static_cast<size_t>(id)] = is_there;
    if (is_there) printed_.scalars_in_memory.push_back(id);
  }
}

void TilePrinter::ChooseRows() {
  buffer_columns_ = program_.buffers;
  for (const Step& step : program_.steps)
    for (size_t o = 0; step.kind == Step::Kind::kRegion && o < step.outputs.size(); ++o)
      if (!step.by_entries && FoldsOutput(step, o)) {
        folded_buffers_[{&step, o}] = static_cast<int>(buffer_columns_.size());
        buffer_columns_.push_back(step.columns);
      }
  for (const Step& step : program_.steps)
    if (FoldsDensified(step) || SpreadsRows(step)) {
      folded_buffers_[{&step, 0}] = static_cast<int>(buffer_columns_.size());
      buffer_columns_.push_back(
          InfoOfInput(FoldsDensified(step) ? step.index : program_.fused.driver).shape.columns);
    }
  int64_t columns = 0;
  for (const int64_t of_buffer : buffer_columns_) columns += of_buffer;
  printed_.buffer_columns = columns;
  int64_t least_height = 0, most_height = 0;
  for (const TileRoot& root : program_.roots) {
    least_height = least_height == 0 ? root.height : std::min(least_height, root.height);
    most_height = std::max(most_height, root.height);
  }
  const int64_t room = limits_.local_bytes / 8 - limits_.group_size;
  int64_t most_rows = kMostTileRows, widest = 1;
  for (const Step& step : program_.steps) widest = std::max(widest, step.columns);
  if (of_cells_)
    most_rows = is_alone_ ? kMostCellsAlone : kMostCells;
  else if (is_alone_)
    most_rows = std::clamp<int64_t>(kMostCellsAlone / widest, kMostTileRows, kMostRowsAlone);
  else if (std::max(widest, InfoOfInput(program_.fused.driver).shape.columns) <= kShortRow)
    most_rows = std::max(most_rows, 2 * limits_.group_size);  // Two of them for each work-item.
  for (const TileRoot& root : program_.roots)
    if (AddsSingles(program_, root)) most_rows = kSingleBlock;
  const int64_t fitting = columns == 0 ? most_rows : room / columns;
  tile_rows_ = FloorPowerOfTwo(std::clamp<int64_t>(fitting, kLanes, most_rows));
  if (least_height > 0) tile_rows_ = std::min(tile_rows_, least_height);
  is_local_ = tile_rows_ * columns <= room;
  printed_.scratch_doubles = is_local_ ? 0 : tile_rows_ * columns;
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (HasOpenChains(r)) {
      chain_places_[r] = printed_.scratch_doubles;
      printed_.scratch_doubles += program_.roots[r].width;
    } else if (JoinedRows(program_, program_.roots[r]) > 1) {
      leaf_places_[r] = printed_.scratch_doubles;
      printed_.scratch_doubles += program_.roots[r].width * ChunksOfRow(program_.roots[r]);
      most_height = std::max(most_height, JoinedRows(program_, program_.roots[r]));
    }
  printed_.passes = {{.task_rows = most_height > 0 ? most_height : tile_rows_}};
}

bool TilePrinter::AddsEntries(size_t r) const {
  return std::any_of(program_.steps.begin(), program_.steps.end(), [&](const Step& step) {
    return step.kind == Step::Kind::kRoot && static_cast<size_t>(step.index) == r &&
           (step.right >= 0 || IsByEntry(step.from));
  });
}

bool TilePrinter::HasOpenChains(size_t r) const {
  return AddsSingles(program_, program_.roots[r]) && (tile_rows_ < kSingleBlock || AddsEntries(r));
}

bool TilePrinter::FoldsOutput(const Step& step, size_t o) const {
  return step.output_roots[o] >= 0 ||
         program_.regions[static_cast<size_t>(step.index)].outputs[o].sink == Sink::kFoldRows;
}

TilePrinter::Cells TilePrinter::PlaceOf(const TileRef& ref) const {
  if (IsCut()) return PlaceInCutRows(ref);
  switch (ref.kind) {
    case TileRef::Kind::kInput: {
      const int64_t columns = InfoOfInput(ref.index).shape.columns;
      return {fmt::format("(in{} + first{} + row * {} + {})", ref.index, ref.index, columns, ref.column),
              columns, IsSingleInput(ref.index)};
    }
    case TileRef::Kind::kBuffer:
      if (const auto column = expanded_.find(ref.index); column != expanded_.end())
        return PlaceOf(column->second);
      return {fmt::format("(b{} + {})", ref.index, ref.column),
              buffer_columns_[static_cast<size_t>(ref.index)]};
    case TileRef::Kind::kResult: {
      const ValueInfo& info = program_.fused.body[program_.fused.roots[static_cast<size_t>(ref.index)]].info;
      return {fmt::format("(out{} + row * {} + {})", ref.index, info.shape.columns, ref.column),
              info.shape.columns, program_.single};
    }
    default: break;
  }
  return {};
}

std::string TilePrinter::TypeName(bool single) { return single ? "float" : "double"; }

// In the order of DeviceTiles' arguments.
std::vector<std::string> TilePrinter::Parameters() const {
  std::vector<std::string> parameters = {"const long rows", "const long first_task", "const long end_task"};
  for (size_t i = 0; i < printed_.inputs.size(); ++i) {
    const int input = printed_.inputs[i];
    const std::string type = TypeName(IsSingleInput(input));
    if (printed_.sparse[i]) {
      parameters.push_back(fmt::format("__global const {}* restrict values{}", type, input));
      parameters.push_back(fmt::format("__global const int* restrict columns{}", input));
      parameters.push_back(fmt::format("__global const long* restrict offsets{}", input));
      continue;
    }
    parameters.push_back(fmt::format("__global const {}* restrict in{}", type, input));
    parameters.push_back(fmt::format("const long first{}", input));
  }
  for (const NodeId scalar : printed_.scalars) {
    if (!IsInMemory(scalar)) {
      parameters.push_back(fmt::format("const double s{}", scalar));
      continue;
    }
    parameters.push_back(fmt::format("__global const double* restrict cell{}", scalar));
    parameters.push_back(fmt::format("const long place{}", scalar));
  }
  for (const int result : printed_.results)
    parameters.push_back(fmt::format("__global {}* out{}", TypeName(program_.single), result));
  for (size_t r = 0; r < program_.roots.size(); ++r)
    parameters.push_back(fmt::format("__global double* restrict root{}", r));
  parameters.emplace_back("__global int* flags");
  if (printed_.scratch_doubles > 0) parameters.emplace_back("__global double* scratch");
  for (int p = 0; p < program_.patterns; ++p)
    parameters.push_back(fmt::format("__global double* pattern{}", p));
  for (int i = 0; i < program_.saved_arrays; ++i)
    parameters.push_back(fmt::format("__global double* saved{}", i));
  for (const int input : printed_.checked)
    parameters.push_back(fmt::format("__global const int* infinite{}", input));
  return parameters;
}

void TilePrinter::PrintHead() {
  printed_.patterns = program_.patterns;
  const std::vector<std::string> parameters = Parameters();
  text_ += fmt::format("__kernel __attribute__((reqd_work_group_size({}, 1, 1){}))\nvoid {}(",
                       limits_.group_size, is_alone_ ? ", min_vector_width(512)" : "", printed_.name);
  for (size_t i = 0; i < parameters.size(); ++i) text_ += (i == 0 ? "" : ",\n    ") + parameters[i];
  text_ += ") {\n";
  for (const NodeId scalar : printed_.scalars)
    if (IsInMemory(scalar)) text_ += fmt::format("  const double s{0} = cell{0}[place{0}];\n", scalar);
  if (!is_alone_) {
    text_ += "  const int item = (int)get_local_id(0);\n";
    text_ += fmt::format("  __local double lanes[{}];\n", limits_.group_size);
    if (std::any_of(program_.steps.begin(), program_.steps.end(), FindsPlaces))
      text_ += fmt::format("  __local int places[{}];\n", limits_.group_size);
  }
  int64_t offset = 0;
  for (size_t b = 0; b < buffer_columns_.size(); ++b) {
    const int64_t cells = tile_rows_ * buffer_columns_[b];
    text_ += is_local_
                 ? fmt::format("  __local double b{}[{}];\n", b, std::max<int64_t>(cells, 1))
                 : fmt::format("  __global double* const b{} = scratch + (long)get_group_id(0) * {} + {};\n",
                               b, printed_.scratch_doubles, offset);
    offset += cells;
  }
  for (const auto& [r, place] : chain_places_)
    text_ += fmt::format("  __global double* const chains{} = scratch + (long)get_group_id(0) * {} + {};\n",
                         r, printed_.scratch_doubles, place);
  for (const auto& [r, place] : leaf_places_)
    text_ += fmt::format("  __global double* const leaves{} = scratch + (long)get_group_id(0) * {} + {};\n",
                         r, printed_.scratch_doubles, place);
}

void TilePrinter::Line(int depth, std::string_view line) {
  text_ += std::string(static_cast<size_t>(2 * depth), ' ') + std::string(line) + "\n";
}

void TilePrinter::Barrier() {
  if (!is_alone_) Line(3, "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
}

void TilePrinter::PrintLoopOverTasks() {
  Line(1, "for (long task = first_task + (long)get_group_id(0); task < end_task;");
  Line(1, "     task += (long)get_num_groups(0)) {");
}

void TilePrinter::PrintTasks() {
  // Each block of rows leaves zeros there.
  for (const auto& [r, place] : chain_places_)
    if (AddsEntries(r)) {
      Line(1, EachPlace(program_.roots[r].width));
      Line(2, fmt::format("chains{}[p] = 0.0;", r));
      Line(1, kEndOfEach);
      Barrier();
    }
  PrintLoopOverTasks();
  const int64_t task_rows = printed_.passes[0].task_rows;
  Line(2, fmt::format("const long task_end = min(rows, (task + 1) * {});", task_rows));
  for (const auto& [r, place] : leaf_places_) BeginJoinedLeaves(r);
  Line(2, fmt::format("for (long row = task * {}; row < task_end; row += {}) {{", task_rows, tile_rows_));
  Line(3, fmt::format("const int n = (int)min((long){}, task_end - row);", tile_rows_));
  for (size_t r = 0; r < program_.roots.size(); ++r)
    Line(3, leaf_places_.contains(r)
                ? fmt::format("__global double* const sum{0} = leaves{0};", r)
                : fmt::format("__global double* const sum{0} = root{0} + row / {1} * {2};", r,
                              program_.roots[r].height,
                              program_.roots[r].width * ChunksOfRow(program_.roots[r])));
  bool adds_entries = false;
  for (size_t r = 0; r < program_.roots.size(); ++r) {
    PrintStartOfLeaf(r);
    adds_entries |= AddsEntries(r);
  }
  // Whoever has an entry adds to the place that its column names.
  if (adds_entries) Barrier();
  for (const Step& step : program_.steps) PrintStep(step);
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (program_.roots[r].kind == TileRoot::Kind::kMoments) PrintMoments(r);
  for (const auto& [r, place] : leaf_places_) PrintJoinedLeaves(r);
  Line(2, "}");
  Line(1, "}");
  text_ += "}\n";
}

std::string TilePrinter::EachTogether(std::string_view item, const std::string& count) const {
  if (is_alone_) return fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", item, count);
  return fmt::format("for (int from = 0; from < {}; from += {}) {{ const int {} = from + item;", count,
                     limits_.group_size, item);
}

std::string TilePrinter::Each(std::string_view item, const std::string& count) const {
  return EachTogether(item, count) + (is_alone_ ? " {" : fmt::format(" if ({} < {}) {{", item, count));
}

std::string TilePrinter::EachPlace(int64_t count) const { return Each("p", std::to_string(count)); }

void TilePrinter::PrintStartOfLeaf(size_t r) {
  const TileRoot& root = program_.roots[r];
  if (root.kind == TileRoot::Kind::kMoments) return;
  const bool adds = root.kind == TileRoot::Kind::kLanes || root.kind == TileRoot::Kind::kVectors ||
                    root.kind == TileRoot::Kind::kProduct;
  Line(3, fmt::format("if (row % {} == 0) {{", root.height));
  Line(4, EachPlace(root.width * ChunksOfRow(root)));
  Line(5, fmt::format("{} = {};", PayloadOf(r),
                      adds ? std::string("0.0") : printed::StartOf(FoldOf(root.aggregate))));
  Line(4, kEndOfEach);
  Line(3, "}");
}

void TilePrinter::PrintStep(const Step& step) {
  if (IsAtEntries(step.to) && step.kind != Step::Kind::kRegion) {
    PrintStepOfEntries(step);
    return Barrier();
  }
  if (SpreadsRows(step)) {
    PrintSpreadStep(step);
    return Barrier();
  }
  switch (step.kind) {
    case Step::Kind::kRegion: step.by_entries ? PrintRegionOfEntries(step) : PrintRegion(step); break;
    case Step::Kind::kWiden: {
      const Cells from = PlaceOf({TileRef::Kind::kInput, step.index, 0});
      PrintCopy(step.columns, from, PlaceOf(step.to));
      break;
    }
    case Step::Kind::kRound: {
      const Cells to = PlaceOf(step.to);
      PrintCells(step.columns, [&](CellIndex& cell) {
        Line(5, fmt::format("{} = convert_float_rte({});", to.At(cell), to.Load(cell)));
      });
      break;
    }
    case Step::Kind::kNarrow:
    case Step::Kind::kCopy:
      if (step.to.kind == TileRef::Kind::kBackground)
        PrintBackgroundOfResult(step);
      else
        PrintCopy(step.columns, PlaceOf(step.from), PlaceOf(step.to));
      break;
    case Step::Kind::kExpand: {
      const Cells from = PlaceOf(step.from), to = PlaceOf(step.to);
      PrintCells(step.columns, [&](CellIndex& cell) {
        cell.needs_row = true;
        Line(5, fmt::format("{} = {};", to.At(cell), from.Load("i", "0")));
      });
      break;
    }
    case Step::Kind::kDensify:
      IsCut() ? PrintDensifyColumns(step.index, PlaceOf(step.to))
              : PrintDensify(step.index, PlaceOf(step.to));
      break;
    case Step::Kind::kIntersect: PrintIntersect(step); break;
    case Step::Kind::kSpread: PrintSpread(step.from, step.background, PlaceOf(step.to)); break;
    case Step::Kind::kFoldRows: PrintFoldRowsStep(step); break;
    case Step::Kind::kMultiply: PrintMultiply(step); break;
    case Step::Kind::kRoot: PrintRoot(step); break;
    default: break;
  }
  Barrier();
}

void TilePrinter::PrintFoldRowsStep(const Step& step) {
  if ((step.index >= 0 && !FoldsDensified(step)) || IsByEntry(step.from)) return PrintFoldEntries(step);
  Cells from = PlaceOf(step.from);
  int64_t columns = step.columns;
  if (step.index >= 0) {
    from = FoldedBuffer(step, 0);
    columns = from.stride;
    PrintDensify(step.index, from);
    Barrier();
  }
  if (FindsPlaces(step)) return PrintPlaceOfExtreme(step, from);
  if (IsSpread(step.aggregate)) return PrintSpreadOfRows(step, from);
  PrintFoldRows(from, columns, PlaceOf(step.to), FoldOf(step.aggregate),
                step.aggregate == AggregateKind::kMean, AddsUp(step.aggregate) && !program_.single);
}

void TilePrinter::PrintCopy(int64_t columns, const Cells& from, const Cells& to) {
  PrintCells(columns, [&](CellIndex& cell) {
    Line(5, fmt::format("{} = {};", to.At(cell), to.Stored(from.Load(cell))));
  });
}

}  // namespace heddle::ops
