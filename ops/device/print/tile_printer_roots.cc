// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {

// ColumnMoments: the number of rows, the means, the sums of squared deviations.
void TilePrinter::PrintMoments(size_t r) {
  const TileRoot& root = program_.roots[r];
  Line(3, fmt::format("if ((row + n) % {} == 0 || row + n == rows) {{", root.height));
  Line(3, fmt::format("const long begin = row / {0} * {0};", root.height));
  Line(3, "const int size = (int)(row + n - begin);");
  if (root.of_cells) {
    PrintMomentsOfCells(r);
  } else {
    Line(3, fmt::format("{}{} = (double)size;", IfMine("item == 0"), PayloadOf(r, "0")));
    const Cells x{fmt::format("(in{0} + first{0} + begin * {1})", root.input, root.n), root.n,
                  IsSingleInput(root.input)};
    root.n <= kLanes ? PrintMomentsInLanes(r, x) : PrintMomentsInChains(r, x);
  }
  Line(3, "}");
}

// Of few columns: the rows of each in eight lanes.
void TilePrinter::PrintMomentsInLanes(size_t r, const Cells& x) {
  const int64_t columns = program_.roots[r].n;
  if (!is_alone_)
    return PrintDeviations(
        std::to_string(columns), "size",
        [&](const Loader& load, const std::string& absent) { return load.Column(x, "w", absent); },
        [&] {
          Line(5, fmt::format("{} = mean;", PayloadOf(r, "1 + w")));
          Line(5, fmt::format("{} = squares;", PayloadOf(r, fmt::format("{} + w", 1 + columns))));
        });
  const auto each_row = [&](const std::string& statement) {
    Line(4, fmt::format("for (int i = 0; i < size; ++i) {{ const int lane = i % 8; {} }}", statement));
  };
  Line(3, fmt::format("for (int p = 0; p < {}; ++p) {{", columns));
  Line(4, "double acc[8], squared[8];");
  Line(4, "for (int lane = 0; lane < 8; ++lane) { acc[lane] = 0.0; squared[lane] = 0.0; }");
  each_row(fmt::format("acc[lane] = acc[lane] + {};", x.Load("i", "p")));
  Line(4, fmt::format("const double mean = ({}) / (double)size;", printed::SumOfLanes("acc[{}]")));
  each_row(
      fmt::format("const double d = {} - mean; squared[lane] = squared[lane] + d * d;", x.Load("i", "p")));
  Line(4, fmt::format("{} = mean;", PayloadOf(r, "1 + p")));
  Line(4, fmt::format("{} = {};", PayloadOf(r, fmt::format("{} + p", 1 + columns)),
                      printed::SumOfLanes("squared[{}]")));
  Line(3, "}");
}

// Of more: each has a chain down its rows.
void TilePrinter::PrintMomentsInChains(size_t r, const Cells& x) {
  const int64_t columns = program_.roots[r].n;
  const std::string mean = PayloadOf(r, "1 + p"), squares = PayloadOf(r, fmt::format("{} + p", 1 + columns));
  if (is_alone_) {
    const std::string each_column = InVectors(fmt::format("for (int p = 0; p < {}; ++p)", columns));
    Line(4, fmt::format("{} {{ {} = 0.0; {} = 0.0; }}", each_column, mean, squares));
    PrintChainsAlone(each_column, "size", mean,
                     [&](const std::string& i) { Line(5, fmt::format("acc = acc + {};", x.Load(i, "p"))); });
    Line(4, fmt::format("{0} {1} = {1} / (double)size;", each_column, mean));
    return PrintChainsAlone(each_column, "size", squares, [&](const std::string& i) {
      Line(5, fmt::format("const double d = {} - {}; acc = acc + d * d;", x.Load(i, "p"), mean));
    });
  }
  Line(3, EachTogether("p", std::to_string(columns)));
  Line(4, fmt::format("const int is_mine = p < {};", columns));
  Line(4, "double acc = 0.0, squares = 0.0;");
  Line(4, "for (int i = 0; i < size; ++i)");
  Line(5, fmt::format("if (is_mine) acc = acc + {};", x.Load("i", "p")));
  Line(4, "const double mean = acc / (double)size;");
  Line(4, "for (int i = 0; i < size; ++i)");
  Line(5, fmt::format("if (is_mine) {{ const double d = {} - mean; squares = squares + d * d; }}",
                      x.Load("i", "p")));
  Line(4, fmt::format("if (is_mine) {{ {} = mean; {} = squares; }}", mean, squares));
  Line(3, "}");
}

