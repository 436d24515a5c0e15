// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "compiler/fuse/template.h"
#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "ops/fused/lower/tile_sizes.h"
#include "ops/fused/run/run_long_rows.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise_codes.h"
#include "ops/sparse/sparse_leaves.h"

namespace heddle::compiler {

namespace fusion {
namespace {

constexpr double kGatherWaste = 8;  // Cells of a line that a gather along non-zeros brings in.
// Narrow products of dense rows join lanes for each cell of the result, at so much work; so do folds of rows.
constexpr double kWorkOfJoin = 40;
constexpr double kWorkOfRowFold = 25;
constexpr double kWorkOfMultiplication = 0.35;  // As in the table of operators.
// A CSR cell that is computed: minus zero becomes zero; and where a product skips absent cells, that is
// looked up.
constexpr double kWorkOfSparseCell = 0.35, kWorkOfSkipping = 0.7;
// Along entries: each entry, each row (whose end no branch foresees), each value that is gathered at an
// entry. In dense tiles: each cell of a CSR input that is made dense.
constexpr double kWorkOfEntry = 25, kWorkOfEntriesRow = 45, kWorkOfGathering = 20, kWorkOfMadeDense = 2;

constexpr double kWorkOfFunction = 6;  // From here on a cell-wise operator counts as a heavy one.

// Multiplications that take as long as a power that is a product or a quotient by definition
// (ops/simd/cellwise/math_power.h); 0 for others.
double WorkOfPower(const Dag& dag, NodeId id) {
  const Node& node = (*dag.graph)[id];
  if (dag[id].op->binary != ops::BinaryCode::kPower) return 0;
  const Node& exponent = (*dag.graph)[node.inputs[1]];
  const Scalar* value = exponent.FindAttribute("value");
  if (!exponent.Is("literal") || value == nullptr || value->IsString()) return 0;
  switch (ops::FormOfPower(value->AsDouble())) {
    case ops::PowerForm::kSquare: return 1;
    case ops::PowerForm::kCube: return 2;
    case ops::PowerForm::kReciprocal: return 10;
    case ops::PowerForm::kFunction: break;
  }
  return 0;
}

bool HasSecondInput(const DagNode& node) { return node.inputs.size() == 2 && node.inputs[1] != kNoNode; }

// The work of one cell of a cell-wise operator.
double WorkOfCell(const Dag& dag, NodeId id) {
  const ops::Operator& op = *dag[id].op;
  // An operator of one input that is given a second computes itself of both, as log does with a base.
  const double multiplications = WorkOfPower(dag, id),
               functions = op.unary && op.binary && HasSecondInput(dag[id]) ? 2 : 1;
  const double work =
      multiplications > 0 ? kWorkOfMultiplication * multiplications : op.fusion.work * functions;
  if (!dag[id].sparse) return work;
  return work + kWorkOfSparseCell + (op.binary && ops::SkipsAbsentCells(*op.binary) ? kWorkOfSkipping : 0);
}

// The CSR input whose entries the operator walks, of operators that may hold dense values of the same shape.
const DagNode* DriverOf(const Dag& dag, const OperatorWork& operation) {
  if (operation.kind != FusionTemplate::kOuter && !operation.along_entries) return nullptr;
  const DagNode* driver = nullptr;
  for (const OperatorInput& input : operation.inputs) {
    const DagNode& node = dag[input.id];
    if (!node.sparse || !input.by_rows || node.columns < 2) continue;
    if (driver == nullptr || node.cells > driver->cells ||
        (node.cells == driver->cells && node.sparsity < driver->sparsity))
      driver = &node;
  }
  return driver;
}

// The share of the cells of its shape that an operator visits: the sparsity of what it walks, or 1.
double VisitedShare(const Dag& dag, const OperatorWork& operation) {
  if (const DagNode* driver = DriverOf(dag, operation)) return driver->sparsity;
  double share = 0;
  for (NodeId root : operation.roots) {
    const NodeId walked = WalkedValue(dag, root);
    if (walked == kNoNode || operation.kind == FusionTemplate::kRow || !dag[walked].sparse) return 1;
    double driver = 1;
    for (const OperatorInput& input : operation.inputs)
      if (dag[input.id].sparse && dag[input.id].cells == dag[walked].cells)
        driver = std::min(driver, dag[input.id].sparsity);
    share = std::max({share, driver < 1 ? driver : 0, dag[walked].sparsity});
  }
  return std::min(1.0, share);
}

// The work of walking entries, beside that of the operators. A function of one CSR matrix alone runs over its
// entries without looking at rows.
double WorkAlongEntries(const Dag& dag, const OperatorWork& operation, double share) {
  const DagNode* const driver = DriverOf(dag, operation);
  const DagNode& walked = driver != nullptr ? *driver : dag[WalkedValue(dag, operation.roots[0])];
  const double entries = share * walked.cells;
  const bool cells = dag[operation.roots[0]].op->fusion.use == ops::RowUse::kCells;
  if (operation.nodes == 1 && operation.inputs.size() == 1 && cells) return kWorkOfEntry / 4 * entries;
  return (kWorkOfEntry + kWorkOfGathering * static_cast<double>(operation.inputs.size() - 1)) * entries +
         kWorkOfEntriesRow * static_cast<double>(walked.rows);
}

double WorkOfDenseTiles(const Dag& dag, const OperatorWork& operation) {
  if (operation.nodes == 1) return 0;
  double work = 0;
  for (const OperatorInput& input : operation.inputs)
    if (dag[input.id].sparse && input.by_cells) work += kWorkOfMadeDense * dag[input.id].cells;
  return work;
}

// The work of computing values at the entries of a CSR matrix and once for the rest of each row; 0 where the
// executor does not do that.
double WorkByDefaults(const Dag& dag, const OperatorWork& operation) {
  if (operation.nodes == 1 || operation.roots.size() != 1 || !operation.work.heavy) return 0;
  double work = 0;
  for (const OperatorInput& input : operation.inputs)
    if (dag[input.id].sparse && input.by_cells)
      work += kWorkOfEntry * dag[input.id].cells * dag[input.id].sparsity +
              kWorkOfEntriesRow * static_cast<double>(dag[input.id].rows);
  return work;
}

// For an operator by itself that its row rule shares out: the stages in which a rank sends least, of those
// that it has memory for (else holds least), with the bytes that it sends as their cost; nothing where it has
// none.
std::optional<ops::StagedWay> BestStages(const Dag& dag, const OperatorWork& operation,
                                         const CostModel& model) {
  if (!operation.split || operation.nodes != 1) return std::nullopt;
  const Node& node = (*dag.graph)[operation.roots[0]];
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || op->staged == nullptr || op->row_rule == nullptr) return std::nullopt;
  std::vector<ValueInfo> infos;
  for (const NodeId input : node.inputs)
    infos.push_back(input == kNoNode ? ValueInfo{} : (*dag.graph)[input].info);
  const double most_held =
      ops::MostHeldBytes(node, infos, model.ranks, model.min_distributed_bytes, model.memory_budget);
  std::optional<ops::StagedWay> best;
  for (const auto& [place, form] : ops::StagedFormsOf(*op, node, infos)) {
    if (form->moved_bytes == nullptr || form->held_bytes == nullptr) continue;
    const ops::StagedWay way = ops::BestGrid(
        *form, node, infos, model.ranks, most_held,
        [&](const ops::RankGrid& grid) { return form->moved_bytes(node, infos, grid) / model.ranks; });
    if (!best || ops::IsBetter(way, *best, most_held)) best = way;
  }
  return best;
}

// Whether a rank would have to hold all of a value that is shared out because it is large, beyond what it may
// hold (ops::MostHeldBytes without a budget).
bool HoldsTooMuch(const Dag& dag, const OperatorWork& operation, const CostModel& model) {
  if (!operation.split || operation.nodes == 1 || model.memory_budget > 0) return false;
  double all = 0, held = 0;
  bool has_whole = false;
  for (const OperatorInput& input : operation.inputs) {
    const DagNode& value = dag[input.id];
    all += value.bytes;
    held += value.bytes / (input.whole ? 1 : model.ranks);
    has_whole |= input.whole && value.split;
  }
  if (!has_whole) return false;
  for (const NodeId root : operation.roots) {
    all += dag[root].bytes;
    held += dag[root].bytes / model.ranks;
  }
  return held > ops::MostHeldBytes(all, model.ranks, model.min_distributed_bytes, 0);
}

// Every rank does its part. What one rank holds leaves it once for each other rank that needs it whole; of
// split rows every rank sends its own. Partial results go to one rank.
void Distribute(const Dag& dag, const OperatorWork& operation, const CostModel& model, OperatorTime* time) {
  if (!operation.split) return;
  const double others = model.ranks - 1;
  double sent = 0;
  for (const OperatorInput& input : operation.inputs)
    if (input.copied) sent += dag[input.id].bytes * others / (dag[input.id].split ? model.ranks : 1);
  for (NodeId root : operation.roots)
    if (ReducesRows(dag[root])) sent += dag[root].bytes * others;
  if (const std::optional<ops::StagedWay> stages = BestStages(dag, operation, model))
    sent = std::min(sent, stages->cost);
  time->total = time->total / model.ranks + sent / model.constants.links.bytes_per_ns;
}

// Payloads that a fused reduction holds at once (ops/reduction/reduction_tree.h): one of each task and a
// stack for each thread, as high as the tree of a task. Sums by terms (ops/sparse/sparse_leaves.h) hold one,
// and sixteen bytes a term.
double PayloadsOf(const Dag& dag, NodeId root, int threads) {
  const DagNode& walked = dag[dag[root].inputs[0]];
  const bool product = dag[root].op->fusion.use == ops::RowUse::kTransposedProduct;
  const int64_t columns = dag[root].columns;
  if (!product && !walked.sparse && columns > kColumnChunk) return 1;  // And some columns of others.
  const int64_t height = product && columns > ops::kFewColumns
                             ? Granule(walked.rows)
                             : ColumnPanelHeight(walked.rows, walked.columns);
  const int64_t leaves = CeilDivide(walked.rows, height), cells = product ? columns : 1;
  const double terms = walked.cells * walked.sparsity;
  if (walked.sparse && cells <= ops::kFewColumns &&
      ops::AreSparseLeaves(static_cast<int64_t>(terms), leaves, walked.columns, cells))
    return 1 + 2 * terms / dag[root].cells;
  const double most_tasks = std::clamp(std::floor((4 << 20) / dag[root].cells), 8.0, 256.0);
  const double depth = std::max(0.0, std::ceil(std::log2(static_cast<double>(leaves) / most_tasks)));
  return std::min<double>(static_cast<double>(leaves), most_tasks) +
         std::min<double>(static_cast<double>(leaves), threads) * (depth + 2);
}

// Memory of values that phases over long rows leave to later phases, for the rows that are worked on at once.
double BytesBetweenPhases(const Dag& dag, const OperatorWork& operation, int threads) {
  int64_t rows = 0, columns = 0, full = operation.work.stored_between_phases;
  const auto add = [&](const DagNode& value) {
    if (value.columns <= kColumnChunk) return;
    rows = std::max(rows, value.rows);
    columns = std::max(columns, value.columns);
    ++full;
  };
  for (const OperatorInput& input : operation.inputs)
    if (input.by_rows) add(dag[input.id]);
  for (const NodeId root : operation.roots) add(dag[root]);
  if (columns == 0) return 0;
  return 8.0 * static_cast<double>(operation.work.stored_between_phases) * static_cast<double>(columns) *
         static_cast<double>(ops::RowsOfGroup(rows, columns, full, threads));
}

// Bytes on one rank, of which it may have only its own rows. An operator by itself works in its result.
double HeldBytes(const Dag& dag, const OperatorWork& operation, const CostModel& model) {
  const std::optional<ops::StagedWay> stages = BestStages(dag, operation, model);
  const double own = operation.split ? 1.0 / model.ranks : 1;
  double held = 0;
  for (const OperatorInput& input : operation.inputs) {
    // A rank that does not split rows reads all of them by rows.
    const double copies = operation.split ? (input.by_rows ? own : 0) + (input.whole ? 1 : 0) : 1;
    held += dag[input.id].bytes * copies;
  }
  for (NodeId root : operation.roots) {
    const bool reduces = ReducesRows(dag[root]);
    held += dag[root].bytes * (reduces ? 1 : own);
    if (reduces && operation.nodes > 1 && dag[root].matrix)
      held += 8 * dag[root].cells * PayloadsOf(dag, root, model.threads);
  }
  if (operation.nodes > 1 && operation.work.folds_long_rows)
    held += BytesBetweenPhases(dag, operation, model.threads);
  if (operation.nodes > 1)
    held += operation.work.packed_bytes + model.threads * (ops::kTileBytes + operation.work.scratch_bytes);
  return stages ? std::min(held, stages->held_bytes) : held;
}

}  // namespace

NodeId WalkedValue(const Dag& dag, NodeId root) {
  const DagNode& node = dag[root];
  if (node.op == nullptr) return kNoNode;
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells:
    case ops::RowUse::kSampledProduct: return root;
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kRowAggregate:
    case ops::RowUse::kColumnAggregate: return node.inputs[0];
    case ops::RowUse::kProduct: return dag[node.inputs[0]].sparse ? node.inputs[0] : kNoNode;
    case ops::RowUse::kTransposedProduct:
      return dag[node.inputs[0]].sparse   ? node.inputs[0]
             : dag[node.inputs[1]].sparse ? node.inputs[1]
                                          : kNoNode;
    case ops::RowUse::kColumnRange:
    case ops::RowUse::kCbind:
    case ops::RowUse::kNone: return kNoNode;
  }
  return kNoNode;
}

