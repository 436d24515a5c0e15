// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/values/scalar.h"
#include "ops/cell_codes.h"
#include "ops/simd/math.h"

namespace heddle::ops {
namespace {

// Doubles are the whole numbers up to here.
constexpr double kMostWhole = 9007199254740992.0;
// Nodes are places of an array, and visits are counted by 32-bit integers.
constexpr int64_t kMostNode = std::numeric_limits<int32_t>::max();
// Nodes up to here need no rows of a matrix: a recursion that never ends is left to the interpreter.
constexpr size_t kMostFree = size_t{1} << 22;
constexpr int32_t kNotVisited = -1;
constexpr int32_t kOpen = -1;     // The height of a node some of whose calls are still to be visited.
constexpr size_t kMostShown = 8;  // Nodes of a circle.
// Room is made for so many nodes of a root at first.
constexpr size_t kNodesOfRoot = 256;
constexpr std::string_view kTooLarge = "has an integer that doubles do not hold";

// The ways that nodes have gone, as a tree of decisions: where a way ends is its class.
class Ways {
 public:
  Ways() : next_(1) {}
  static constexpr int32_t kStart = 0;

  int32_t Decide(int32_t place, bool taken) {
    const int32_t next = next_[static_cast<size_t>(place)].to[taken ? 1 : 0];
    return next != 0 ? next : Add(place, taken);
  }
  int32_t ClassOf(int32_t place) {
    int32_t& number = next_[static_cast<size_t>(place)].number;
    if (number < 0) {
      number = static_cast<int32_t>(ends_.size());
      ends_.push_back(place);
    }
    return number;
  }
  std::vector<std::vector<bool>> Paths() const {
    std::vector<std::vector<bool>> paths;
    for (int32_t place : ends_) {
      std::vector<bool>& path = paths.emplace_back();
      for (; place != kStart; place = next_[static_cast<size_t>(place)].from)
        path.push_back(next_[static_cast<size_t>(place)].taken);
      std::reverse(path.begin(), path.end());
    }
    return paths;
  }

 private:
  struct Place {
    int32_t to[2] = {0, 0};
    int32_t from = 0;
    bool taken = false;
    int32_t number = -1;
  };
  int32_t Add(int32_t from, bool taken) {
    const auto place = static_cast<int32_t>(next_.size());
    next_.push_back({.from = from, .taken = taken});
    next_[static_cast<size_t>(from)].to[taken ? 1 : 0] = place;
    return place;
  }

  std::vector<Place> next_;
  std::vector<int32_t> ends_;
};

// One matrix of the structure: dense doubles or floats.
struct Cells {
  explicit Cells(const Matrix& matrix)
      : rows(matrix.rows()),
        columns(matrix.columns()),
        doubles(matrix.element_type() == ElementType::kFloat64 ? matrix.data<double>() : nullptr),
        floats(doubles == nullptr ? matrix.data<float>() : nullptr) {}
  double At(int64_t place) const { return doubles != nullptr ? doubles[place] : floats[place]; }
  int64_t rows, columns;
  const double* doubles;
  const float* floats;
};

class Visitor {
 public:
  Visitor(const StructureProgram& program, std::span<const Matrix> matrices, std::span<const double> uniforms,
          int32_t most_decisions)
      : program_(program),
        cells_(matrices.begin(), matrices.end()),
        uniforms_(uniforms),
        most_decisions_(most_decisions),
        registers_(static_cast<size_t>(program.registers)) {
    SetConstants();
  }

  std::optional<std::vector<int64_t>> CallsOf(std::span<const int64_t> nodes) {
    std::vector<int64_t> called;
    called_ = &called;
    for (const int64_t node : nodes)
      if (!RunNode(node)) return std::nullopt;
    return called;
  }

  const std::string& why() const { return why_; }

  Result<std::optional<VisitedStructure>> Run(std::span<const int64_t> roots, std::string_view function) {
    int64_t most = 0;
    for (const Cells& cells : cells_) most = std::max(most, cells.rows);
    visit_of_.assign(static_cast<size_t>(most) + 1, kNotVisited);
    const size_t expected = std::min(static_cast<size_t>(most), kNodesOfRoot * roots.size());
    out_.nodes.reserve(expected);
    out_.class_of.reserve(expected);
    out_.heights.reserve(expected);
    out_.subtrees.reserve(expected);
    out_.children.reserve(expected);
    out_.numbers.reserve(expected);
    for (const int64_t root : roots) {
      int32_t node = 0;
      if (!IsNode(static_cast<double>(root), &node)) return std::optional<VisitedStructure>();
      if (!VisitFrom(node)) return Failed(function);
      out_.roots.push_back(visit_of_[static_cast<size_t>(node)]);
    }
    for (const std::vector<bool>& path : ways_.Paths()) {
      const auto k = out_.classes.size();
      out_.classes.push_back({path, sizes_of_classes_[k].first, sizes_of_classes_[k].second});
    }
    return std::optional<VisitedStructure>(std::move(out_));
  }

