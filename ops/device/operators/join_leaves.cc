// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/join_leaves.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/values/panels.h"
#include "ops/device/print/print_cell.h"
#include "ops/device/print/printer.h"

namespace heddle::ops {
namespace {

// Payloads that a work-item joins in one launch: a power of two, so that they are a node of the tree.
constexpr int64_t kFan = 32;

// Payload k of those that are left is that of leaf k * step. A work-item has a place of up to FAN of them,
// or of moments a column: mean and squares. JoinPayloads (ops/reduction/reduction_tree.cc) has the formulas.
constexpr std::string_view kJoin = R"(
#define COUNT(k, payloads_of_it) \
  convert_double_rte(min(of_all, ((k) + (payloads_of_it)) * step * of_leaf) - (k) * step * of_leaf)

__kernel void heddle_join(const long first_place, const long count, const long step, const long width,
                          const long of_leaf, const long of_all, __global double* memory,
                          __global double* root) {
  const long nodes = (count + FAN - 1) / FAN, places = MOMENTS ? (width - 1) / 2 : width;
  for (long w = (long)get_global_id(0); w < nodes * places; w += (long)get_global_size(0)) {
    const long first = w / places * FAN, p = w - w / places * places;
    const long size = min((long)FAN, count - first);
    for (long span = 1; span < size; span *= 2)
      for (long k = 0; k + span < size; k += 2 * span) {
        __global double* const left = memory + first_place + (first + k) * step * width;
        __global const double* const right = memory + first_place + (first + k + span) * step * width;
#if MOMENTS
        const double left_count = COUNT(first + k, span), right_count = COUNT(first + k + span, span);
        const double total = left_count + right_count;
        const double share = right_count / total;
        const double weight = left_count * share;
        const double left_mean = left[1 + p], delta = right[1 + p] - left_mean;
        left[1 + p] = left_mean + delta * share;
        left[1 + places + p] = (left[1 + places + p] + right[1 + places + p]) + (delta * delta) * weight;
        if (p == 0) left[0] = total;
#else
        left[p] = heddle_fold(left[p], right[p]);
#endif
      }
#if !MOMENTS
    if (root != 0) root[p] = memory[first_place + p];
#endif
  }
}
)";

constexpr std::string_view kFinish = R"(
__kernel void heddle_finish(const long rows, const long columns, const long first_place, const long row_step,
                            const long column_step, const long lane_step, const double count,
                            const long is_symmetric, __global const double* payload, __global CELL* out,
                            __global int* flags, const long sets_flags) {
  for (long c = (long)get_global_id(0); c < rows * columns; c += (long)get_global_size(0)) {
    const long i = c / columns, j = c - i * columns;
    const long place = first_place + (is_symmetric != 0 && j < i ? j * row_step + i * column_step
                                                                 : i * row_step + j * column_step);
    double x = payload[place];
    int is_small = fabs(x) < FAR_FROM_OVERFLOW;
    if (lane_step != 0) {
      double lanes[8];
      for (int lane = 0; lane < 8; ++lane) {
        lanes[lane] = payload[place + lane * lane_step];
        is_small = is_small && fabs(lanes[lane]) < FAR_FROM_OVERFLOW;
      }
      x = heddle_fold(heddle_fold(heddle_fold(lanes[0], lanes[4]), heddle_fold(lanes[2], lanes[6])),
                      heddle_fold(heddle_fold(lanes[1], lanes[5]), heddle_fold(lanes[3], lanes[7])));
    }
    const double finished = FINISHED;
    out[c] = ROUNDED(finished);
    if (sets_flags != 0 && !is_small) flags[0] = 1;
  }
}
)";

simd::Fold FoldOf(Join join) {
  switch (join) {
    case Join::kProduct: return simd::Fold::kMultiply;
    case Join::kMinimum: return simd::Fold::kMinimum;
    case Join::kMaximum: return simd::Fold::kMaximum;
    default: return simd::Fold::kAdd;
  }
}

std::string FoldFunction(Join join) {
  printed::Printer printer("v", "  ");
  const std::string folded = printed::PrintFold(FoldOf(join), "a", "b");
  return fmt::format(
      "static inline double heddle_fold(const double a, const double b) {{\n{}  return {};\n}}\n",
      printer.TakeText(), folded);
}

// Of `x`: SpreadOf (ops/aggregate/aggregate.h) for variances.
std::string_view Expression(FinishedCells::Kind kind) {
  switch (kind) {
    case FinishedCells::Kind::kAsItIs: return "x";
    case FinishedCells::Kind::kProduct: return "(x + 0.0)";
    case FinishedCells::Kind::kMean: return "(x / count)";
    case FinishedCells::Kind::kVariance: return "(count < 2.0 ? 0.0 : x / (count - 1.0))";
    case FinishedCells::Kind::kDeviation: return "sqrt(count < 2.0 ? 0.0 : x / (count - 1.0))";
  }
  return "x";
}

}  // namespace

Status JoinLeaves(DeviceCommands& commands, const DevicePayloads& payloads, int64_t begin, int64_t end,
                  const std::shared_ptr<DeviceMemory>& root) {
  const bool by_moments = payloads.join == Join::kMoments;
  HEDDLE_CHECK(root == nullptr || (!by_moments && end - begin > 1), "what a launch joins");
  const std::string source =
      OverCells(ElementType::kFloat64, FoldFunction(payloads.join) +
                                           fmt::format("#define FAN {}\n#define MOMENTS {}\n", kFan,
                                                       by_moments ? 1 : 0) +
                                           std::string(kJoin));
  const int64_t places = by_moments ? (payloads.width - 1) / 2 : payloads.width;
  const int64_t of_all = std::min(payloads.of_all, end * payloads.of_leaf) - begin * payloads.of_leaf;
  for (int64_t count = end - begin, step = 1; count > 1; count = CeilDivide(count, kFan), step *= kFan) {
    const std::vector<DeviceArgument> arguments = {
        begin * payloads.width, count,           step, payloads.width, payloads.of_leaf, of_all,
        payloads.memory,        count <= kFan ? root : nullptr};
    HEDDLE_RETURN_IF_ERROR(commands.Launch(source, "heddle_join", arguments,
                                           commands.ShapeOfCells(CeilDivide(count, kFan) * places)));
  }
  return OkStatus();
}

Status FinishCells(DeviceCommands& commands, const FinishedCells& cells,
                   const std::shared_ptr<DeviceMemory>& payload, const std::shared_ptr<DeviceMemory>& out,
                   const std::shared_ptr<DeviceMemory>& flags) {
  const std::string source =
      OverCells(cells.type, FoldFunction(cells.join) +
                                fmt::format("#define FINISHED {}\n#define FAR_FROM_OVERFLOW {}\n",
                                            Expression(cells.kind), printed::LiteralOf(kFarFromOverflow)) +
                                std::string(kFinish));
  const int64_t is_symmetric = cells.is_symmetric, sets_flags = flags != nullptr;
  const std::vector<DeviceArgument> arguments = {
      cells.rows,      cells.columns, cells.first, cells.row_step, cells.column_step, cells.lane_step,
      cells.count,     is_symmetric,  payload,     out,            flags,             sets_flags};
  return commands.Launch(source, "heddle_finish", arguments,
                         commands.ShapeOfCells(cells.rows * cells.columns));
}

}  // namespace heddle::ops
