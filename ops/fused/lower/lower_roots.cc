// SPDX-License-Identifier: Apache-2.0
// What a fused operator reduces to, and how large its tiles are: the parts of lowering that make no steps.
#include "ops/fused/lower/lower_roots.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"
#include "ops/fused/lower/tile_sizes.h"
#include "ops/fused/program/region_walk.h"
#include "ops/fused/rows/dense_rows.h"
#include "ops/fused/rows/paired_product.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops {
namespace {

static_assert(Joins::kMost == FusedOperator::kMostAggregates);

// As kTileBytes, where loops fetch the next tile meanwhile.
constexpr int64_t kFetchedTileBytes = 32 << 10;
// The same where nothing fetches the next tile: while one step works in the cache, what the processor itself
// has asked for, about a page, is all that comes from memory.
constexpr int64_t kPlainTileBytes = 8 << 10;
constexpr int64_t kMostTileRows = 4096;
// Sums of columns of long rows are as large as a row and are filled, copied and finished beside the pass: of
// fewer rows that takes longer than another pass over them.
constexpr int64_t kLeastLongRowsSummed = 4;
// Tiles of one pass: as much as a task should be.
constexpr int64_t kPassCells = 1 << 17;

// How a region fetches rows. Where memory is read page after page the processor's own prefetcher is fast
// enough for bodies that memory limits; beside functions, whose instructions fill the queue in which later
// reads wait, it is not.
RowPrefetch RowPrefetchOf(const Region& region, const Processor& processor) {
  if (processor.memory_streams > 1) return RowPrefetch::kPagesInTurn;
  const bool heavy = std::any_of(region.nodes.begin(), region.nodes.end(),
                                 [](const RegionNode& node) { return IsHeavy(node); });
  return heavy ? RowPrefetch::kInOrder : RowPrefetch::kNone;
}

// True if `step` is the first to read those rows of an input, which come from memory, and no product fetches
// them.
bool ReadsMemory(const BodyView& view, std::vector<Step>::const_iterator step, const TileRef& tile) {
  const TileProgram& program = view.program();
  if (tile.kind != TileRef::Kind::kInput) return false;
  const ValueInfo& info = view.node(program.roles.variables[static_cast<size_t>(tile.index)]).info;
  return info.shape.columns == step->columns &&
         info.shape.Cells() >= kFetchedBytes / BytesOf(info.element_type) &&
         std::none_of(
             program.steps.begin(), step,
             [&](const Step& earlier) { return earlier.phase == step->phase && Reads(earlier, tile); }) &&
         std::none_of(step, program.steps.end(), [&](const Step& product) {
           return product.fetch != Step::Fetch::kNothing && product.fetched == tile;
         });
}

// True if some product fetches the next rows of `tile`.
bool IsFetched(const TileProgram& program, const TileRef& tile) {
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    return step.fetch != Step::Fetch::kNothing && step.fetched == tile;
  });
}

// A product with several columns that is the first to read its rows fetches them: it computes meanwhile.
void ChooseFetchesOfProducts(TileProgram* program) {
  const BodyView view(*program);
  for (auto step = program->steps.begin(); step != program->steps.end(); ++step) {
    if (step->kind != Step::Kind::kMultiply || step->columns == 1 || PacksRight(*step)) continue;
    if (step->from.kind != TileRef::Kind::kInput || step->fetch != Step::Fetch::kNothing) continue;
    const ValueInfo& info = view.node(program->roles.variables[static_cast<size_t>(step->from.index)]).info;
    const bool first = std::none_of(program->steps.begin(), step,
                                    [&](const Step& earlier) { return Reads(earlier, step->from); });
    if (!first || IsFetched(*program, step->from) ||
        info.shape.Cells() < kFetchedBytes / BytesOf(info.element_type))
      continue;
    step->fetch = Step::Fetch::kAll;
    step->fetched = step->from;
  }
}

// Regions and row aggregates fetch the rows that they are the first to read.
void ChooseFetchesOfOthers(TileProgram* program) {
  const BodyView view(*program);
  for (auto step = program->steps.begin(); step != program->steps.end(); ++step) {
    if (step->kind == Step::Kind::kFoldRows && ReadsMemory(view, step, step->from)) step->reads_memory = true;
    if (step->kind != Step::Kind::kRegion) continue;
    Region& region = program->regions[static_cast<size_t>(step->index)];
    const RowPrefetch prefetch = RowPrefetchOf(region, program->processor);
    if (prefetch == RowPrefetch::kNone) continue;
    for (RegionNode& read : region.nodes) {
      if (read.op != RegionOp::kInput || read.access != Access::kCells || read.single != program->single)
        continue;
      const RegionOperand& operand = step->operands[static_cast<size_t>(read.input)];
      if (operand.from == RegionOperand::From::kTile && ReadsMemory(view, step, operand.tile))
        read.prefetch = prefetch;
    }
  }
}