NodeWork WorkOf(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  const double unit = node.op->fusion.work;
  const auto operand = [&](size_t i) -> const DagNode& { return dag[node.inputs[i]]; };
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells: {
      NodeWork work{.along = node.cells * WorkOfCell(dag, id)};
      const bool heavy = node.op->fusion.work >= kWorkOfFunction;
      work.elsewhere = work.along * (1 - node.entry_share);
      work.heavy = heavy && node.entry_share < 1;
      work.stored_between_phases = heavy && node.columns > kColumnChunk ? 1 : 0;
      return work;
    }
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kColumnAggregate: return {.along = unit * operand(0).cells};
    case ops::RowUse::kRowAggregate:
      // A CSR matrix that nothing here computes goes by its entries whatever else the operator does.
      if (operand(0).sparse && operand(0).op == nullptr)
        return {.fixed = unit * operand(0).cells * operand(0).sparsity + kWorkOfRowFold * node.cells};
      return {.along = unit * operand(0).cells,
              .fixed = kWorkOfRowFold * node.cells,
              .elsewhere = unit * operand(0).cells * (1 - operand(0).entry_share),
              .folds_long_rows = operand(0).columns > kColumnChunk};
    case ops::RowUse::kProduct: {
      const double products =
          unit * node.cells * static_cast<double>(operand(0).columns) * operand(0).sparsity;
      const bool joins = !operand(0).sparse && ops::IsNarrow(node.columns);
      NodeWork work{.fixed = products + (joins ? kWorkOfJoin * node.cells : 0)};
      if (!operand(0).sparse && node.columns >= ops::kWideProduct) {
        work.packed_bytes = 8 * operand(1).cells;
        work.scratch_bytes =
            std::min<double>(ops::kWideTileBytes,
                             8 * ops::kBlockRows * static_cast<double>(operand(0).columns + node.columns));
      }
      return work;
    }
    case ops::RowUse::kTransposedProduct: {
      const double products = unit * node.cells * static_cast<double>(operand(0).rows);
      // Half of a symmetric result is computed.
      return {.fixed = products * std::min(operand(0).sparsity, operand(1).sparsity) *
                       (node.inputs[0] == node.inputs[1] ? 0.5 : 1.0)};
    }
    case ops::RowUse::kSampledProduct:
      return {.along = unit * node.cells * static_cast<double>(operand(1).columns)};
    case ops::RowUse::kColumnRange:
    case ops::RowUse::kCbind: return {.along = unit * node.cells};
    case ops::RowUse::kNone: break;
  }
  return {};
}