 private:
  using Code = StructureProgram::Code;

  // A node whose calls are being visited.
  struct Open {
    int32_t visit = 0;
    int32_t height = 0;        // Of the calls visited so far, one more.
    size_t next = 0, end = 0;  // Calls that are left, in out_.children: still numbers of nodes.
  };

  // False: circle_, error_, or nothing that this program knows.
  bool VisitFrom(int32_t root) {
    if (!Reserve(root)) return false;
    if (visit_of_[static_cast<size_t>(root)] != kNotVisited) return true;
    if (!Enter(root)) return false;
    while (!open_.empty()) {
      Open& open = open_.back();
      if (open.next == open.end) {
        const auto visit = static_cast<size_t>(open.visit);
        const int32_t height = open.height;
        out_.heights[visit] = height;
        out_.subtrees[visit] = static_cast<int32_t>(out_.nodes.size() - visit);
        open_.pop_back();
        if (!open_.empty()) open_.back().height = std::max(open_.back().height, height + 1);
        continue;
      }
      int32_t& child = out_.children[open.next++];
      const int32_t node = child;
      if (!Reserve(node)) return false;
      const int32_t visit = visit_of_[static_cast<size_t>(node)];
      if (visit == kNotVisited) {
        child = static_cast<int32_t>(out_.nodes.size());
        open.height = std::max(open.height, 1);
        if (!Enter(node)) return false;
        continue;
      }
      out_.is_tree = false;
      child = visit;
      const int32_t height = out_.heights[static_cast<size_t>(visit)];
      if (height == kOpen) {
        circle_ = node;
        return false;
      }
      open.height = std::max(open.height, height + 1);
    }
    return true;
  }

  // Runs a node that is met for the first time. Behind it, its calls are to be visited.
  bool Enter(int32_t node) {
    const auto visit = static_cast<int32_t>(out_.nodes.size());
    const size_t calls = out_.children.size(), given = out_.numbers.size();
    visit_of_[static_cast<size_t>(node)] = visit;
    out_.nodes.push_back(node);
    if (!RunNode(node)) return false;
    const size_t end = out_.children.size();
    if (static_cast<size_t>(out_.class_of.back()) == sizes_of_classes_.size())
      sizes_of_classes_.push_back(
          {static_cast<int32_t>(end - calls), static_cast<int32_t>(out_.numbers.size() - given)});
    out_.heights.push_back(end == calls ? 0 : kOpen);
    out_.subtrees.push_back(1);
    if (end > calls) open_.push_back({.visit = visit, .next = calls, .end = end});
    return true;
  }

  Result<std::optional<VisitedStructure>> Failed(std::string_view function) const {
    if (!error_.ok()) return error_;
    if (circle_ < 0) return std::optional<VisitedStructure>();
    std::string circle;
    size_t shown = 0;
    for (const Open& open : open_) {
      const int32_t node = out_.nodes[static_cast<size_t>(open.visit)];
      if ((shown == 0 && node != circle_) || shown > kMostShown) continue;
      circle += ++shown > kMostShown ? "... -> " : fmt::format("{} -> ", node);
    }
    return FailedPrecondition("function '{}': the calls never end: nodes {}{} are children of each other",
                              function, circle, circle_)
        .WithNote("a structure is a tree, or a graph without circles");
  }

  // The node parameter takes whole numbers; what else it would take, the interpreter says.
  bool IsNode(double number, int32_t* node) {
    if (number >= 0 && number < static_cast<double>(kMostNode)) {
      *node = static_cast<int32_t>(number);
      if (static_cast<double>(*node) == number) return true;
    }
    why_ = fmt::format("{} is called as a node (C2)", number);
    return false;
  }

  // Room for nodes that no matrix of the structure has a row for: the steps of a sequence, or 0 before the
  // first.
  bool Reserve(int32_t node) {
    const auto place = static_cast<size_t>(node);
    if (place < visit_of_.size()) return true;
    if (place > std::max(kMostFree, 64 * visit_of_.size())) {
      why_ = fmt::format("node {} is behind all rows of its matrices", node);
      return false;
    }
    visit_of_.resize(place + 1, kNotVisited);
    return true;
  }