// The first wide product computes long enough to fetch all of the widest rows that it, or a step before it,
// is the first to read.
void ChooseFetchesOfWideProducts(TileProgram* program) {
  const BodyView view(*program);
  const auto wide = std::find_if(program->steps.begin(), program->steps.end(), PacksRight);
  if (wide == program->steps.end()) return;
  int64_t widest = 0;
  const auto consider = [&](const TileRef& tile) {
    if (tile.kind != TileRef::Kind::kInput) return;
    const int64_t columns = view.Columns(program->roles.variables[static_cast<size_t>(tile.index)]);
    if (columns <= widest) return;
    widest = columns;
    wide->fetch = Step::Fetch::kAll;
    wide->fetched = tile;
  };
  for (auto step = program->steps.begin(); step <= wide; ++step) {
    consider(step->from);
    for (const RegionOperand& operand : step->operands)
      if (operand.from == RegionOperand::From::kTile) consider(operand.tile);
  }
}

// The aggregates of long rows, whose payloads come after those of the roots. True if there are any.
bool MakeFoldsOfLongRows(const BodyView& view, int64_t offset, TileProgram* program) {
  const std::vector<NodeId>& results = program->fused.roots;
  bool any = false;
  for (NodeId id = 0; id < view.body().size(); ++id) {
    if (program->roles.nodes[static_cast<size_t>(id)] != BodyRole::kFold) continue;
    const AggregateKind kind = FindAggregate(view.node(id).op)->kind;
    const auto found = std::find(results.begin(), results.end(), id);
    const NodeId operand = view.node(id).inputs[0];
    TileRoot root{.node = id,
                  .result = found == results.end() ? -1 : static_cast<int>(found - results.begin()),
                  .aggregate = kind,
                  .join = JoinOf(kind),
                  .n = view.Columns(operand),
                  .offset = offset,
                  .width = 8,
                  .height = 1,
                  .of_rows = true};
    if (IsSpread(kind)) {
      root.kind = TileRoot::Kind::kMoments;
      root.width = 3;
      root.input = BodyView::InputPosition(view.node(operand));
      root.of_cells = true;
    }
    program->roots.push_back(root);
    program->chunks = CeilDivide(program->roots.back().n, kColumnChunk);
    offset += 8;
    any = true;
  }
  return any;
}

}  // namespace