// CellMoments: of rows [begin, begin + size) as one run of cells.
void TilePrinter::PrintMomentsOfCells(size_t r) {
  const TileRoot& root = program_.roots[r];
  const Cells x{fmt::format("(in{0} + first{0} + begin * {1})", root.input, root.n), 1,
                IsSingleInput(root.input)};
  const auto store = [&](int depth) {
    Line(depth, fmt::format("{} = (double)cells; {} = mean; {} = squares;", PayloadOf(r, "0"),
                            PayloadOf(r, "1"), PayloadOf(r, "2")));
  };
  Line(3, fmt::format("const int cells = size * {};", root.n));
  if (!is_alone_) {
    const auto cell = [&](const Loader& load, const std::string& absent) {
      return load.Column(x, "0", absent);
    };
    return PrintDeviations("1", "cells", cell, [&] { store(5); });
  }
  PrintMomentsAlone(x, store);
}

void TilePrinter::PrintMomentsAlone(const Cells& x, const std::function<void(int)>& store) {
  const std::string eight = fmt::format("vload8(0, &{})", x.At("c", "0"));
  const std::string eights = x.single ? fmt::format("convert_double8({})", eight) : eight;
  // `deviation`: of cells from their mean, else the cells.
  const auto each_cell = [&](std::string_view sums, bool deviation) {
    const auto term = [&](std::string_view type) {
      return deviation ? fmt::format("const {} d = x - mean;", type) : "";
    };
    const char* const added = deviation ? "d * d" : "x";
    Line(4, fmt::format("double8 eight_{} = (double8)(0.0);", sums));
    Line(4, "for (c = 0; c + 8 <= cells; c += 8) {");
    Line(5, fmt::format("const double8 x = {}; {}", eights, term("double8")));
    Line(5, fmt::format("eight_{0} = eight_{0} + {1};", sums, added));
    Line(4, "}");
    Line(4, fmt::format("double {0}[8]; vstore8(eight_{0}, 0, {0});", sums));
    Line(4, "for (int lane = 0; c + lane < cells; ++lane) {");
    Line(5, fmt::format("const double x = {}; {}", x.Load("c + lane", "0"), term("double")));
    Line(5, fmt::format("{0}[lane] = {0}[lane] + {1};", sums, added));
    Line(4, "}");
  };
  Line(4, "int c;");
  each_cell("acc", false);
  Line(4, fmt::format("const double mean = ({}) / (double)cells;", printed::SumOfLanes("acc[{}]")));
  each_cell("squared", true);
  Line(4, fmt::format("const double squares = {};", printed::SumOfLanes("squared[{}]")));
  store(4);
}

void TilePrinter::PrintAddSingles(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const Cells x = PlaceOf(step.from), y = PlaceOf(step.from_right);
  const bool is_open = HasOpenChains(r);
  const std::string ends = fmt::format("(row + n) % {} == 0 || row + n == rows", kSingleBlock);
  const auto begun = [&](std::string_view place) {
    return is_open ? fmt::format("row % {} != 0 ? (float)chains{}[{}] : 0.0f", kSingleBlock, r, place)
                   : std::string("0.0f");
  };
  const auto ended = [&](std::string_view place, std::string_view chain) {
    const std::string sum = PayloadOf(r, place);
    const std::string add = fmt::format("{0} = {0} + (double){1};", sum, chain);
    return is_open ? fmt::format("if ({}) {{ {} }} else {{ chains{}[{}] = (double){}; }}", ends, add, r,
                                 place, chain)
                   : add;
  };
  if (is_alone_) {
    Line(3, fmt::format("for (int j = 0; j < {0}; ++j) for (int strip = {1}; strip < {2}; strip += {3}) {{",
                        root.n, root.symmetric ? fmt::format("j / {0} * {0}", kStripColumns) : "0", root.k,
                        kStripColumns));
    Line(4, fmt::format("const int width = min({}, {} - strip), p = j * {} + strip;", kStripColumns, root.k,
                        root.k));
    Line(4, fmt::format("float chain[{}];", kStripColumns));
    Line(4, fmt::format("for (int c = 0; c < width; ++c) chain[c] = {};", begun("p + c")));
    Line(4, "for (int i = 0; i < n; ++i)");
    Line(5, fmt::format("for (int c = 0; c < width; ++c) chain[c] = fma({}, {}, chain[c]);",
                        x.LoadSingle("i", "j"), y.LoadSingle("i", "strip + c")));
    Line(4, fmt::format("for (int c = 0; c < width; ++c) {{ {} }}", ended("p + c", "chain[c]")));
    Line(3, "}");
    return;
  }
  Line(3, EachTogether("p", std::to_string(root.width)));
  Line(4, fmt::format("const int j = p / {}, c = p % {};", root.k, root.k));
  Line(4, fmt::format("const int is_mine = p < {}{};", root.width, root.symmetric ? " && c >= j" : ""));
  Line(4, "float chain = 0.0f;");
  if (is_open) Line(4, fmt::format("if (is_mine) chain = {};", begun("p")));
  Line(4, "for (int i = 0; i < n; ++i)");
  Line(5, fmt::format("if (is_mine) chain = fma({}, {}, chain);", x.LoadSingle("i", "j"),
                      y.LoadSingle("i", "c")));
  Line(4, fmt::format("if (is_mine) {{ {} }}", ended("p", "chain")));
  Line(3, "}");
}

