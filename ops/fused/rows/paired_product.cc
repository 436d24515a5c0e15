// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/paired_product.h"

#include <algorithm>

namespace heddle::ops {
namespace {

// True if some step before `end` writes the buffer: then the next tile would overwrite w before the root has
// read it.
bool IsWrittenBefore(const TileProgram& program, const TileRef& buffer, int end) {
  for (int s = 0; s < end; ++s) {
    const Step& step = program.steps[static_cast<size_t>(s)];
    const auto is_buffer = [&](const TileRef& ref) {
      return ref.kind == buffer.kind && ref.index == buffer.index;
    };
    if (is_buffer(step.to) || std::any_of(step.outputs.begin(), step.outputs.end(), is_buffer)) return true;
  }
  return false;
}

// 1 if the step behind that product rounds it to floats, else 0.
int RoundsAfter(const TileProgram& program, int multiply) {
  const auto next = static_cast<size_t>(multiply) + 1;
  return next < program.steps.size() && program.steps[next].kind == Step::Kind::kRound &&
                 program.steps[next].to == program.steps[next - 1].to
             ? 1
             : 0;
}

// Columns of X up to which a pair pays: rows must stay in the first-level cache from the first half to the
// second. Of two tiles at least eight rows each have to.
constexpr int64_t kMostColumnsOfSameRows = 1024, kMostColumnsOfTwoTiles = 128;

}  // namespace

PairedProduct FindPairedProduct(const TileProgram& program) {
  PairedProduct pair;
  if (program.by_pattern) return pair;
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step& step = program.steps[static_cast<size_t>(s)];
    if (step.kind == Step::Kind::kMultiply && step.index < 0 && step.columns == 1 &&
        step.from.kind == TileRef::Kind::kInput && pair.multiply < 0)
      pair.multiply = s;
    if (step.kind != Step::Kind::kRoot || pair.multiply < 0 || step.right >= 0) continue;
    const TileRoot& root = program.roots[static_cast<size_t>(step.index)];
    if (root.kind != TileRoot::Kind::kVectors || root.k != 1 || root.n <= 8) continue;
    const Step& multiply = program.steps[static_cast<size_t>(pair.multiply)];
    const bool w_waits = step.from_right.kind == TileRef::Kind::kBuffer &&
                         program.buffers[static_cast<size_t>(step.from_right.index)] == 1 &&
                         !IsWrittenBefore(program, step.from_right, pair.multiply);
    const bool same_rows =
        s == pair.multiply + 1 + RoundsAfter(program, pair.multiply) && step.from_right == multiply.to;
    if (!w_waits || step.from != multiply.from ||
        root.n > (same_rows ? kMostColumnsOfSameRows : kMostColumnsOfTwoTiles))
      continue;
    pair.root = s;
    pair.same_rows = same_rows;
    pair.stores_product = !same_rows || multiply.to.kind != TileRef::Kind::kBuffer ||
                          std::any_of(program.steps.begin() + s + 1, program.steps.end(),
                                      [&](const Step& later) { return Reads(later, multiply.to); });
    return pair;
  }
  return {};
}

PairedProduct FindSparsePair(const TileProgram& program) {
  for (int s = 0; s + 1 < static_cast<int>(program.steps.size()); ++s) {
    const Step &multiply = program.steps[static_cast<size_t>(s)],
               &root = program.steps[static_cast<size_t>(s) + 1];
    if (multiply.kind != Step::Kind::kMultiply || multiply.index < 0 || multiply.columns != 1) continue;
    if (root.kind != Step::Kind::kRoot || root.right != multiply.index || root.from_right != multiply.to)
      continue;
    const TileRoot& target = program.roots[static_cast<size_t>(root.index)];
    if (target.kind == TileRoot::Kind::kVectors && target.k == 1) return {s, s + 1};
  }
  return {};
}

}  // namespace heddle::ops
