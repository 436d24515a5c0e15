// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The dimension along which a value is cut.
enum class Axis : uint8_t { kRows, kColumns };
std::string_view Name(Axis axis);  ///< "rows", "columns"

/// How a value is cut: rank r has [cuts[r], cuts[r + 1]) of the axis.
struct Split {
  Axis axis = Axis::kRows;
  std::vector<int64_t> cuts;  ///< From 0 to the length of the axis, never descending; one more than ranks.

  int64_t Begin(int32_t rank) const { return cuts[static_cast<size_t>(rank)]; }
  int64_t End(int32_t rank) const { return cuts[static_cast<size_t>(rank) + 1]; }
  int64_t Length() const { return cuts.empty() ? 0 : cuts.back(); }
  auto operator<=>(const Split&) const = default;
  bool operator==(const Split&) const = default;
};

/// Where a value lives while a plan runs and between plans.
struct Distribution {
  enum class Kind : uint8_t {
    kOne,      ///< Whole, on one rank.
    kEach,     ///< The same whole copy on every rank.
    kSplit,    ///< Every rank has its part of `split`. Without cuts: how many rows each rank has is known
               ///< when they are there; those of rank 0 come first, then those of rank 1.
    kPartial,  ///< Every rank holds a list of tree nodes (docs/numerics.md 2): a dense matrix, one row per
               ///< node, columns (index, level, payload...).
  };

  Kind kind = Kind::kOne;
  int32_t rank = 0;  ///< Of kOne.
  Split split;       ///< Of kSplit.

  static Distribution One(int32_t rank = 0) { return {.rank = rank}; }
  static Distribution Each() { return {.kind = Kind::kEach}; }
  static Distribution Partial() { return {.kind = Kind::kPartial}; }
  /// Rows of an m-row value at CutRow(m, rank, ranks) (core/values/panels.h).
  static Distribution SplitRows(int64_t rows, int32_t ranks);

  bool IsOne() const { return kind == Kind::kOne; }
  bool IsEach() const { return kind == Kind::kEach; }
  bool IsSplit() const { return kind == Kind::kSplit; }
  /// Whether `on` holds cells of such a value.
  bool IsHeldBy(int32_t on) const { return kind != Kind::kOne || rank == on; }
  auto operator<=>(const Distribution&) const = default;
  bool operator==(const Distribution&) const = default;

  /// "one", on another rank than the first "one(2)", "each", "partial", or "split rows(0, 512, 1000)".
  std::string ToText() const;
};

}  // namespace heddle