  // Registers that only one constant is written to have it before the first node; the steps that are left.
  void SetConstants() {
    std::vector<int32_t> writes(registers_.size(), 0), left(program_.steps.size() + 1, 0);
    for (const int32_t unset : program_.unset) ++writes[static_cast<size_t>(unset)];
    for (const StructureProgram::Step& step : program_.steps)
      if (IsWriting(step.code)) ++writes[static_cast<size_t>(step.target)];
    for (size_t at = 0; at < program_.steps.size(); ++at) {
      const StructureProgram::Step& step = program_.steps[at];
      const bool is_set = step.code == Code::kConstant && step.target != 0 &&
                          writes[static_cast<size_t>(step.target)] == 1 &&
                          !(step.is_whole && !IsWhole(step.constant));
      if (is_set)
        registers_[static_cast<size_t>(step.target)] = step.constant;
      else
        steps_.push_back(step);
      left[at + 1] = static_cast<int32_t>(steps_.size());
    }
    for (StructureProgram::Step& step : steps_)
      if (step.code == Code::kJump || step.code == Code::kBranch)
        step.index = left[static_cast<size_t>(step.index)];
  }
  static bool IsWriting(Code code) {
    switch (code) {
      case Code::kJump:
      case Code::kBranch:
      case Code::kCall:
      case Code::kGive:
      case Code::kNeed:
      case Code::kEnd: return false;
      default: return true;
    }
  }

  bool ReadCell(const StructureProgram::Step& step, int64_t node) {
    const Cells& cells = cells_[static_cast<size_t>(step.index)];
    const double row = registers_[static_cast<size_t>(step.a)],
                 column = registers_[static_cast<size_t>(step.b)];
    if (row >= 1 && row <= static_cast<double>(cells.rows) && column >= 1 &&
        column <= static_cast<double>(cells.columns)) {
      const auto i = static_cast<int64_t>(row), j = static_cast<int64_t>(column);
      if (static_cast<double>(i) == row && static_cast<double>(j) == column) {
        registers_[static_cast<size_t>(step.target)] = cells.At((i - 1) * cells.columns + j - 1);
        return true;
      }
    }
    return ReadOtherCell(step, node, cells, row, column);
  }

  // Where the numbers are not whole, or outside.
  bool ReadOtherCell(const StructureProgram::Step& step, int64_t node, const Cells& cells, double row,
                     double column) {
    // Most are whole; the language truncates the others. NaN is no position.
    const auto position = [](double x) {
      if (!(std::fabs(x) < kMostWhole)) return int64_t{-1};
      const auto whole = static_cast<int64_t>(x);
      return static_cast<double>(whole) == x ? whole : TruncateToInteger(x);
    };
    const int64_t i = position(row), j = position(column);
    if (i < 1 || i > cells.rows || j < 1 || j > cells.columns) {
      error_ =
          FailedPrecondition("node {} reads [{},{}] of '{}', which is {} x {}", node, i, j,
                             program_.matrices[static_cast<size_t>(step.index)], cells.rows, cells.columns);
      return false;
    }
    registers_[static_cast<size_t>(step.target)] = cells.At((i - 1) * cells.columns + j - 1);
    return true;
  }

