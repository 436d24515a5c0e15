// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/fuse/cost.h"
#include "core/environment/clock.h"
#include "core/programs/fused_operator.h"
#include "core/programs/graph.h"
#include "core/programs/phased_operator.h"

namespace heddle::compiler {

/// How the plan is chosen among the candidates. No choice changes a bit of a result.
enum class FusionMode : uint8_t {
  kOff,           ///< Nothing is fused.
  kAll,           ///< As much as possible, computing shared values again.
  kNoRedundancy,  ///< As much as possible without computing anything twice.
  kCost,          ///< The plan of the lowest modelled cost.
  kRandom,        ///< Any legal plan, by a seed.
};
std::string_view Name(FusionMode mode);  ///< "off" "all" "no-redundancy" "cost" "random"
std::optional<FusionMode> ParseFusionMode(std::string_view name);

struct FuseOptions {
  FusionMode mode = FusionMode::kCost;
  uint64_t seed = 0;                ///< Of kRandom.
  ops::MachineConstants constants;  ///< Not plausible (all zero): the built-in ones.
  int64_t memory_budget = 0;        ///< Bytes that one operator may take on a rank; 0: no limit.
  int threads = 1;
  int ranks = 1;
  int64_t min_distributed_bytes = 0;  ///< As in placement: from this size rows are spread over the ranks.
  Clock* clock = nullptr;             ///< For the deadline of large partitions; nullptr: the system's.
  int64_t deadline_ms = 1000;         ///< Of all partitions that are too large for an exact search.
  /// Share of cells of a CSR live-in that are present, negative when unknown; may be empty.
  std::function<double(std::string_view variable)> sparsity_of;
  /// Whether every rank has its own rows of a live-in; may be empty: of none.
  std::function<bool(std::string_view variable)> is_split;
  /// OK where the executor can run this body; what it refuses is not formed, and the report has the reason.
  /// Empty: it can run everything.
  std::function<Status(const FusedOperator&)> can_run;
  /// False where a device computes: it has kernels for products of dense matrices with more than 8 columns.
  bool fuses_wide_products = true;
  /// Whether a node may be a member of a node "phased". Empty: all may that the processor runs.
  std::function<bool(const Graph& graph, NodeId node)> can_run_in_phases;
  /// For each partition the report lists so many of the cheapest plans that were costed, the operators of the
  /// chosen plan, and the cost without redundancy. 0 leaves all of this out, because it takes time.
  size_t reported_plans = 0;
  /// Gets the report as text (ToText with costs); may be empty.
  std::function<void(std::string_view text)> observe;
};

/// Sets mode and seed from the text that a job's options hold: the name of a mode, or "random:SEED". Error:
/// kInvalidArgument.
Status SetMode(std::string_view text, FuseOptions* options);

/// How the plan of one partition was found.
struct PartitionReport {
  std::string nodes, roots, inputs, materialization, external;  ///< "{4,6}"
  std::string points;                                           ///< "(6->4) (8->4)"
  double log2_plans = 0;
  int64_t costed = 0;
  std::string chosen;                                             ///< One 0 or 1 for every point.
  double cost = 0, fuse_all = 0, no_redundancy = 0, cut_all = 0;  ///< Nanoseconds.
  double gap = 0;                  ///< (cost - lower bound) / cost: 0 when proven to be the best.
  std::vector<std::string> plans;  ///< "0.34 ms: (6->4) (8->4)", what each materialises, by ascending cost.
  std::vector<std::string> operators;  ///< "11{4,5,6,8,9,11} write .. read .. compute .. total .. ms".
};

/// What `explain --level fusion|cost` prints.
struct FuseReport {
  std::string memo;
  std::vector<PartitionReport> partitions;
  std::vector<std::shared_ptr<const FusedOperator>> fused;  ///< In the order of the result.
  std::vector<std::string> again;  ///< For each of them: operators in it that others compute, too: "exp %*%".
  std::vector<std::shared_ptr<const PhasedOperator>> phased;  ///< What they and others were put together to.
  std::vector<std::string> refused;  ///< Roots whose operators the executor refused, and why.
};
std::string ToText(const FuseReport& report, bool with_costs);
/// Plans, whole or partial, whose cost was computed in all partitions.
int64_t CostedPlans(const FuseReport& report);

/// A copy of the graph in which sets of nodes are replaced by nodes "fused" (Node::fused), whose inputs are
/// those of the fused operator, in order. The results of a node with several (multi-aggregate, stitch) are
/// read by nodes "result". Nodes that stay keep their order, and every node its position in the script.
///
/// At last operators between two products, fused or not, are put together to nodes "phased" (fuse/phases.h).
///
/// Needs: inferred infos; nodes of unknown size are left alone. Keeps: every bit of every result. Linear in
/// the graph but for the search in each partition (fuse/select.h).
Result<Graph> Fuse(const Graph& graph, const FuseOptions& options, FuseReport* report);

}  // namespace heddle::compiler