void TilePrinter::PrintRoot(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  if (step.right >= 0 || IsByEntry(step.from)) return PrintAddEntries(step);
  const Cells x = PlaceOf(step.from);
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return PrintFoldIntoRoot(r, x, step.columns);
  if (AddsSingles(program_, root)) return PrintAddSingles(step);
  const Cells y = PlaceOf(step.from_right);
  if (is_alone_) return PrintRootAlone(r, x, y);
  int64_t places = root.n * root.k, by = 1;
  std::string mine;
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      places *= kLanes;
      by = kLanes;
      break;
    case TileRoot::Kind::kVectors:
      places = root.padded * root.k;
      mine = fmt::format(" && j < {}", root.n);
      break;
    default: mine = root.symmetric ? " && c >= j" : "";
  }
  Line(3, EachTogether("p", std::to_string(places)));
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      Line(4, fmt::format("const int start = p / {}, cell = p % {}, j = cell / {}, c = cell % {};",
                          root.n * root.k, root.n * root.k, root.k, root.k));
      break;
    case TileRoot::Kind::kVectors:
      Line(4, fmt::format("const int start = 0, c = p / {}, j = p % {};", root.padded, root.padded));
      break;
    default: Line(4, fmt::format("const int start = 0, j = p / {}, c = p % {};", root.k, root.k));
  }
  Line(4, fmt::format("const int is_mine = p < {}{};", places, mine));
  Line(4, fmt::format("double acc = is_mine ? {} : 0.0;", PayloadOf(r)));
  Line(4, fmt::format("for (int base = 0; base < n; base += {}) {{", by));
  Line(5, "const int i = base + start;");
  Line(5, fmt::format("if (is_mine && i < n) acc = fma({}, {}, acc);", x.Load("i", "j"), y.Load("i", "c")));
  Line(4, "}");
  Line(4, fmt::format("if (is_mine) {} = acc;", PayloadOf(r)));
  Line(3, "}");
}

void TilePrinter::PrintRootAlone(size_t r, const Cells& x, const Cells& y) {
  const TileRoot& root = program_.roots[r];
  if (root.kind == TileRoot::Kind::kLanes) {
    Line(3, fmt::format(
                "for (int i = 0; i < n; ++i) for (int j = 0; j < {}; ++j) for (int c = 0; c < {}; ++c) {{",
                root.n, root.k));
    const std::string sum = PayloadOf(r, fmt::format("i % 8 * {} + j * {} + c", root.n * root.k, root.k));
    Line(4, fmt::format("{0} = fma({1}, {2}, {0});", sum, x.Load("i", "j"), y.Load("i", "c")));
    return Line(3, "}");
  }
  const bool by_vector = root.kind == TileRoot::Kind::kVectors;
  const std::string rows = fmt::format("for (int j = 0; j < {}; ++j)", root.n);
  const std::string columns =
      fmt::format("for (int c = {}; c < {}; ++c)", root.symmetric ? "j" : "0", root.k);
  PrintChainsAlone(
      by_vector ? columns + " " + InVectors(rows) : rows + " " + InVectors(columns), "n",
      PayloadOf(r, by_vector ? fmt::format("c * {} + j", root.padded) : fmt::format("j * {} + c", root.k)),
      [&](const std::string& i) {
        Line(5, fmt::format("acc = fma({}, {}, acc);", x.Load(i, "j"), y.Load(i, "c")));
      });
}