  // False: error_, or nothing that this program knows.
  bool RunNode(int64_t node) {
    double* const r = registers_.data();
    const StructureProgram::Step* const steps = steps_.data();
    r[0] = static_cast<double>(node);
    for (const int32_t unset : program_.unset) r[unset] = std::numeric_limits<double>::quiet_NaN();
    int32_t place = Ways::kStart, decisions = 0;
    for (size_t at = 0;; ++at) {
      const StructureProgram::Step& step = steps[at];
      const double a = r[step.a], b = r[step.b];
      double& target = r[step.target];
      switch (step.code) {
        case Code::kConstant: target = step.constant; continue;
        case Code::kCopy:
        case Code::kDouble: target = a; continue;
        case Code::kCell:
          if (!ReadCell(step, node)) return false;
          continue;
        case Code::kUniform: target = uniforms_[static_cast<size_t>(step.index)]; continue;
        case Code::kAdd: target = a + b; break;
        case Code::kSubtract: target = a - b; break;
        case Code::kMultiply: target = a * b; break;
        case Code::kDivide: target = a / b; continue;
        case Code::kEqual: target = a == b; continue;
        case Code::kNotEqual: target = a != b; continue;
        case Code::kLess: target = a < b; continue;
        case Code::kLessEqual: target = a <= b; continue;
        case Code::kAnd: target = a != 0 && b != 0; continue;
        case Code::kOr: target = a != 0 || b != 0; continue;
        case Code::kNot: target = a == 0; continue;
        case Code::kBinary: {
          const auto code = static_cast<BinaryCode>(step.index);
          const bool divides = code == BinaryCode::kIntegerDivide || code == BinaryCode::kModulus;
          if (!step.is_whole || !divides) {
            target = Apply(code, a, b);
            break;
          }
          // Quotients of integers are rounded towards zero; by zero they are none.
          if (b == 0) return Refuse(node, "divides integers by zero");
          target = code == BinaryCode::kModulus ? std::fmod(a, b) : std::trunc(a / b);
          break;
        }
        case Code::kUnary: target = Apply(static_cast<UnaryCode>(step.index), a); continue;
        case Code::kWhole:
          if (!IsWhole(a)) return Refuse(node, "has a number that is declared an integer and is none");
          target = a;
          continue;
        case Code::kBoolean: target = a != 0; continue;
        case Code::kTruncate:
          if (!(std::fabs(a) < kMostWhole)) return Refuse(node, kTooLarge);
          target = static_cast<double>(TruncateToInteger(a));
          continue;
        case Code::kStep: target = a <= b ? 1 : -1; continue;
        case Code::kRounds: {
          const double by = r[step.index];
          if (!IsWhole(a) || !IsWhole(b) || !IsWhole(by) || by == 0)
            return Refuse(node, "has a loop whose bounds are no whole numbers");
          target = (by > 0 ? a > b : a < b) ? 0 : std::floor((b - a) / by) + 1;
          continue;
        }
        case Code::kJump: at = static_cast<size_t>(step.index) - 1; continue;
        case Code::kBranch: {
          if (a != a) return Refuse(node, "decides by NaN (C3)");
          if (++decisions > most_decisions_)
            return Refuse(node, fmt::format("makes more than {} decisions (C8)", most_decisions_));
          const bool taken = a != 0;
          place = ways_.Decide(place, taken);
          if (!taken) at = static_cast<size_t>(step.index) - 1;
          continue;
        }
        case Code::kCall: {
          if (called_ != nullptr) {
            if (!IsWhole(a)) return false;
            called_->push_back(static_cast<int64_t>(a));
            continue;
          }
          int32_t child = 0;
          if (!IsNode(a, &child)) return false;
          out_.children.push_back(child);
          continue;
        }
        case Code::kGive: out_.numbers.push_back(a); continue;
        case Code::kNeed:
          if (a != a) return Refuse(node, "reads a variable that has no value");
          continue;
        case Code::kEnd: out_.class_of.push_back(ways_.ClassOf(place)); return true;
      }
      if (step.is_whole && !(std::fabs(target) < kMostWhole)) return Refuse(node, kTooLarge);
    }
  }

  bool Refuse(int64_t node, std::string_view what) {
    why_ = fmt::format("node {} {}", node, what);
    return false;
  }

  static bool IsWhole(double x) { return std::fabs(x) < kMostWhole && std::floor(x) == x; }

  const StructureProgram& program_;
  std::vector<StructureProgram::Step> steps_;
  const std::vector<Cells> cells_;
  const std::span<const double> uniforms_;
  const int32_t most_decisions_;
  std::vector<double> registers_;
  std::vector<int32_t> visit_of_;  // By node.
  Ways ways_;
  std::vector<std::pair<int32_t, int32_t>> sizes_of_classes_;  // Calls and numbers of each of its nodes.
  std::vector<Open> open_;                                     // From the root to where the visit is.
  VisitedStructure out_;
  Status error_;
  int32_t circle_ = -1;                     // A node that was called, from node to node, by itself.
  std::vector<int64_t>* called_ = nullptr;  // CallsOf only.
  std::string why_;                         // Of what was refused.
};

}  // namespace

Result<std::optional<VisitedStructure>> VisitStructure(const StructureProgram& program,
                                                       std::span<const Matrix> matrices,
                                                       std::span<const double> uniforms,
                                                       std::span<const int64_t> roots, int32_t most_decisions,
                                                       std::string_view function, std::string* why) {
  Visitor visitor(program, matrices, uniforms, most_decisions);
  Result<std::optional<VisitedStructure>> visited = visitor.Run(roots, function);
  if (why != nullptr) *why = visitor.why();
  return visited;
}

std::optional<std::vector<int64_t>> CallsOf(const StructureProgram& program, std::span<const Matrix> matrices,
                                            std::span<const double> uniforms,
                                            std::span<const int64_t> nodes) {
  return Visitor(program, matrices, uniforms, std::numeric_limits<int32_t>::max()).CallsOf(nodes);
}

}  // namespace heddle::ops