void EntryWalk::Add(const Dag& dag, NodeId id, bool is_root) {
  const DagNode& node = dag[id];
  const ops::RowUse use = node.op->fusion.use;
  const bool cells = use == ops::RowUse::kCells;
  computes_sparse_ |= node.sparse && node.columns > 1 && (cells || use == ops::RowUse::kSampledProduct);
  if (cells) {
    needs_dense_ |= !node.sparse && node.columns > 1 && is_root;
  } else if (use != ops::RowUse::kSampledProduct) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      needs_dense_ |= node.inputs[i] != kNoNode && node.by_rows[i] != 0 && !dag[node.inputs[i]].sparse &&
                      dag[node.inputs[i]].columns > 1;
  }
}

void AddNode(const NodeWork& own, OperatorWork* operation) {
  NodeWork& work = operation->work;
  work.along += own.along;
  work.fixed += own.fixed;
  work.packed_bytes += own.packed_bytes;
  work.scratch_bytes = std::max(work.scratch_bytes, own.scratch_bytes);
  work.elsewhere += own.elsewhere;
  work.heavy |= own.heavy;
  work.folds_long_rows |= own.folds_long_rows;
  work.stored_between_phases += own.stored_between_phases;
  ++operation->nodes;
}

void AddRead(const Dag& dag, NodeId id, size_t i, OperatorInput* read) {
  const bool by_rows = dag[id].by_rows[i] != 0;
  const ops::RowUse use = dag[id].op->fusion.use;
  read->by_rows |= by_rows;
  read->whole |= !by_rows;
  read->by_cells |= by_rows && use != ops::RowUse::kRowAggregate && use != ops::RowUse::kProduct &&
                    use != ops::RowUse::kTransposedProduct;
  read->copied |= !by_rows && dag[read->id].copied_for == id;
}