void TilePrinter::PrintFoldIntoRoot(size_t r, const Cells& x, int64_t columns) {
  if (IsCut()) return PrintFoldIntoChunk(r, x);
  if (is_alone_) return PrintFoldIntoRootAlone(r, x, columns);
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  const bool by_column = root.kind == TileRoot::Kind::kColumns && root.n > kLanes;
  const int64_t period = by_column                               ? columns
                         : root.kind == TileRoot::Kind::kColumns ? kLanes * columns
                                                                 : kLanes;
  Line(3, EachTogether("p", std::to_string(period)));
  Line(4, fmt::format("const int is_mine = p < {};", period));
  Line(4, fmt::format("double acc = is_mine ? {} : 0.0;", PayloadOf(r)));
  // Without branches, so that a compiler may have loads of several rounds on their way at once.
  Line(4, fmt::format("for (int base = 0; base < n * {}; base += {}) {{", columns, period));
  Line(5, fmt::format("const int is_in = is_mine && base + p < n * {};", columns));
  Line(5, "const int cell = is_in ? base + p : 0;");
  Line(5, "double next = acc;");
  if (x.stride == columns) {
    text_ += FoldStatement(5, fold, "next", x.Widened(x.base + "[cell]"));
  } else {
    Line(5, fmt::format("const int i = cell / {0}, j = cell - i * {0};", columns));
    text_ += FoldStatement(5, fold, "next", x.Load("i", "j"));
  }
  Line(5, "acc = is_in ? next : acc;");
  Line(4, "}");
  Line(4, fmt::format("if (is_mine) {} = acc;", PayloadOf(r)));
  Line(3, "}");
}

void TilePrinter::PrintFoldIntoRootAlone(size_t r, const Cells& x, int64_t columns) {
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  if (root.kind == TileRoot::Kind::kColumns && root.n > kLanes)
    return PrintChainsAlone(
        InVectors(fmt::format("for (int p = 0; p < {}; ++p)", columns)), "n", PayloadOf(r),
        [&](const std::string& i) { text_ += FoldStatement(5, fold, "acc", x.Load(i, "p")); });
  const int64_t period = root.kind == TileRoot::Kind::kColumns ? kLanes * columns : kLanes;
  if (x.stride != columns) {
    Line(3, fmt::format("for (int i = 0; i < n; ++i) for (int j = 0; j < {}; ++j) {{", columns));
    Line(4, fmt::format("const int p = (i * {} + j) % {};", columns, period));
    text_ += FoldStatement(4, fold, PayloadOf(r), x.Load("i", "j"));
    return Line(3, "}");
  }
  // Vectors of eight chains, and what is left of the last round.
  Line(3, "{");
  for (int64_t p = 0; p < period; p += kLanes)
    Line(4, fmt::format("double8 acc{} = vload8(0, &{});", p, PayloadOf(r, std::to_string(p))));
  Line(4, "int cell = 0;");
  Line(4, fmt::format("for (; cell + {0} <= n * {1}; cell += {0}) {{", period, columns));
  for (int64_t p = 0; p < period; p += kLanes) {
    const std::string eight = fmt::format("vload8(0, &{}[cell + {}])", x.base, p);
    Line(5, "{");
    text_ += FoldStatement(5, fold, fmt::format("acc{}", p),
                           x.single ? fmt::format("convert_double8({})", eight) : eight, true);
    Line(5, "}");
  }
  Line(4, "}");
  for (int64_t p = 0; p < period; p += kLanes)
    Line(4, fmt::format("vstore8(acc{}, 0, &{});", p, PayloadOf(r, std::to_string(p))));
  Line(4, fmt::format("for (int p = 0; cell + p < n * {}; ++p) {{", columns));
  text_ += FoldStatement(5, fold, PayloadOf(r), x.Widened(x.base + "[cell + p]"));
  Line(4, "}");
  Line(3, "}");
}

}  // namespace heddle::ops
