// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/aggregate.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/values/panels.h"

namespace heddle::ops::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Lanes = std::array<double, 8>;
using Join = double (*)(double, double);

double Add(double a, double b) { return a + b; }
double Multiply(double a, double b) { return a * b; }
double Minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double Maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

struct Rule {
  Join join;
  double start;
};
Rule RuleOf(const std::string& kind) {
  if (kind == "prod") return {Multiply, 1.0};
  if (kind == "min") return {Minimum, kInfinity};
  if (kind == "max") return {Maximum, -kInfinity};
  return {Add, 0.0};
}

double Root(const Lanes& r, Join join) {
  return join(join(join(r[0], r[4]), join(r[2], r[6])), join(join(r[1], r[5]), join(r[3], r[7])));
}

// One cell of a leaf: its value and its lane (0 for a chain).
struct Cell {
  double value;
  int64_t lane;
};
using Leaf = std::vector<Cell>;

double Fold(const std::vector<Leaf>& leaves, const Rule& rule) {
  if (leaves.empty()) return rule.start;
  std::vector<Lanes> lanes;
  for (const Leaf& leaf : leaves) {
    Lanes lane;
    lane.fill(rule.start);
    for (const Cell& cell : leaf) lane[cell.lane] = rule.join(lane[cell.lane], cell.value);
    lanes.push_back(lane);
  }
  const Lanes root = Tree(lanes, 0, lanes.size(), [&](const Lanes& a, const Lanes& b) {
    Lanes joined;
    for (int i = 0; i < 8; ++i) joined[i] = rule.join(a[i], b[i]);
    return joined;
  });
  return Root(root, rule.join);
}

struct Moments {
  double count, mean, squares;
};

// Chan, Golub, LeVeque 1979.
Moments JoinMoments(const Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  const double share = b.count / count;
  const double delta = b.mean - a.mean;
  return {count, a.mean + delta * share, (a.squares + b.squares) + (delta * delta) * (a.count * share)};
}

double Variance(const std::vector<Leaf>& leaves) {
  if (leaves.empty()) return std::nan("");
  std::vector<Moments> moments;
  for (const Leaf& leaf : leaves) {
    const double count = static_cast<double>(leaf.size());
    const double mean = Fold({leaf}, {Add, 0.0}) / count;
    Leaf squares = leaf;
    for (Cell& cell : squares) cell.value = (cell.value - mean) * (cell.value - mean);
    moments.push_back({count, mean, Fold({squares}, {Add, 0.0})});
  }
  const Moments root = Tree(moments, 0, moments.size(), JoinMoments);
  return root.count == 1.0 ? 0.0 : root.squares / (root.count - 1.0);
}

// fraction * 2^exponent, the fraction from 0.5 to 1 or 0: 53 digits and any exponent.
struct Wide {
  double fraction = 0;
  int exponent = 0;
};
Wide WideOf(double fraction, int exponent = 0) {
  int more = 0;
  fraction = std::frexp(fraction, &more);
  return {fraction, exponent + more};
}
double DoubleOf(const Wide& a) { return std::ldexp(a.fraction, a.exponent); }
Wide operator+(const Wide& a, const Wide& b) {
  if (a.fraction == 0 || b.fraction == 0) return a.fraction == 0 ? b : a;
  const Wide &larger = a.exponent < b.exponent ? b : a, &smaller = a.exponent < b.exponent ? a : b;
  return WideOf(larger.fraction + std::ldexp(smaller.fraction, smaller.exponent - larger.exponent),
                larger.exponent);
}
Wide operator-(const Wide& a, const Wide& b) { return a + Wide{-b.fraction, b.exponent}; }
Wide operator*(const Wide& a, const Wide& b) {
  return WideOf(a.fraction * b.fraction, a.exponent + b.exponent);
}
Wide operator/(const Wide& a, const Wide& b) {
  return WideOf(a.fraction / b.fraction, a.exponent - b.exponent);
}
using WideLanes = std::array<Wide, 8>;
struct WideCell {
  Wide value;
  int64_t lane;
};

Wide WideRoot(const WideLanes& r) {
  return ((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]));
}
WideLanes WideLeaf(const std::vector<WideCell>& cells) {
  WideLanes lanes;
  for (const WideCell& cell : cells) lanes[cell.lane] = lanes[cell.lane] + cell.value;
  return lanes;
}
std::vector<WideCell> WideCells(const Leaf& leaf) {
  std::vector<WideCell> cells;
  for (const Cell& cell : leaf) cells.push_back({WideOf(cell.value), cell.lane});
  return cells;
}

