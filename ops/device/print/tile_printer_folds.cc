// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/tile_printer.h"

namespace heddle::ops {

void TilePrinter::BeginRuns(const std::string& count) {
  if (is_alone_) return Line(3, fmt::format("for (int w = 0; w < {}; ++w) {{", count));
  const int64_t at_once = limits_.group_size / kLanes;
  Line(3, fmt::format("for (int base = 0; base < {}; base += {}) {{", count, at_once));
  Line(4, "const int w = base + item / 8, lane = item % 8;");
  Line(4, fmt::format("const int is_mine = w < {};", count));
}

void TilePrinter::EndRuns() {
  if (!is_alone_) Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
  Line(3, "}");
}

template <typename Load>
std::string TilePrinter::Loader::Gather(const std::string& absent, Load load) const {
  std::string cells;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const std::string cell = lane < cells_ ? load(fmt::format("{} + {}", column_, lane)) : absent;
    cells += (lane == 0 ? "" : ", ") + cell;
  }
  return fmt::format("(double8)({})", cells);
}

std::string TilePrinter::Loader::Row(const Cells& cells, std::string_view i,
                                     const std::string& absent) const {
  if (!eight_) return cells.Load(i, column_);
  if (cells_ < kLanes) return Gather(absent, [&](const std::string& j) { return cells.Load(i, j); });
  const std::string eight = fmt::format("vload8(0, &{})", cells.At(i, column_));
  return cells.single ? fmt::format("convert_double8({})", eight) : eight;
}

std::string TilePrinter::Loader::Column(const Cells& cells, std::string_view c,
                                        const std::string& absent) const {
  if (!eight_) return cells.Load(column_, c);
  if (cells_ < kLanes || cells.stride > 1)
    return Gather(absent, [&](const std::string& j) { return cells.Load(j, c); });
  const std::string eight = fmt::format("vload8(0, &{})", cells.At(column_, c));
  return cells.single ? fmt::format("convert_double8({})", eight) : eight;
}

void TilePrinter::PrintAccumulator(const std::string& name, const std::string& start) {
  if (!is_alone_) return Line(4, fmt::format("double {} = {};", name, start));
  Line(4, fmt::format("double8 {} = (double8)({});", name, start));
}

void TilePrinter::ShareLanes(const std::string& name) {
  if (is_alone_) return;
  Line(4, fmt::format("lanes[item] = {};", name));
  Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
}

std::string TilePrinter::PrintJoinedLanes(simd::Fold fold, const std::string& name) {
  std::vector<std::string> lanes;
  for (int k = 0; k < kLanes; ++k)
    lanes.push_back(is_alone_ ? fmt::format("{}.s{}", name, k) : fmt::format("lanes[item - lane + {}]", k));
  return JoinedLanes(fold, lanes);
}

std::string TilePrinter::JoinedLanes(simd::Fold fold, const std::vector<std::string>& lanes) {
  printed::Printer printer(fmt::format("lanes{}_", joined_lanes_++), "          ");
  std::vector<std::string> r;
  for (const std::string& lane : lanes) r.push_back(printer.Define("double", lane));
  const auto join = [&](const std::string& a, const std::string& b) {
    return printed::PrintFold(fold, a, b);
  };
  const std::string even = join(join(r[0], r[4]), join(r[2], r[6]));
  const std::string odd = join(join(r[1], r[5]), join(r[3], r[7]));
  std::string joined = join(even, odd);
  text_ += printer.TakeText();
  return joined;
}

std::string TilePrinter::FoldStatement(int depth, simd::Fold fold, std::string_view accumulator,
                                       const std::string& x, bool eights) const {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  printed::Printer printer("f", indent, eights);
  const std::string loaded = printer.Define("double", x);
  const std::string folded = printed::PrintFold(fold, std::string(accumulator), loaded);
  return printer.TakeText() + fmt::format("{}{} = {};\n", indent, accumulator, folded);
}

void TilePrinter::PrintFoldRows(const Cells& from, int64_t columns, const Cells& to, simd::Fold fold,
                                bool is_mean, bool must_be_finite) {
  printed_.sets_flags |= must_be_finite;
  PrintLanes(
      "n", columns, fold,
      [&](const std::string& acc, const Loader& load) {
        text_ += FoldStatement(6, fold, acc, load.Row(from, "w", printed::StartOf(fold)), is_alone_);
      },
      [&](const std::string& joined) {
        const std::string value = is_mean ? fmt::format("{} / {}.0", joined, columns) : joined;
        Line(5, fmt::format("const double folded = {};", value));
        Line(5, fmt::format("{} = folded;", to.At("w", "0")));
        if (must_be_finite) Line(5, "if (!isfinite(folded)) flags[0] = 1;");
      });
}

