// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "compiler/fuse/fuse.h"

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
  *out += fmt::format("  cost: {:.4g} s; fuse all {:.4g}, no redundancy {:.4g}, cut everywhere {:.4g}\n",
                      partition.cost, partition.fuse_all, partition.no_redundancy, partition.cut_all);
  *out += fmt::format(
      "  {} of 2^{:.0f} plans costed; {}\n", partition.costed, partition.log2_plans,
      partition.gap > 0
          ? fmt::format("the search was ended, the best costs at most {:.2g} % less", 100 * partition.gap)
          : "the chosen one is proven to be the best");
  for (const std::string& planned : partition.operators) *out += "    " + planned + "\n";
  if (!partition.plans.empty()) *out += "  the cheapest plans costed, and what they materialise\n";
  for (const std::string& plan : partition.plans) *out += "    " + plan + "\n";
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
  for (const std::string& fused : report.fused) {
    text += "fused\n";
    AppendIndented(fused, &text);
  }
  for (const std::string& refused : report.refused) text += "refused by the executor: " + refused + "\n";
  return text;
}

}  // namespace heddle::compiler
