// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/values/panels.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/prelude.h"
#include "ops/device/print/tile_printer.h"

// Rows longer than a column chunk (ops/fused/lower/long_rows.h). A tile has some columns of a few rows, and
// each phase is a launch of its own, since the aggregate of a row is complete only when all its chunks are
// done. A task of a phase has a chunk of some rows, whose payloads it alone adds to; where columns are summed
// it goes down the rows of a leaf. A later launch joins the chunks of its rows before it reads them: eight
// numbers of each chunk, by the tree of docs/numerics.md, section 2.
namespace heddle::ops {
namespace {

// Columns of a row, or cells of several rows, that a tile has at most.
constexpr int64_t kTileCells = 4096;
// Rows of a work-group's tile: their eight lanes each keep 128 work-items busy.
constexpr int64_t kMostRowsTogether = 16;
// Tasks that keep a device busy; for fewer, tiles have fewer rows.
constexpr int64_t kEnoughTasks = 512;
// Columns of a task that adds to no payload of a chunk.
constexpr int64_t kSpanColumns = 8192;

constexpr std::string_view kFirstEntry = R"(
// The first of entries [begin, end) in a column that is not below `column`.
static inline long heddle_first_entry(__global const int* columns, long begin, long end, long column) {
  while (begin < end) {
    const long middle = begin + (end - begin) / 2;
    if (columns[middle] < column)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}
)";

bool SumsColumns(const TileRoot& root) { return root.kind == TileRoot::Kind::kColumns; }

// Nodes of a tree over so many chunks that wait for others, and the one that is being joined.
int DepthOf(int64_t chunks) {
  int depth = 2;
  while ((int64_t{1} << (depth - 2)) < chunks) ++depth;
  return depth;
}

int64_t ChunksOf(const TileProgram& program) { return CeilDivide(program.cut_columns, kColumnChunk); }

bool IsMoments(const TileRoot& root) { return root.kind == TileRoot::Kind::kMoments; }

// The aggregate of a row as its result is stored.
std::string RoundedFold(const TileProgram& program, const TileRoot& root, const std::string& value) {
  const bool single = program.fused.body[root.node].info.element_type == ElementType::kFloat32;
  return single ? fmt::format("convert_float_rte({})", value) : value;
}

// Leaves of each of its rows.
int64_t LeavesOfRow(const TileProgram& program, const TileRoot& root) {
  const bool has_chunks = program.chunks > 1 && (root.kind == TileRoot::Kind::kFull || root.of_rows);
  return has_chunks ? CeilDivide(root.n, kColumnChunk) : 1;
}

}  // namespace

int64_t JoinedRows(const TileProgram& program, const TileRoot& root) {
  constexpr int64_t kMostNodes = 1 << 16;
  const int64_t of_row = LeavesOfRow(program, root);
  int64_t rows = 1;
  if (program.cut_columns > 0 || of_row == 1) return rows;
  while (rows < program.roles.rows && CeilDivide(program.roles.rows, rows) * of_row > kMostNodes) rows *= 2;
  return rows;
}

int64_t LeavesOf(const TileProgram& program, const TileRoot& root, int64_t rows) {
  return CeilDivide(CeilDivide(rows, root.height) * LeavesOfRow(program, root), JoinedRows(program, root));
}

void TilePrinter::ChooseColumns() {
  buffer_columns_ = program_.buffers;
  for (const Step& step : program_.steps)
    for (size_t o = 0; step.kind == Step::Kind::kRegion && o < step.outputs.size(); ++o)
      if (FoldsOutput(step, o)) {
        folded_buffers_[{&step, o}] = static_cast<int>(buffer_columns_.size());
        buffer_columns_.push_back(step.columns);
      }
  for (const int result : printed_.results) {
    const ValueInfo& info = program_.fused.body[program_.fused.roots[static_cast<size_t>(result)]].info;
    if (info.shape.columns > 1) continue;
    vector_buffers_[result] = static_cast<int>(buffer_columns_.size());
    buffer_columns_.push_back(1);
  }
  int64_t least_height = kMostRowsTogether;
  bool goes_down = false;
  for (const TileRoot& root : program_.roots)
    if (SumsColumns(root)) {
      goes_down = true;
      least_height = std::min(least_height, root.height);
    }
  if (is_alone_) {
    tile_rows_ = goes_down ? std::min(kRowsAtOnce, least_height) : 1;
  } else {
    tile_rows_ = std::min({kMostRowsTogether, least_height, FloorPowerOfTwo(program_.roles.rows)});
    while (!goes_down && tile_rows_ > 1 &&
           CeilDivide(program_.roles.rows, tile_rows_) * ChunksOf(program_) < kEnoughTasks)
      tile_rows_ /= 2;
  }
  const int64_t wide = std::max<int64_t>(
      1, std::count_if(buffer_columns_.begin(), buffer_columns_.end(), [](int64_t n) { return n > 1; }));
  const int64_t vectors = static_cast<int64_t>(buffer_columns_.size());
  const int64_t room = limits_.local_bytes / 8 - 2 * limits_.group_size - vectors * tile_rows_;
  tile_columns_ = FloorPowerOfTwo(std::clamp<int64_t>(room / wide, 8, kTileCells));
  tile_columns_ = std::max<int64_t>(tile_columns_ / tile_rows_, 8);
  int64_t cells = 0;
  for (int64_t& columns : buffer_columns_) {
    if (columns > 1) columns = tile_columns_;
    cells += columns * tile_rows_;
  }
  is_local_ = cells <= room;
  printed_.scratch_doubles = is_local_ ? 0 : cells;
}

TilePrinter::Cells TilePrinter::PlaceInCutRows(const TileRef& ref) const {
  // `begin` is the first column of the tile.
  const auto place = [](const std::string& base, int64_t columns, bool single) {
    if (columns == 1) return Cells{fmt::format("({} + row)", base), 1, single};
    return Cells{fmt::format("({} + row * {} + begin)", base, columns), columns, single};
  };
  switch (ref.kind) {
    case TileRef::Kind::kInput:
      return place(fmt::format("in{0} + first{0}", ref.index), InfoOfInput(ref.index).shape.columns,
                   IsSingleInput(ref.index));
    case TileRef::Kind::kBuffer:
      return {fmt::format("b{}", ref.index), buffer_columns_[static_cast<size_t>(ref.index)]};
    case TileRef::Kind::kResult: {
      // All tiles of a row compute its vectors; one of them writes them.
      if (const auto buffer = vector_buffers_.find(ref.index); buffer != vector_buffers_.end())
        return {fmt::format("b{}", buffer->second), 1, program_.single};
      return place(fmt::format("out{}", ref.index), program_.cut_columns, program_.single);
    }
    case TileRef::Kind::kSaved: return place(fmt::format("saved{}", ref.index), program_.cut_columns, false);
    default: break;
  }
  return {};
}

void TilePrinter::PrintLongRows() {
  ChooseColumns();
  for (int phase = 0; phase < program_.phases; ++phase) PrintPhase(phase);
  const bool closes = std::any_of(program_.roots.begin(), program_.roots.end(), [](const TileRoot& root) {
    return root.of_rows && root.result >= 0;
  });
  if (closes) PrintClosingPass();
}

void TilePrinter::BeginTasks(const PrintedPass& pass) {
  PrintLoopOverTasks();
  Line(2, fmt::format("const long part = task % {};", pass.row_tasks));
  Line(2, fmt::format("const long task_begin = task / {} * {};", pass.row_tasks, pass.task_rows));
  Line(2, fmt::format("const long task_end = min(rows, task_begin + {});", pass.task_rows));
  Line(2, fmt::format("for (long row = task_begin; row < task_end; row += {}) {{", tile_rows_));
  Line(3, fmt::format("const int n = (int)min((long){}, task_end - row);", tile_rows_));
}

bool TilePrinter::RunsIn(size_t step, int phase) const {
  return program_.runs.empty() || program_.runs[static_cast<size_t>(phase)][step];
}

void TilePrinter::PrintPhase(int phase) {
  text_.clear();
  bool has_full = false, has_chunks = false, has_moments = false;
  PrintedPass pass{.task_rows = tile_rows_};
  for (size_t s = 0; s < program_.steps.size(); ++s)
    has_full |= RunsIn(s, phase) && program_.steps[s].columns > 1;
  for (const TileRoot& root : program_.roots) {
    if (root.phase != phase) continue;
    if (SumsColumns(root))
      pass.task_rows = std::max(pass.task_rows, root.height);
    else
      has_chunks = true;
    has_moments |= IsMoments(root);
  }
  // Steps on vectors alone are one tile of a row.
  const bool has_wide = has_full || has_moments;
  const int64_t span = !has_wide ? 1 : has_chunks ? kColumnChunk : std::max(kSpanColumns, tile_columns_);
  const int64_t end = has_wide ? program_.cut_columns : 1;
  pass.row_tasks = CeilDivide(end, span);
  PrintHead();
  BeginTasks(pass);
  Line(3, fmt::format("const long span = part * {0}, span_end = min((long){1}, span + {0});", span, end));
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (program_.roots[r].phase == phase) PrintStartOfRows(r);
  for (size_t r = 0; r < program_.roots.size(); ++r) {
    const TileRoot& root = program_.roots[r];
    const auto reads = [&](const Step& step) {
      return RunsIn(static_cast<size_t>(&step - program_.steps.data()), phase) && Reads(step, root.value);
    };
    if (root.of_rows && root.phase < phase &&
        std::any_of(program_.steps.begin(), program_.steps.end(), reads))
      PrintJoinedChunks(r, PlaceOf(root.value).At("w", "0"));
  }
  Barrier();
  Line(3, fmt::format("for (long begin = span; begin < {}; begin += {}) {{",
                      has_full ? "span_end" : "span + 1", tile_columns_));
  Line(3, fmt::format("const int width = (int)min((long){}, span_end - begin);", tile_columns_));
  PrintPlacesOfSums(phase);
  for (size_t s = 0; s < program_.steps.size(); ++s)
    if (RunsIn(s, phase)) PrintStep(program_.steps[s]);
  PrintVectorResults(phase);
  Line(3, "}");
  if (has_moments) Line(3, "const int cells = (int)(span_end - span);");
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (program_.roots[r].phase == phase && IsMoments(program_.roots[r])) PrintMomentsOfChunks(r);
  AddPass(std::move(pass));
}

// Where the tile at column `begin` adds to.
void TilePrinter::PrintPlacesOfSums(int phase) {
  for (size_t r = 0; r < program_.roots.size(); ++r) {
    const TileRoot& root = program_.roots[r];
    if (root.phase != phase || IsMoments(root)) continue;
    Line(3, SumsColumns(root)
                ? fmt::format("__global double* const sum{0} = root{0} + row / {1} * {2} + begin;", r,
                              root.height, root.width)
                : fmt::format("__global double* const sum{0} = root{0} + (row * {1} + begin / {2}) * {3};", r,
                              ChunksOf(program_), kColumnChunk, root.width));
  }
}

// Results of one cell a row: each tile of a row makes them, and the first one stores them.
void TilePrinter::PrintVectorResults(int phase) {
  for (const auto& [result, buffer] : vector_buffers_) {
    const TileRef ref{TileRef::Kind::kResult, result, 0};
    const bool is_made = std::any_of(program_.steps.begin(), program_.steps.end(), [&](const Step& step) {
      const bool stores = std::find(step.outputs.begin(), step.outputs.end(), ref) != step.outputs.end();
      return step.phase == phase && (stores || step.to == ref);
    });
    if (!is_made) continue;
    const Cells from = PlaceOf(ref);
    Line(3, Each("i", "(begin == 0 ? n : 0)"));
    Line(4, fmt::format("out{}[row + i] = {};", result, from.Stored(from.Load("i", "0"))));
    Line(3, kEndOfEach);
    Barrier();
  }
}

void TilePrinter::AddPass(PrintedPass pass) {
  Line(2, "}");
  Line(1, "}");
  text_ += "}\n";
  const bool joins_moments = std::any_of(program_.roots.begin(), program_.roots.end(), IsMoments);
  pass.source = std::string(printed::Prelude()) + std::string(kFirstEntry);
  if (joins_moments) pass.source += printed::JoinOfMoments();
  pass.source += text_;
  printed_.passes.push_back(std::move(pass));
}

// Row aggregates that are results.
void TilePrinter::PrintClosingPass() {
  text_.clear();
  PrintedPass pass{.task_rows = tile_rows_};
  PrintHead();
  BeginTasks(pass);
  for (size_t r = 0; r < program_.roots.size(); ++r)
    if (const TileRoot& root = program_.roots[r]; root.of_rows && root.result >= 0)
      PrintJoinedChunks(r, fmt::format("out{}[row + w]", root.result));
  AddPass(std::move(pass));
}

void TilePrinter::PrintStartOfRows(size_t r) {
  if (IsMoments(program_.roots[r])) return;
  const TileRoot& root = program_.roots[r];
  const std::string start = printed::StartOf(FoldOf(root.aggregate));
  if (SumsColumns(root)) {
    Line(3, fmt::format("if (row % {} == 0) {{", root.height));
    // Up to whole eights.
    const std::string end = fmt::format("(span_end == {} ? (long){} : span_end)", root.n, root.width);
    Line(4, Each("p", fmt::format("(int)({} - span)", end)));
    Line(5, fmt::format("root{0}[row / {1} * {2} + span + p] = {3};", r, root.height, root.width, start));
    Line(4, kEndOfEach);
    return Line(3, "}");
  }
  Line(3, Each("p", fmt::format("n * {}", root.width)));
  Line(4, fmt::format("root{0}[((row + p / {1}) * {2} + part) * {1} + p % {1}] = {3};", r, root.width,
                      ChunksOf(program_), start));
  Line(3, kEndOfEach);
}

// The tree over the chunks of each row of a tile, as PayloadStack joins them: in each lane a stack of nodes.
void TilePrinter::PrintJoinedChunks(size_t r, const std::string& to) {
  if (IsMoments(program_.roots[r])) return PrintJoinedMoments(r, to);
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  const int64_t chunks = ChunksOf(program_);
  const int depth = DepthOf(chunks);
  BeginRuns("n");
  const std::string type = is_alone_ ? "double8" : "double";
  const std::string place = fmt::format("root{}[((row + w) * {} + chunk) * {}", r, chunks, root.width);
  Line(4, fmt::format("{} stack[{}];", type, depth));
  Line(4, "int depth = 0;");
  Line(4, fmt::format("for (int chunk = 0; chunk < {}; ++chunk) {{", chunks));
  if (is_alone_)
    Line(5, fmt::format("double8 node = vload8(0, &{}]);", place));
  else
    Line(5, fmt::format("double node = is_mine ? {} + lane] : {};", place, printed::StartOf(fold)));
  const auto join = [&](int at) {
    Line(at, "--depth;");
    Line(at, fmt::format("{} left = stack[depth];", type));
    text_ += FoldStatement(at, fold, "left", "node", is_alone_);
    Line(at, "node = left;");
  };
  Line(5, "for (int done = chunk; done & 1; done >>= 1) {");
  join(6);
  Line(5, "}");
  Line(5, "stack[depth] = node;");
  Line(5, "++depth;");
  Line(4, "}");
  Line(4, "--depth;");
  Line(4, fmt::format("{} node = stack[depth];", type));
  Line(4, "while (depth > 0) {");
  join(5);
  Line(4, "}");
  ShareLanes("node");
  Line(4, is_alone_ ? "{" : "if (lane == 0 && is_mine) {");
  std::string value = PrintJoinedLanes(fold, "node");
  if (root.aggregate == AggregateKind::kMean) value = fmt::format("{} / {}.0", value, root.n);
  Line(5, fmt::format("const double folded = {};", value));
  if (AddsUp(root.aggregate) && !program_.single) {
    printed_.sets_flags = true;
    Line(5, "if (!isfinite(folded)) flags[0] = 1;");
  }
  Line(5, fmt::format("{} = {};", to, RoundedFold(program_, root, "folded")));
  Line(4, "}");
  EndRuns();
}

// rowVars, rowSds: (count, mean, squares) of each chunk, of which a work-item joins those of a row.
void TilePrinter::PrintJoinedMoments(size_t r, const std::string& to) {
  const TileRoot& root = program_.roots[r];
  const int64_t chunks = ChunksOf(program_);
  Line(3, EachTogether("w", "n"));
  Line(4, "const int is_mine = w < n;");
  Line(4, fmt::format("double4 stack[{}], node;", DepthOf(chunks)));
  Line(4, "int depth = 0;");
  Line(4, fmt::format("for (int chunk = 0; chunk < {}; ++chunk) {{", chunks));
  Line(5, fmt::format("__global const double* const moments = root{} + ((row + (is_mine ? w : 0)) * {} + "
                      "chunk) * {};",
                      r, chunks, root.width));
  Line(5, "node = (double4)(moments[0], moments[1], moments[2], 0.0);");
  const std::string join = "{ --depth; node = heddle_moments(stack[depth], node); }";
  Line(5, "for (int done = chunk; done & 1; done >>= 1) " + join);
  Line(5, "stack[depth] = node;");
  Line(5, "++depth;");
  Line(4, "}");
  Line(4, "--depth;");
  Line(4, "node = stack[depth];");
  Line(4, "while (depth > 0) " + join);
  // SpreadOf, of at least two cells.
  const bool is_deviation = root.aggregate == AggregateKind::kDeviation;
  Line(4, fmt::format("const double spread = {}(node.s2 / (node.s0 - 1.0));", is_deviation ? "sqrt" : ""));
  Line(4, "if (is_mine) {");
  if (!program_.single) {
    printed_.sets_flags = true;
    Line(5, "if (!isfinite(spread)) flags[0] = 1;");
  }
  Line(5, fmt::format("{} = {};", to, RoundedFold(program_, root, "spread")));
  Line(4, "}");
  Line(3, "}");
}

// Of the chunk of a task, whose cells its tiles have left in the caches.
void TilePrinter::PrintMomentsOfChunks(size_t r) {
  const TileRoot& root = program_.roots[r];
  const Cells x{fmt::format("(in{0} + first{0} + (row + w) * {1} + span)", root.input, root.n), 1,
                IsSingleInput(root.input)};
  const auto store = [&](int depth) {
    Line(depth, fmt::format("__global double* const moments = root{} + ((row + w) * {} + part) * {};", r,
                            ChunksOf(program_), root.width));
    Line(depth, "moments[0] = (double)cells; moments[1] = mean; moments[2] = squares;");
  };
  if (!is_alone_)
    return PrintDeviations(
        "n", "cells",
        [&](const Loader& load, const std::string& absent) { return load.Column(x, "0", absent); },
        [&] { store(5); });
  Line(3, "for (int w = 0; w < n; ++w) {");
  PrintMomentsAlone(x, store);
  Line(3, "}");
}

void TilePrinter::PrintCutCells(std::string_view statements) {
  if (is_alone_) {
    const std::string loop = "for (int j = 0; j < width; ++j) {";
    Line(3, "for (int i = 0; i < n; ++i) {");
    Line(3, CallsPrelude(statements) ? loop : InVectors(loop));
    Line(4, fmt::format("const int c = i * {} + j;", tile_columns_));
    text_ += statements;
    return Line(3, "} }");
  }
  Line(3, EachTogether("c", tile_rows_ == 1 ? "width" : fmt::format("n * {}", tile_columns_)));
  Line(4, fmt::format("const int i = c / {0}, j = c % {0};", tile_columns_));
  Line(4, "if (i < n && j < width) {");
  text_ += statements;
  Line(3, kEndOfEach);
}

void TilePrinter::PrintDensifyColumns(int input, const Cells& to) {
  if (InfoOfInput(input).shape.columns == 1) {  // All tiles of a row read its one cell.
    Line(3, Each("i", "n"));
    Line(4, fmt::format("const long e = offsets{}[row + i];", input));
    Line(4, fmt::format("{} = e < offsets{}[row + i + 1] ? {} : 0.0;", to.At("i", "0"), input,
                        ValueAt(input)));
    return Line(3, kEndOfEach);
  }
  PrintCells(program_.cut_columns, [&](CellIndex& cell) { Line(5, to.At(cell) + " = 0.0;"); });
  Barrier();
  const auto first = [&](std::string_view column) {
    return fmt::format("heddle_first_entry(columns{0}, offsets{0}[row + i], offsets{0}[row + i + 1], {1})",
                       input, column);
  };
  Line(3, "for (int i = 0; i < n; ++i) {");
  Line(4, fmt::format("const long first = {}, count = {} - first;", first("begin"), first("begin + width")));
  Line(4, Each("p", "(int)count"));
  Line(5, "const long e = first + p;");
  Line(5, fmt::format("{} = {};", to.At("i", fmt::format("columns{}[e] - begin", input)), ValueAt(input)));
  Line(4, kEndOfEach);
  Line(3, "}");
}

void TilePrinter::PrintFoldIntoChunk(size_t r, const Cells& x) {
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  if (SumsColumns(root)) {
    if (is_alone_)
      return PrintChainsAlone(
          InVectors("for (int p = 0; p < width; ++p)"), "n", PayloadOf(r),
          [&](const std::string& i) { text_ += FoldStatement(5, fold, "acc", x.Load(i, "p")); });
    Line(3, EachTogether("p", "width"));
    Line(4, "const int is_mine = p < width;");
    Line(4, fmt::format("double acc = is_mine ? {} : 0.0;", PayloadOf(r)));
    Line(4, "for (int i = 0; i < n; ++i) if (is_mine) {");
    text_ += FoldStatement(5, fold, "acc", x.Load("i", "p"));
    Line(4, "}");
    Line(4, fmt::format("if (is_mine) {} = acc;", PayloadOf(r)));
    return Line(3, "}");
  }
  // Eight lanes of each row; tiles begin with the first of them.
  const std::string sum = fmt::format("sum{}[w * {} + ", r, ChunksOf(program_) * root.width);
  BeginRuns("n");
  if (!is_alone_) {
    Line(4, fmt::format("double acc = is_mine ? {}lane] : 0.0;", sum));
    PrintLaneLoop("width", 0, [&](const Loader& load) {
      text_ += FoldStatement(6, fold, "acc", load.Row(x, "w", ""));
    });
    Line(4, fmt::format("if (is_mine) {}lane] = acc;", sum));
    return EndRuns();
  }
  Line(4, fmt::format("double8 acc = vload8(0, &{}0]);", sum));
  Line(4, "int j = 0;");
  Line(4, "for (; j + 8 <= width; j += 8) {");
  text_ += FoldStatement(5, fold, "acc", Loader::OfEight("j", kLanes).Row(x, "w", ""), true);
  Line(4, "}");
  Line(4, fmt::format("vstore8(acc, 0, &{}0]);", sum));
  Line(4, "for (; j < width; ++j) {");
  text_ += FoldStatement(5, fold, sum + "j % 8]", x.Load("w", "j"));
  Line(4, "}");
  EndRuns();
}

}  // namespace heddle::ops