// simd::IndexOfExtreme: the last of the largest cells; NaN is none, and 1 stands for no cell.
void TilePrinter::PrintPlaceOfExtreme(const Step& step, const Cells& from) {
  const int64_t columns = step.index >= 0 ? from.stride : step.columns;
  const Cells to = PlaceOf(step.to);
  const char* const sign = step.aggregate == AggregateKind::kIndexMin ? "-" : "";
  const auto compare = [&](std::string_view lane) {
    Line(6, fmt::format("const double x = {}{};", sign, from.Load("w", "j")));
    Line(6, fmt::format("const int better = x >= acc{};", lane));
    Line(6, fmt::format("acc{0} = better ? x : acc{0};", lane));
    Line(6, fmt::format("place{0} = better ? j : place{0};", lane));
  };
  if (IsShort(columns)) {
    Line(3, Each("w", "n"));
    Line(4, "double acc = -INFINITY; int place = -1;");
    for (int64_t j = 0; j < columns; ++j) {
      Line(4, fmt::format("{{ const int j = {};", j));
      compare("");
      Line(4, "}");
    }
    Line(4, fmt::format("{} = place < 0 ? 1.0 : (double)(place + 1);", to.At("w", "0")));
    return Line(3, kEndOfEach);
  }
  BeginRuns("n");
  if (is_alone_) {
    Line(4, "double acc[8]; int place[8];");
    Line(4, "for (int lane = 0; lane < 8; ++lane) { acc[lane] = -INFINITY; place[lane] = -1; }");
    Line(4, fmt::format("for (int eight = 0; eight + 8 <= {}; eight += 8)", columns));
    Line(5, "for (int lane = 0; lane < 8; ++lane) { const int j = eight + lane;");
    compare("[lane]");
    Line(5, "}");
    Line(4, fmt::format("for (int j = {}; j < {}; ++j) {{ const int lane = j % 8;", columns / kLanes * kLanes,
                        columns));
    compare("[lane]");
    Line(4, "}");
  } else {
    Line(4, "double acc = -INFINITY;");
    Line(4, "int place = -1;");
    PrintLaneLoop(std::to_string(columns), columns, [&](const Loader&) { compare(""); });
  }
  if (!is_alone_) Line(4, "places[item] = place;");
  ShareLanes("acc");
  Line(4, is_alone_ ? "{" : "if (lane == 0 && is_mine) {");
  const auto of_lane = [&](std::string_view array, int k) {
    return is_alone_ ? fmt::format("{}[{}]", array, k)
                     : fmt::format("{}[item + {}]", array == "acc" ? "lanes" : "places", k);
  };
  Line(5, fmt::format("double best = {}; int at = {};", of_lane("acc", 0), of_lane("place", 0)));
  for (int k = 1; k < kLanes; ++k)
    Line(5, fmt::format("if ({0} > best || ({0} == best && {1} > at)) {{ best = {0}; at = {1}; }}",
                        of_lane("acc", k), of_lane("place", k)));
  Line(5, fmt::format("{} = at < 0 ? 1.0 : (double)(at + 1);", to.At("w", "0")));
  Line(4, "}");
  EndRuns();
}

void TilePrinter::PrintSpreadOfRows(const Step& step, const Cells& from) {
  const int64_t columns = step.index >= 0 ? from.stride : step.columns;
  const Cells to = PlaceOf(step.to);
  printed_.sets_flags = true;
  const auto finish = [&] {  // SpreadOf
    std::string spread = columns < 2 ? "0.0" : fmt::format("squares / {}.0", columns - 1);
    if (columns < 1) spread = "as_double(0x7ff8000000000000UL)";
    if (step.aggregate == AggregateKind::kDeviation) spread = "sqrt(" + spread + ")";
    Line(5, fmt::format("const double spread = {};", spread));
    Line(5, fmt::format("{} = spread;", to.At("w", "0")));
    Line(5, "if (!isfinite(spread)) flags[0] = 1;");
  };
  if (!IsShort(columns))
    return PrintDeviations(
        "n", std::to_string(columns),
        [&](const Loader& load, const std::string& absent) { return load.Row(from, "w", absent); }, finish);
  Line(3, Each("w", "n"));
  const auto joined = [&](const char* name) { return JoinedLanes(simd::Fold::kAdd, ShortLanes(name)); };
  PrintShortLanes("acc", columns, "0.0", [&](const std::string& acc, const Loader& load) {
    Line(6, fmt::format("{0} = {0} + {1};", acc, load.Row(from, "w", "")));
  });
  Line(4, fmt::format("const double mean = {} / {}.0;", joined("acc"), columns));
  PrintShortLanes("squared", columns, "0.0", [&](const std::string& acc, const Loader& load) {
    Line(6, fmt::format("const double d = {} - mean;", load.Row(from, "w", "")));
    Line(6, fmt::format("{0} = {0} + d * d;", acc));
  });
  Line(4, fmt::format("const double squares = {};", joined("squared")));
  finish();
  Line(3, kEndOfEach);
}

}  // namespace heddle::ops
