// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/base/operator.h"
#include "scheduler/place.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {

/// What every rank computes takes the processors of all of them, which other operators could use.
constexpr double kReplicated = 1.25;

/// The placements that a node may have, the cost of each without moving its inputs, by what the operator says
/// of itself: its row rule and its stages (ops/base/operator.h). What is large stays split: where a value
/// that an operator reads or makes row by row has min_distributed_bytes, or is split already, every placement
/// is split. Placements by columns are there beside the others where an operand may be split so, or is large
/// and wide.
class CandidateFinder {
 public:
  CandidateFinder(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                  const ScheduleOptions& options);

  struct Candidate {
    Placement placement;
    double own_ns = 0;      ///< The work of the slowest rank, with finishing and exchanges between stages.
    double held_bytes = 0;  ///< By a rank at once, about; 0: not looked at.
  };
  /// In a fixed order. Nodes are asked for in their order. Not for variables, literals, assign and result.
  std::vector<Candidate> Of(NodeId node);
  /// To be told of nodes that Of is not asked for: their value is where that of the other is.
  void SetLike(NodeId node, NodeId other) {
    splits_[static_cast<size_t>(node)] = splits_[static_cast<size_t>(other)];
  }
  void SetWhole(NodeId node) { splits_[static_cast<size_t>(node)] = {}; }

 private:
  std::vector<Candidate> WholeOnes(const Node& node, const ops::Operator& op);
  void AddSplit(const Node& node, ops::RowRule rule, bool has_even_rows, std::vector<Candidate>* candidates);
  /// Row by row of what is there by columns and has few rows: each rank gets some.
  void AddFewRows(const Node& node, const ops::Operator& op, std::vector<Candidate>* candidates);
  /// Reductions placed so, with the time that they take without finishing them, the large ones finished in
  /// parts by the form at `place`. `reduced`: by result, what ReducedResults says of that form.
  void AddParted(const Node& node, Candidate partial, int32_t place, const ops::StagedForm& form,
                 const std::vector<ops::PayloadUnits>& reduced, std::vector<Candidate>* candidates);
  /// All forms of an operator that is computed in stages, beside the candidates that are there already; of
  /// them only those stay that a rank has memory for. `on_last`: the results are made on the last rank.
  void AddStagedForms(const Node& node, const ops::Operator& op, bool on_last,
                      std::vector<Candidate>* candidates);
  void AddStaged(const Node& node, int32_t place, const ops::StagedForm& form, bool on_last,
                 std::vector<Candidate>* candidates);
  /// The most that copies for every rank may cost of what the row rule of a node needs whole.
  double MostCopyNs(const Node& node) const;
  /// The placement in that form, with the grid that costs least of those that a rank has memory for.
  Candidate OnBestGrid(const Node& node, const Placement& placement, double most_held) const;
  /// The time of the slowest rank, without exchanges.
  double StagedNs(const Node& node, const Placement& placement) const;
  /// The work of the slowest rank as a part of all work.
  double StagedShare(const Node& node, const Placement& placement) const;
  void AddMoved(const Node& node, Axis axis, std::vector<Candidate>* candidates);
  void AddColumns(const Node& node, const ops::Operator& op, std::vector<Candidate>* candidates);
  /// cbind and ranges of columns: each rank fetches its columns.
  void AddMovedColumns(const Node& node, const ops::Operator& op, std::vector<Candidate>* candidates);
  /// The ways to cut so many rows, or columns, that are worth a look; at granules only where they are needed.
  std::vector<Split> CutsOf(int64_t length, Axis axis, bool needs_granules) const;
  /// Of a range of columns with all rows, where it begins; kUnknown for another one, or where bounds are not
  /// literals.
  int64_t FirstOfRange(const Node& node) const;
  /// Whether every placement of an input is split, some of them by rows or by more rows than one granule.
  bool IsSplitByRows(NodeId input) const;
  /// Whether the ranks may have an input by columns, or it is worth it.
  bool MayBeByColumns(NodeId input) const;
  bool IsReadByRows(const Node& node, size_t i) const;
  int64_t RowsRead(const Node& node) const;
  double LongestShare(const Split& cuts) const;
  double MoveNs(double bytes, int messages) const;
  std::vector<ops::PayloadUnits> ReducedResults(const Node& node, ops::RowRule rule,
                                                const ops::StagedForm* parts) const;
  double FinishNs(const Transition& lists) const;

  const Graph& graph_;
  const ScheduleOptions& options_;
  // How the placements of a value split it.
  struct Splits {
    bool always = false;                       // Every placement is split.
    bool by_rows = false, by_columns = false;  // Some are.
  };
  std::map<int64_t, std::vector<Split>> cuts_by_length_;  // Of the live-in variables, whatever their axis.
  std::vector<Splits> splits_;                            // By node.
  std::vector<ValueInfo> infos_;                          // Of the inputs of the node that is looked at.
  double node_ns_ = 0;                                    // Of that node on one rank.
};

}  // namespace heddle::scheduler