Wide WideSum(const std::vector<Leaf>& leaves) {
  std::vector<WideLanes> lanes;
  for (const Leaf& leaf : leaves) lanes.push_back(WideLeaf(WideCells(leaf)));
  return WideRoot(Tree(lanes, 0, lanes.size(), [](const WideLanes& a, const WideLanes& b) {
    WideLanes joined;
    for (int i = 0; i < 8; ++i) joined[i] = a[i] + b[i];
    return joined;
  }));
}

struct WideMoments {
  double count;
  Wide mean, squares;
};

Wide WideVariance(const std::vector<Leaf>& leaves) {
  std::vector<WideMoments> moments;
  for (const Leaf& leaf : leaves) {
    const double count = static_cast<double>(leaf.size());
    std::vector<WideCell> cells = WideCells(leaf);
    const Wide mean = WideRoot(WideLeaf(cells)) / WideOf(count);
    for (WideCell& cell : cells) cell.value = (cell.value - mean) * (cell.value - mean);
    moments.push_back({count, mean, WideRoot(WideLeaf(cells))});
  }
  const WideMoments root =
      Tree(moments, 0, moments.size(), [](const WideMoments& a, const WideMoments& b) -> WideMoments {
        const double count = a.count + b.count, share = b.count / count;
        const Wide delta = b.mean - a.mean;
        return {count, a.mean + delta * WideOf(share),
                (a.squares + b.squares) + (delta * delta) * WideOf(a.count * share)};
      });
  return root.count == 1.0 ? Wide{} : root.squares / WideOf(root.count - 1.0);
}

// Of finite cells.
double EvaluateWide(const std::string& kind, const std::vector<Leaf>& leaves, double cells) {
  if (kind == "sum") return DoubleOf(WideSum(leaves));
  if (kind == "mean") {
    const double mean = DoubleOf(WideSum(leaves) / WideOf(cells));
    const double largest = std::numeric_limits<double>::max();
    return std::isinf(mean) ? std::copysign(largest, mean) : mean;
  }
  const Wide variance = WideVariance(leaves);
  if (kind == "var") return DoubleOf(variance);
  const int odd = variance.exponent % 2 == 0 ? 0 : 1;
  return std::ldexp(std::sqrt(std::ldexp(variance.fraction, odd)), (variance.exponent - odd) / 2);
}

double EvaluatePlain(const std::string& kind, const std::vector<Leaf>& leaves, double cells) {
  if (kind == "var") return Variance(leaves);
  if (kind == "sd") return std::sqrt(Variance(leaves));
  if (kind == "mean") return Fold(leaves, RuleOf("sum")) / cells;
  return Fold(leaves, RuleOf(kind));
}

double Evaluate(const std::string& kind, const std::vector<Leaf>& leaves, double cells) {
  const double plain = EvaluatePlain(kind, leaves, cells);
  const bool adds_up = kind == "sum" || kind == "mean" || kind == "var" || kind == "sd";
  if (std::isfinite(plain) || !adds_up || leaves.empty()) return plain;
  for (const Leaf& leaf : leaves)
    for (const Cell& cell : leaf)
      if (!std::isfinite(cell.value)) return plain;
  return EvaluateWide(kind, leaves, cells);
}

// "rowSums" -> "sum", "colVars" -> "var".
std::string KindOf(std::string_view op) {
  const std::string rest(op.substr(3));
  if (rest == "Sums") return "sum";
  if (rest == "Means") return "mean";
  if (rest == "Maxs") return "max";
  if (rest == "Mins") return "min";
  if (rest == "Prods") return "prod";
  if (rest == "Vars") return "var";
  if (rest == "Sds") return "sd";
  return rest;
}

}  // namespace

