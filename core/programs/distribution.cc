// SPDX-License-Identifier: Apache-2.0
#include "core/programs/distribution.h"

#include <fmt/ranges.h>

#include "core/status.h"
#include "core/values/panels.h"

namespace heddle {

std::string_view Name(Axis axis) {
  switch (axis) {
    case Axis::kRows: return "rows";
    case Axis::kColumns: return "columns";
  }
  HEDDLE_CHECK(false, "every axis has a name");
}

Distribution Distribution::SplitRows(int64_t rows, int32_t ranks) {
  Distribution distribution{.kind = Kind::kSplit};
  for (int32_t rank = 0; rank <= ranks; ++rank) distribution.split.cuts.push_back(CutRow(rows, rank, ranks));
  return distribution;
}

std::string Distribution::ToText() const {
  switch (kind) {
    case Kind::kOne: return rank == 0 ? "one" : fmt::format("one({})", rank);
    case Kind::kEach: return "each";
    case Kind::kSplit: return fmt::format("split {}({})", Name(split.axis), fmt::join(split.cuts, ", "));
    case Kind::kPartial: return "partial";
  }
  HEDDLE_CHECK(false, "every distribution has a text");
}

}  // namespace heddle