Status MakeRoots(const BodyView& view, TileProgram* program) {
  const int64_t m = program->roles.rows;
  const bool stitch = program->fused.kind == FusionTemplate::kStitch;
  int64_t offset = 0;
  for (size_t i = 0; i < program->fused.roots.size(); ++i) {
    const NodeId id = program->fused.roots[i];
    if (program->roles.nodes[static_cast<size_t>(id)] != BodyRole::kRoot) continue;
    TileRoot root{.node = id, .result = static_cast<int>(i), .offset = offset};
    const Node& n = view.node(id);
    root.n = view.Columns(n.inputs[0]);
    int64_t& height = root.height;
    if (HasRole(n, Role::kTransposedProduct)) {
      root.k = view.Columns(n.inputs[1]);
      root.padded = (root.n + 7) / 8 * 8;
      root.kind = root.n * root.k <= 8    ? TileRoot::Kind::kLanes
                  : root.k <= kFewColumns ? TileRoot::Kind::kVectors
                                          : TileRoot::Kind::kProduct;
      root.width = root.kind == TileRoot::Kind::kLanes     ? 8 * root.n * root.k
                   : root.kind == TileRoot::Kind::kVectors ? root.k * root.padded
                                                           : root.n * root.k;
      height = root.k <= kFewColumns ? ColumnPanelHeight(m, root.n) : Granule(m);
      root.symmetric = root.kind == TileRoot::Kind::kProduct && n.inputs[0] == n.inputs[1] &&
                       view.node(n.inputs[0]).info.format == Format::kDense;
    } else {
      const Aggregate& aggregate = *FindAggregate(n.op);
      root.aggregate = aggregate.kind;
      const bool moments = IsSpread(aggregate.kind);
      const bool full = aggregate.scope != AggregateScope::kColumn;
      root.kind = moments ? TileRoot::Kind::kMoments
                  : full  ? TileRoot::Kind::kFull
                          : TileRoot::Kind::kColumns;
      root.of_cells = moments && full;
      root.width = moments       ? 1 + 2 * (full ? 1 : root.n)
                   : full        ? 8
                   : root.n <= 8 ? 8 * root.n
                                 : (root.n + 7) / 8 * 8;
      height = full      ? FullPanelHeight(m, root.n)
               : moments ? MomentsPanelHeight(m, root.n)
                         : ColumnPanelHeight(m, root.n);
      if (moments) {
        if (!view.IsInput(n.inputs[0]) || view.IsCsrInput(n.inputs[0]) || root.n > kColumnChunk)
          return Unimplemented("{} of other than the rows of a dense input", n.op);
        root.input = BodyView::InputPosition(view.node(n.inputs[0]));
      }
      root.join = JoinOf(aggregate.kind);
    }
    if (root.n == 0 || root.k == 0) return Unimplemented("a matrix without columns");
    const int64_t chunks = root.kind == TileRoot::Kind::kFull ? CeilDivide(root.n, kColumnChunk) : 1;
    const bool first = program->roots.empty();
    if (stitch) {
      program->chunks = std::max(program->chunks, chunks);
      program->panel_rows = first ? height : std::min(program->panel_rows, height);
    } else if (!first && (height != program->panel_rows || chunks != program->chunks)) {
      return Unimplemented("roots with different panels");
    } else if (first) {
      program->panel_rows = height;
      program->chunks = chunks;
      program->reduction.join = root.join;
    } else {
      program->reduction.join.Add(root.join);
    }
    offset += (root.width + 7) / 8 * 8;
    program->roots.push_back(root);
  }
  if (stitch && program->chunks == 1 && program->roots.size() > 1 && program->panel_rows < kRowsTogether)
    return Unimplemented("leaves of fewer rows than column sums have lanes");
  if (MakeFoldsOfLongRows(view, offset, program) && !stitch && program->fused.roots.size() > 1)
    return Unimplemented("aggregates of rows longer than a column chunk beside several others");
  if (stitch || !program->roles.reduces) return OkStatus();
  Joins& joins = program->reduction.join;
  if (std::all_of(joins.of_eights.begin(), joins.of_eights.begin() + joins.count,
                  [&](Join join) { return join == joins.of_eights[0]; }))
    joins = joins.of_eights[0];
  // One root: the payload is exactly the root's own. Several: all are eight lanes.
  program->reduction.width = program->fused.roots.size() == 1 ? program->roots[0].width : offset;
  return OkStatus();
}

void ChooseTileRows(TileProgram* program) {
  if (program->cut_columns > 0) {
    program->tile_rows = 1;
    return;
  }
  const BodyView view(*program);
  // Bytes of a row that are touched twice: buffers, results that are read, and inputs that more than one step
  // reads.
  std::map<int, int> reads;
  std::set<int> results;
  const auto read = [&](const TileRef& ref) {
    if (ref.kind == TileRef::Kind::kInput) ++reads[ref.index];
    if (ref.kind == TileRef::Kind::kResult) results.insert(ref.index);
  };
  for (const Step& step : program->steps) {
    read(step.from);
    read(step.from_right);
    read(step.background);
    for (const RegionOperand& operand : step.operands) read(operand.tile);
  }
  int64_t bytes = 0, widest = 1;
  for (const int result : results)
    bytes += 8 * view.Columns(program->fused.roots[static_cast<size_t>(result)]);
  const bool once =
      !FindPairedProduct(*program).stores_product;  // Rows stay in registers, or in the first-level cache.
  for (int64_t columns : program->buffers) bytes += 8 * columns;
  for (const auto& [input, count] : reads) {
    const int64_t columns = view.Columns(program->roles.variables[static_cast<size_t>(input)]);
    widest = std::max(widest, columns);
    if (count > 1 && !once) bytes += 8 * columns;
  }
  for (const TileProgram::Repeated& repeated : program->repeated) bytes += 8 * repeated.columns;
  if (program->by_pattern) bytes = std::max<int64_t>(bytes, 8);
  if (const auto wide = std::find_if(program->steps.begin(), program->steps.end(), PacksRight);
      wide != program->steps.end()) {
    bytes += 8 * view.node(program->roles.variables[static_cast<size_t>(wide->right)])
                     .info.shape.rows;  // Packed rows of X.
    int64_t rows = std::clamp(kWideTileBytes / bytes / 8 * 8, kLeastWideRows, kBlockRows);
    // Panels have a power of two of rows.
    if (program->panel_rows > 0) rows = std::min(FloorPowerOfTwo(rows / 3 * 4), program->panel_rows);
    program->tile_rows = rows;
    return;
  }
  const bool product = std::any_of(program->roots.begin(), program->roots.end(), [](const TileRoot& root) {
    return root.kind == TileRoot::Kind::kProduct;
  });
  const bool fetched = std::any_of(program->steps.begin(), program->steps.end(),
                                   [](const Step& step) { return step.fetch == Step::Fetch::kOdd; });
  const bool multiplies =
      std::any_of(program->steps.begin(), program->steps.end(),
                  [](const Step& step) { return step.kind == Step::Kind::kMultiply; }) ||
      std::any_of(program->roots.begin(), program->roots.end(), [](const TileRoot& root) {
        return root.kind != TileRoot::Kind::kFull && root.kind != TileRoot::Kind::kColumns;
      });
  const bool plain = program->processor.memory_streams == 1 && !multiplies;
  const int64_t tile_bytes = fetched ? kFetchedTileBytes : plain ? kPlainTileBytes : kTileBytes;
  int64_t rows = bytes == 0 ? FloorPowerOfTwo(std::max<int64_t>(8, kPassCells / widest))
                            : std::clamp<int64_t>(FloorPowerOfTwo(std::max<int64_t>(1, tile_bytes / bytes)),
                                                  product ? 256 : 8, kMostTileRows);
  if (program->panel_rows > 0) rows = std::min(rows, program->panel_rows);
  program->tile_rows = rows;
}

