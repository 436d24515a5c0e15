// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "compiler/fuse/fuse.h"
#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/fused.h"

namespace heddle::compiler {
namespace {

void AppendIndented(const std::string& text, std::string* out) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    *out += "  " + text.substr(begin, end - begin) + "\n";
    if (end == std::string::npos) break;
    begin = end + 1;
  }
}

void AppendPartition(const PartitionReport& partition, bool with_costs, std::string* out) {
  *out += fmt::format("partition {} roots {} inputs {} shared {} external {}\n", partition.nodes,
                      partition.roots, partition.inputs, partition.materialization, partition.external);
  *out += fmt::format("  points: {}\n  chosen: {}\n", partition.points.empty() ? "none" : partition.points,
                      partition.chosen.empty() ? "-" : partition.chosen);
  if (!with_costs || partition.costed == 0) return;
  *out += fmt::format("  cost: {:.4g} ms; fuse all {:.4g}, no redundancy {:.4g}, cut everywhere {:.4g}\n",
                      partition.cost / 1e6, partition.fuse_all / 1e6, partition.no_redundancy / 1e6,
                      partition.cut_all / 1e6);
  *out += fmt::format(
      "  {} of 2^{:.0f} plans costed; {}\n", partition.costed, partition.log2_plans,
      partition.gap > 0
          ? fmt::format("the search was ended, the best costs at most {:.2g} % less", 100 * partition.gap)
          : "the chosen one is proven to be the best");
  for (const std::string& planned : partition.operators) *out += "    " + planned + "\n";
  if (!partition.plans.empty()) *out += "  the cheapest plans costed, and what they materialise\n";
  for (const std::string& plan : partition.plans) *out += "    " + plan + "\n";
}

// "cell colMeans", "stitch sum colSums" of fused operators, "sqrt" of others.
std::string NameOf(const Node& node) { return IsFused(node) ? ops::NameOf(*node.fused) : node.op; }

double Megabytes(std::span<const ValueInfo> infos) {
  double bytes = 0;
  for (const ValueInfo& info : infos)
    if (info.IsMatrix()) bytes += static_cast<double>(KnownBytes(info));
  return bytes / 1e6;
}

// Values of at most so many megabytes are still in the last-level cache when a later phase reads them.
constexpr double kCachedMegabytes = 8;
const char* LevelOf(double megabytes) { return megabytes <= kCachedMegabytes ? "cache" : "memory"; }

// "%*% 160 MB, rowMins 16 MB" of some nodes of a body.
std::string ValuesText(const Graph& body, const std::vector<NodeId>& ids) {
  std::string text;
  for (const NodeId id : ids)
    text += fmt::format("{}{} {:.4g} MB", text.empty() ? "" : ", ",
                        body[id].Is("variable") ? "input " + body[id].Text("name") : body[id].op,
                        Megabytes({&body[id].info, 1}));
  return text.empty() ? "nothing" : text;
}

// By node of a body, how often the cells of a row are visited before the node can be computed: a sum of a row
// is complete when all its cells have been seen.
std::vector<int> SweepsOf(const Graph& body) {
  std::vector<int> sweeps(body.nodes.size(), 0);
  for (NodeId id = 0; id < body.size(); ++id)
    for (const NodeId input : body[id].inputs) {
      if (input == kNoNode) continue;
      const ops::RowUse use = ops::RowUseOf(body[input]);
      const bool ends = use == ops::RowUse::kRowAggregate || use == ops::RowUse::kProduct;
      int& own = sweeps[static_cast<size_t>(id)];
      own = std::max(own, sweeps[static_cast<size_t>(input)] + (ends ? 1 : 0));
    }
  return sweeps;
}

// What a fused operator reads, computes in its tiles, computes although other operators do so, too, and
// writes.
std::string FusedText(const FusedOperator& fused, const std::string& again) {
  const Graph& body = fused.body;
  const std::vector<int> sweeps = SweepsOf(body);
  const int most = *std::max_element(sweeps.begin(), sweeps.end()) + 1;
  std::vector<NodeId> read, inside;
  const std::set<NodeId> roots(fused.roots.begin(), fused.roots.end());
  bool long_rows = false;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body[id];
    if (!node.info.IsMatrix()) continue;
    if (node.Is("variable"))
      read.push_back(id);
    else if (!roots.contains(id))
      inside.push_back(id);
    long_rows |= ops::RowUseOf(node) == ops::RowUse::kRowAggregate &&
                 body[node.inputs[0]].info.shape.columns > kColumnChunk;
  }
  std::string result =
      fmt::format("{}: {} phase{}, {} sweep{} of a row\n", ops::NameOf(fused), long_rows ? most : 1,
                  long_rows && most > 1 ? "s" : "", long_rows ? 1 : most, !long_rows && most > 1 ? "s" : "");
  result += "  reads from memory: " + ValuesText(body, read) + "\n";
  result += "  keeps in the cache: " + ValuesText(body, inside) + "\n";
  result += "  computes again: " + (again.empty() ? "nothing" : again) + "\n";
  result += "  writes to memory: " + ValuesText(body, {roots.begin(), roots.end()}) + "\n";
  return result;
}

// The operators of each phase, what they read, and what they leave for later phases.
std::string PhasesText(const PhasedOperator& phased) {
  const Graph& body = phased.body;
  const std::vector<int> phases = PhasesOf(body);
  const std::set<NodeId> roots(phased.roots.begin(), phased.roots.end());
  std::vector<std::string> lines(static_cast<size_t>(*std::max_element(phases.begin(), phases.end())) + 1);
  for (NodeId id = 0; id < body.size(); ++id) {
    const int phase = phases[static_cast<size_t>(id)];
    if (phase < 0) continue;
    const Node& node = body[id];
    double read = 0;
    for (const NodeId input : std::set<NodeId>(node.inputs.begin(), node.inputs.end()))
      if (input != kNoNode) read += Megabytes({&body[input].info, 1});
    const double made = Megabytes(ResultsOf(node));
    const bool leaves = roots.contains(id) || node.info.IsTuple();
    lines[static_cast<size_t>(phase)] +=
        fmt::format("    {}: reads {:.4g} MB, {} {:.4g} MB in the {}\n", NameOf(node), read,
                    leaves ? "leaves" : "keeps", made, leaves ? "memory" : LevelOf(made));
  }
  std::string result = fmt::format("phased, {} results\n", phased.roots.size());
  for (size_t i = 0; i < lines.size(); ++i) result += fmt::format("  phase {}\n{}", i + 1, lines[i]);
  return result;
}

}  // namespace

int64_t CostedPlans(const FuseReport& report) {
  int64_t costed = 0;
  for (const PartitionReport& partition : report.partitions) costed += partition.costed;
  return costed;
}

std::string ToText(const FuseReport& report, bool with_costs) {
  std::string text = "memo\n";
  AppendIndented(report.memo, &text);
  for (const PartitionReport& partition : report.partitions) AppendPartition(partition, with_costs, &text);
  for (const auto& fused : report.fused) {
    text += "fused\n";
    AppendIndented(fused->ToText(), &text);
  }
  for (size_t i = 0; with_costs && i < report.fused.size(); ++i)
    text += FusedText(*report.fused[i], report.again[i]);
  for (const auto& phased : report.phased) text += PhasesText(*phased);
  for (const std::string& refused : report.refused) text += "refused by the executor: " + refused + "\n";
  return text;
}

}  // namespace heddle::compiler