double FullAggregate(std::string_view op, const Matrix& x) {
  const int64_t m = x.rows(), n = x.columns();
  std::vector<Leaf> leaves;
  if (op == "trace") {
    for (int64_t i0 = 0; i0 < m; i0 += Granule(m)) {
      Leaf leaf;
      for (int64_t i = i0; i < std::min(m, i0 + Granule(m)); ++i) leaf.push_back({x.At(i, i), (i - i0) % 8});
      leaves.push_back(leaf);
    }
    return Evaluate("sum", leaves, static_cast<double>(m));
  }
  const int64_t height = FullPanelHeight(m, n);
  for (int64_t i0 = 0; i0 < m; i0 += height) {
    for (int64_t j0 = 0; j0 < n; j0 += kColumnChunk) {
      Leaf leaf;
      for (int64_t i = i0; i < std::min(m, i0 + height); ++i)
        for (int64_t j = j0; j < std::min(n, j0 + kColumnChunk); ++j)
          leaf.push_back({x.At(i, j), ((i - i0) * n + j) % 8});
      leaves.push_back(leaf);
    }
  }
  return Evaluate(std::string(op), leaves, static_cast<double>(m) * static_cast<double>(n));
}

Matrix RowAggregate(std::string_view op, const Matrix& x) {
  const int64_t m = x.rows(), n = x.columns();
  Matrix result = *FilledMatrix(m, 1, 1.0);
  for (int64_t i = 0; i < m; ++i) {
    if (op == "rowIndexMax" || op == "rowIndexMin") {
      bool found = false;
      double best = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double cell = op == "rowIndexMax" ? x.At(i, j) : -x.At(i, j);
        if (std::isnan(cell) || (found && cell < best)) continue;
        found = true;
        best = cell;
        result.mutable_data()[i] = static_cast<double>(j + 1);
      }
      continue;
    }
    std::vector<Leaf> leaves;
    for (int64_t j0 = 0; j0 < n; j0 += kColumnChunk) {
      Leaf leaf;
      for (int64_t j = j0; j < std::min(n, j0 + kColumnChunk); ++j) leaf.push_back({x.At(i, j), j % 8});
      leaves.push_back(leaf);
    }
    result.mutable_data()[i] = Evaluate(KindOf(op), leaves, static_cast<double>(n));
  }
  return result;
}

Matrix ColumnAggregate(std::string_view op, const Matrix& x) {
  const int64_t m = x.rows(), n = x.columns();
  const int64_t height =
      op == "colVars" || op == "colSds" ? MomentsPanelHeight(m, n) : ColumnPanelHeight(m, n);
  Matrix result = *FilledMatrix(1, n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<Leaf> leaves;
    for (int64_t i0 = 0; i0 < m; i0 += height) {
      Leaf leaf;
      for (int64_t i = i0; i < std::min(m, i0 + height); ++i)
        leaf.push_back({x.At(i, j), n <= 8 ? (i - i0) % 8 : 0});
      leaves.push_back(leaf);
    }
    result.mutable_data()[j] = Evaluate(KindOf(op), leaves, static_cast<double>(m));
  }
  return result;
}

Matrix Cumulative(std::string_view op, const Matrix& x) {
  const int64_t m = x.rows(), n = x.columns();
  const Rule rule = RuleOf(std::string(op.substr(3)));
  Matrix result = *FilledMatrix(m, n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    double offset = rule.start;
    for (int64_t i0 = 0; i0 < m; i0 += Granule(m)) {
      double local = rule.start;
      for (int64_t i = i0; i < std::min(m, i0 + Granule(m)); ++i) {
        local = rule.join(local, x.At(i, j));
        result.mutable_data()[i * n + j] = rule.join(offset, local);
      }
      offset = rule.join(offset, local);
    }
  }
  return result;
}

// A product of i cells by cell j: that of the others. An extreme: of the first cell since which it is the
// same.
Matrix CumulativeAdjoint(std::string_view op, const Matrix& x, const Matrix& y, const Matrix& dy) {
  Matrix result = *FilledMatrix(x.rows(), x.columns(), 0);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (int64_t c = 0; c < x.columns(); ++c) {
    for (int64_t i = 0; i < x.rows(); ++i) {
      int64_t first = i;
      while (first > 0 && same(y.At(first - 1, c), y.At(i, c))) --first;
      for (int64_t j = 0; j <= i; ++j) {
        double slope = j == first ? 1 : 0;
        if (op == "cumprod") {
          slope = 1;
          for (int64_t k = 0; k <= i; ++k) slope *= k == j ? 1 : x.At(k, c);
        }
        result.mutable_data()[j * x.columns() + c] += slope == 0 ? 0 : slope * dy.At(i, c);
      }
    }
  }
  return result;
}

}  // namespace heddle::ops::reference