int64_t CutColumns(const BodyView& view) {
  const TileProgram& program = view.program();
  const NodeId count = view.body().size();
  int64_t widest = 0;
  for (NodeId id = 0; id < count; ++id)
    if (view.IsRows(id)) widest = std::max(widest, view.Columns(id));
  if (program.by_pattern || widest <= kColumnChunk) return 0;
  for (NodeId id = 0; id < count; ++id)
    if (view.IsRows(id) && ((!view.IsInput(id) && !view.IsCellwise(id)) ||
                            (view.Columns(id) != 1 && view.Columns(id) != widest)))
      return 0;
  const bool cut = std::all_of(program.roots.begin(), program.roots.end(), [](const TileRoot& root) {
    return root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns || root.of_rows;
  });
  return cut ? widest : 0;
}

Status CheckLongRows(const TileProgram& program) {
  const bool several = program.fused.kind == FusionTemplate::kStitch || program.phases > 1;
  const NodeId driver = program.roles.variables[static_cast<size_t>(program.fused.driver)];
  const bool sums_columns = program.fused.body[driver].info.shape.rows >= kLeastLongRowsSummed;
  for (const TileRoot& root : program.roots) {
    const bool by_entries = program.by_pattern && program.fused.kind != FusionTemplate::kStitch;
    if (program.cut_columns == 0 && (root.of_rows || !by_entries) && program.chunks > 1)
      return Unimplemented("an aggregate of rows longer than a column chunk beside what needs whole rows");
    const bool by_chunks = root.kind == TileRoot::Kind::kFull || root.of_rows ||
                           (root.kind == TileRoot::Kind::kColumns && sums_columns);
    if (program.cut_columns > 0 && several && (!by_chunks || root.n != program.cut_columns))
      return Unimplemented("several kinds of results of rows longer than a column chunk");
  }
  return OkStatus();
}

void PlacePayloadsOfLongRows(TileProgram* program) {
  if (program->cut_columns == 0 || (program->fused.kind != FusionTemplate::kStitch && program->phases == 1))
    return;
  int64_t offset = 0;
  for (TileRoot& root : program->roots) {
    root.offset = offset;
    if (root.kind != TileRoot::Kind::kColumns) offset += (root.width + 7) / 8 * 8;
  }
}

void ChooseReads(TileProgram* program) {
  const auto steps = program->steps.begin();
  ChooseFetchesOfWideProducts(program);
  for (auto root = steps; root != program->steps.end(); ++root) {
    if (root->kind != Step::Kind::kRoot || root->from.kind != TileRef::Kind::kInput ||
        IsFetched(*program, root->from))
      continue;
    root->fetched = root->from;
    const TileRoot& target = program->roots[static_cast<size_t>(root->index)];
    const bool product = target.kind == TileRoot::Kind::kProduct;
    if (product) root->fetch = Step::Fetch::kAll;
    for (auto step = steps; step != root; ++step) {
      // Rows that no step reads before come from memory in the root.
      if (!Reads(*step, root->from)) continue;
      if (!product) root->fetch = Step::Fetch::kEven;
      if (step->kind != Step::Kind::kMultiply || step->columns == 1 || step->columns > kFewColumns ||
          target.kind != TileRoot::Kind::kVectors || target.k == 1)
        continue;
      step->fetch = Step::Fetch::kEven;
      step->fetched = step->from;
      root->fetch = Step::Fetch::kOdd;
      break;
    }
  }
  ChooseFetchesOfProducts(program);
  ChooseFetchesOfOthers(program);
  for (Region& region : program->regions) region.half_registers = ReadsByHalves(region);
}

}  // namespace heddle::ops
