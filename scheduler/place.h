// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/programs/plan.h"
#include "ops/base/stages.h"
#include "scheduler/schedule.h"

namespace heddle::scheduler {

/// How one node of a graph is computed.
struct Placement {
  Distribution
      result;          ///< Where its value is afterwards; of several results, the first that is no reduction.
  bool split = false;  ///< Every rank computes a part (kRowWise, kReduce, kMixed, kGenerate, stages, rbind).
  ops::RowRule rule = ops::RowRule::kWhole;
  std::vector<Distribution> inputs;         ///< What each input is boxed to before; unused for one left out.
  Split cuts;                               ///< Of the rows, or columns, that are split, where they are.
  int64_t total_rows = 0;                   ///< Their number.
  Distribution reduced;                     ///< Where the results are that are reductions.
  const ops::StagedForm* staged = nullptr;  ///< The ranks compute it in stages,
  int32_t form = 0;                         ///< in this way (StagedNode::form).
  Split result_rows;                        ///< How its results are cut then, as in StagedNode.
  int32_t grid_columns = 1;                 ///< Of the grid in which the ranks stand then.
  bool moves_rows = false;  ///< rbind, cbind and ranges of columns: each rank fetches its rows, or columns,
                            ///< of the result.
  int64_t first_moved = 0;  ///< Then of a range, its first column.
  /// Of reductions that are finished in parts (`staged` says how): where each result of the node is, and
  /// which are.
  std::vector<Distribution> result_at;
  std::vector<bool> in_parts;

  ops::RankGrid Grid(int32_t ranks) const { return {.ranks = ranks, .columns = grid_columns}; }
};

/// Where result `i` of a node is that is placed so.
Distribution DistributionOf(const Node& node, const Placement& placement, size_t i);

/// A way to place a node, and what it costs beside the others: time of the slowest rank, in nanoseconds.
struct Alternative {
  Placement placement;
  double cost_ns = 0;  ///< Its own work, and moving its inputs and results, all else as it was chosen.
};

/// Why nodes are placed as they are.
struct PlacementReport {
  std::vector<std::vector<Alternative>> alternatives;  ///< By node; the chosen one first.
  bool is_exact = true;  ///< No other choice costs less; else the best that a fixed search found.
};

/// Chooses a placement for every node by cost (docs/distribution.md). A function of the graph's shapes, the
/// live-in distributions and the options alone. Rows of a reduction whose attribute "even.rows" is TRUE are
/// few, and each is much work: they are shared out evenly, however small they are, and every rank has the
/// result.
Result<std::vector<Placement>> Place(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                     const ScheduleOptions& options, PlacementReport* report = nullptr);

}  // namespace heddle::scheduler