bool IsSplit(const Dag& dag, const OperatorWork& operation, const CostModel& model) {
  if (model.ranks < 2) return false;
  std::vector<ops::RowsInput> by_rows;
  for (const OperatorInput& input : operation.inputs)
    if (input.by_rows) by_rows.push_back({(*dag.graph)[input.id].info, dag[input.id].split});
  const bool reduces = std::any_of(operation.roots.begin(), operation.roots.end(),
                                   [&](NodeId root) { return ReducesRows(dag[root]); });
  return std::any_of(operation.roots.begin(), operation.roots.end(), [&](NodeId root) {
    return ops::IsSplit(reduces ? ops::RowRule::kReduce : ops::RowRule::kRowWise, by_rows,
                        (*dag.graph)[root].info, model.min_distributed_bytes);
  });
}

OperatorTime TimeOf(const Dag& dag, const OperatorWork& operation, const CostModel& model) {
  const ops::MachineConstants& constants = model.constants;
  OperatorTime time;
  double out = 0;
  for (NodeId root : operation.roots) out += dag[root].bytes;
  time.write = out / constants.write_bytes_per_ns;
  double bytes = 0;
  const double share = VisitedShare(dag, operation);
  const NodeId walked = WalkedValue(dag, operation.roots[0]);
  const DagNode* const driver = DriverOf(dag, operation);
  const double walked_cells = driver != nullptr ? driver->cells : walked != kNoNode ? dag[walked].cells : 0;
  for (const OperatorInput& read : operation.inputs) {
    const DagNode& input = dag[read.id];
    const bool gathered = walked_cells > 0 && !input.sparse && input.cells == walked_cells;
    bytes += input.bytes * (gathered ? std::min(1.0, kGatherWaste * share) : 1);
  }
  time.read = bytes / constants.read_bytes_per_ns;
  const double by_defaults = share < 1 ? 0 : WorkByDefaults(dag, operation);
  const double walking = share < 1         ? WorkAlongEntries(dag, operation, share)
                         : by_defaults > 0 ? by_defaults
                                           : WorkOfDenseTiles(dag, operation);
  const double along = operation.work.along * share - (by_defaults > 0 ? operation.work.elsewhere : 0);
  time.compute = (along + operation.work.fixed + walking) / constants.work_per_ns;
  // A CSR result of dense tiles: all its cells are written to a buffer, which is read twice to collect
  // entries.
  if (share >= 1 && operation.nodes > 1 && dag[operation.roots[0]].sparse)
    time.write += 8 * dag[operation.roots[0]].cells *
                  (1 / constants.write_bytes_per_ns + 2 / constants.read_bytes_per_ns);
  time.total = time.write + std::max(time.read, time.compute);
  Distribute(dag, operation, model, &time);
  time.total += constants.operator_ns;
  if (model.memory_budget > 0 && HeldBytes(dag, operation, model) > static_cast<double>(model.memory_budget))
    time.total += kInfeasibleNs;
  if (HoldsTooMuch(dag, operation, model)) time.total += kInfeasibleNs;
  return time;
}

}  // namespace fusion
}  // namespace heddle::compiler
