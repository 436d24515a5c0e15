// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure/visit_structure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/values/scalar.h"
#include "ops/base/cell_codes.h"
#include "ops/recursion/structure/decision_tree.h"
#include "ops/recursion/structure/structure_steps.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;
using Step = StructureSteps::Step;

// Doubles are the whole numbers up to here.
constexpr double kMostWhole = 9007199254740992.0;
// Nodes are places of an array, and visits are counted by 32-bit integers.
constexpr int64_t kMostNode = std::numeric_limits<int32_t>::max();
// Nodes up to here need no rows of a matrix: a recursion that never ends is left to the interpreter.
constexpr size_t kMostFree = size_t{1} << 22;
constexpr int32_t kNotVisited = -1;
constexpr int32_t kOpen = -1;     // The batch of a node some of whose calls are still to be visited.
constexpr size_t kMostShown = 8;  // Nodes of a circle.
// Batches of heights below are found in an array.
constexpr int32_t kLow = 64;
constexpr std::string_view kTooLarge = "has a number that no integer holds";

bool IsWhole(double x) { return std::fabs(x) < kMostWhole && std::floor(x) == x; }

// A position of a matrix. Most numbers are whole; the language truncates the others. NaN is none.
int64_t PositionOf(double x) {
  if (!(std::fabs(x) < kMostWhole)) return -1;
  const auto whole = static_cast<int64_t>(x);
  return static_cast<double>(whole) == x ? whole : TruncateToInteger(x);
}

}  // namespace

class StructureVisitor::Machine {
 public:
  Machine(const StructureProgram& program, std::vector<Matrix> matrices, std::span<const double> uniforms,
          int32_t most_decisions)
      : program_(program),
        matrices_(std::move(matrices)),
        most_decisions_(most_decisions),
        steps_(PrepareSteps(program, matrices_, uniforms)),
        decisions_(most_decisions) {}

  Result<const VisitedStructure*> Visit(std::span<const int64_t> roots, std::string_view function) {
    Clear();
    for (const int64_t root : roots) {
      int32_t node = 0;
      if (!IsNode(static_cast<double>(root), &node)) return nullptr;
      if (!VisitFrom(node)) return Failed(function);
      out_.roots.push_back(visit_of_[static_cast<size_t>(node)]);
    }
    for (size_t k = 0; k < out_.classes.size(); ++k)
      out_.classes[k].decisions = decisions_.DecisionsOf(static_cast<int32_t>(k));
    return &out_;
  }

  std::optional<std::vector<int64_t>> CallsOf(std::span<const int64_t> nodes) {
    out_ = {};
    for (const int64_t node : nodes)
      if (std::abs(node) > kMostNode || !RunNode(static_cast<int32_t>(node))) return std::nullopt;
    return std::vector<int64_t>(out_.children.begin(), out_.children.end());
  }

  const std::string& why() const { return why_; }
  size_t bytes() const {
    return (visit_of_.capacity() + out_.children.capacity()) * sizeof(int32_t) +
           out_.visits.capacity() * sizeof(VisitedStructure::Visit) +
           out_.numbers.capacity() * sizeof(double) + open_.capacity() * sizeof(Open);
  }

 private:
  // A node whose calls are being visited.
  struct Open {
    int32_t visit = 0, node_class = 0;
    int32_t height = 0;        // One more than that of the calls visited so far.
    size_t next = 0, end = 0;  // Calls that are left, in out_.children: still numbers of nodes.
  };

  void Clear() {
    int64_t most = 0;
    for (const Matrix& matrix : matrices_) most = std::max(most, matrix.rows());
    if (visit_of_.empty()) visit_of_.assign(static_cast<size_t>(most) + 1, kNotVisited);
    for (const auto& visit : out_.visits) visit_of_[static_cast<size_t>(visit.node)] = kNotVisited;
    out_.classes.clear();
    out_.batches.clear();
    out_.visits.clear();
    out_.children.clear();
    out_.numbers.clear();
    out_.roots.clear();
    out_.is_tree = true;
    out_.components.clear();
    decisions_.Clear();
    low_batches_.clear();
    high_batches_.clear();
    open_.clear();
    error_ = OkStatus();
    circle_ = -1;
    why_.clear();
  }

  // False: circle_, error_, or nothing that this program knows.
  bool VisitFrom(int32_t root) {
    if (!Reserve(root)) return false;
    if (visit_of_[static_cast<size_t>(root)] != kNotVisited) return true;
    out_.components.push_back(static_cast<int32_t>(out_.visits.size()));
    if (!Enter(root)) return false;
    while (!open_.empty()) {
      Open& open = open_.back();
      if (open.next == open.end) {
        const int32_t height = open.height;
        VisitedStructure::Visit& visit = out_.visits[static_cast<size_t>(open.visit)];
        visit.batch = BatchOf(open.node_class, height);
        visit.subtree = static_cast<int32_t>(out_.visits.size()) - open.visit;
        open_.pop_back();
        if (!open_.empty()) open_.back().height = std::max(open_.back().height, height + 1);
        continue;
      }
      int32_t& child = out_.children[open.next++];
      const int32_t node = child;
      if (!Reserve(node)) return false;
      const int32_t visit = visit_of_[static_cast<size_t>(node)];
      if (visit == kNotVisited) {
        child = static_cast<int32_t>(out_.visits.size());
        if (!Enter(node)) return false;
        continue;
      }
      out_.is_tree = false;
      while (out_.components.back() > visit) out_.components.pop_back();
      child = visit;
      const int32_t batch = out_.visits[static_cast<size_t>(visit)].batch;
      if (batch == kOpen) {
        circle_ = node;
        return false;
      }
      open.height = std::max(open.height, out_.batches[static_cast<size_t>(batch)].height + 1);
    }
    return true;
  }

  // Runs a node that is met for the first time. Then its calls are to be visited.
  bool Enter(int32_t node) {
    const auto visit = static_cast<int32_t>(out_.visits.size());
    const size_t calls = out_.children.size(), number_count = out_.numbers.size();
    visit_of_[static_cast<size_t>(node)] = visit;
    if (!RunNode(node)) {
      visit_of_[static_cast<size_t>(node)] = kNotVisited;  // out_ does not have it.
      return false;
    }
    const size_t end = out_.children.size();
    if (static_cast<size_t>(class_) == out_.classes.size())
      AddClass(end - calls, out_.numbers.size() - number_count);
    if (end == calls) {
      out_.visits.push_back({.node = node, .batch = BatchOf(class_, 0), .subtree = 1});
      return true;
    }
    out_.visits.push_back({.node = node, .batch = kOpen});
    open_.push_back({.visit = visit, .node_class = class_, .height = 1, .next = calls, .end = end});
    return true;
  }

  [[gnu::noinline]] void AddClass(size_t calls, size_t number_count) {
    out_.classes.push_back(
        {.calls = static_cast<int32_t>(calls), .number_count = static_cast<int32_t>(number_count)});
    low_batches_.resize(out_.classes.size() * kLow, kOpen);
  }

  int32_t BatchOf(int32_t node_class, int32_t height) {
    int32_t batch = kOpen;
    if (height < kLow)
      batch = low_batches_[static_cast<size_t>(node_class) * kLow + static_cast<size_t>(height)];
    if (batch == kOpen) batch = OtherBatchOf(node_class, height);
    ++out_.batches[static_cast<size_t>(batch)].size;
    return batch;
  }
  [[gnu::noinline]] int32_t OtherBatchOf(int32_t node_class, int32_t height) {
    int32_t& batch = height < kLow
                         ? low_batches_[static_cast<size_t>(node_class) * kLow + static_cast<size_t>(height)]
                         : high_batches_.try_emplace({node_class, height}, kOpen).first->second;
    if (batch == kOpen) {
      batch = static_cast<int32_t>(out_.batches.size());
      out_.batches.push_back({.node_class = node_class, .height = height});
    }
    return batch;
  }

  Result<const VisitedStructure*> Failed(std::string_view function) const {
    if (!error_.ok()) return error_;
    if (circle_ < 0) return nullptr;
    std::string circle;
    size_t shown = 0;
    for (const Open& open : open_) {
      const int32_t node = out_.visits[static_cast<size_t>(open.visit)].node;
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
    return RefuseCall(number);
  }

  [[gnu::noinline, gnu::cold]] bool RefuseCall(double number) {
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

  [[gnu::noinline, gnu::cold]] bool ReadCell(const Step& step, int32_t node, double* cell) {
    const Matrix& matrix = matrices_[static_cast<size_t>(step.matrix)];
    const int64_t row = PositionOf(steps_.registers[static_cast<size_t>(step.a)]),
                  column = PositionOf(steps_.registers[static_cast<size_t>(step.b)]);
    if (row < 1 || row > matrix.rows() || column < 1 || column > matrix.columns()) {
      error_ = FailedPrecondition("node {} reads [{},{}] of '{}', which is {} x {}", node, row, column,
                                  program_.matrices[static_cast<size_t>(step.matrix)], matrix.rows(),
                                  matrix.columns());
      if (const auto found = program_.positions.find(step.source); found != program_.positions.end())
        error_ = std::move(error_).At(found->second);
      return false;
    }
    *cell = matrix.At(row - 1, column - 1);
    return true;
  }

  // The cell of a column that is the same for all nodes, before it is truncated.
  [[gnu::always_inline]] bool ReadColumn(const Step& step, int32_t node, double* cell) {
    int64_t row = node;
    if (!step.is_of_node) {
      const double number = steps_.registers[static_cast<size_t>(step.a)];
      row = number >= 1 && number < static_cast<double>(kMostNode) ? static_cast<int32_t>(number) : 0;
      if (static_cast<double>(row) != number) return ReadCell(step, node, cell);
    }
    if (row < 1 || row > step.rows) return ReadCell(step, node, cell);
    const char* const at = step.column + (row - 1) * step.row_bytes;
    *cell = step.is_float ? *reinterpret_cast<const float*>(at) : *reinterpret_cast<const double*>(at);
    return true;
  }

  // As as.integer does.
  [[gnu::always_inline]] bool Truncate(int32_t node, double* number) {
    if (!(std::fabs(*number) < kMostWhole)) return Refuse(node, kTooLarge);
    if (std::trunc(*number) != *number) *number = static_cast<double>(TruncateToInteger(*number));
    return true;
  }

  [[gnu::always_inline]] bool Call(double number) {
    int32_t child = 0;
    if (!IsNode(number, &child)) return false;
    out_.children.push_back(child);
    return true;
  }

  // False: error_, or nothing that this program knows.
  [[gnu::noinline]] bool RunNode(int32_t node) {
    double* const r = steps_.registers.data();
    const Step* const first = steps_.steps.data();
    r[0] = node;
    for (const int32_t unset : program_.unset) r[unset] = std::numeric_limits<double>::quiet_NaN();
    int32_t place = DecisionTree::kRoot;
    for (const Step* at = first;;) {
      const Step& step = *at++;
      double cell = 0;
      bool taken = false;
      switch (step.code) {
        case Code::kCallCell:
        case Code::kGiveCell:
        case Code::kCellOf:
          if (!ReadColumn(step, node, &cell)) return false;
          if (step.truncates && !Truncate(node, &cell)) return false;
          if (step.code == Code::kCellOf) {
            r[step.target] = cell;
          } else if (step.code == Code::kGiveCell) {
            out_.numbers.push_back(cell);
          } else if (!Call(cell)) {
            return false;
          }
          continue;
        case Code::kDecideCell:
          if (!ReadColumn(step, node, &cell)) return false;
          if (step.truncates && !Truncate(node, &cell)) return false;
          if (step.refuses_nan && cell != cell) return RefuseNan(node);
          taken = (cell >= step.low && cell <= step.high) != step.is_outside;
          break;
        case Code::kDecide:
          taken = (r[step.a] >= step.low && r[step.a] <= step.high) != step.is_outside;
          break;
        case Code::kBranch:
          if (r[step.a] != r[step.a]) return RefuseNan(node);
          taken = r[step.a] != 0;
          break;
        case Code::kNextRound:
          r[step.target] += r[step.a];
          r[step.b] -= 1;
          if (r[step.b] != r[step.b]) return RefuseNan(node);
          taken = r[step.b] != 0;
          if (taken) at = first + step.next;
          break;
        case Code::kJump: at = first + step.index; continue;
        case Code::kCall:
          if (!Call(r[step.a])) return false;
          continue;
        case Code::kGive: out_.numbers.push_back(r[step.a]); continue;
        case Code::kEnd: class_ = decisions_.ClassOf(place); return true;
        default:
          if (!Compute(step, node)) return false;
          continue;
      }
      place = decisions_.Decide(place, taken);
      if (place == DecisionTree::kTooDeep) return RefuseDecisions(node);
      if (!taken) at = first + step.index;
    }
  }

  // Steps that go on to the next.
  bool Compute(const Step& step, int32_t node) {
    const double* const r = steps_.registers.data();
    const double a = r[step.a], b = r[step.b];
    double& target = steps_.registers[static_cast<size_t>(step.target)];
    switch (step.code) {
      case Code::kCell: return ReadCell(step, node, &target);
      case Code::kConstant:
      case Code::kUniform: target = step.constant; return true;
      case Code::kCopy:
      case Code::kDouble: target = a; return true;
      case Code::kAdd: target = a + b; break;
      case Code::kSubtract: target = a - b; break;
      case Code::kMultiply: target = a * b; break;
      case Code::kDivide: target = a / b; return true;
      case Code::kEqual: target = a == b; return true;
      case Code::kNotEqual: target = a != b; return true;
      case Code::kLess: target = a < b; return true;
      case Code::kLessEqual: target = a <= b; return true;
      case Code::kAnd: target = a != 0 && b != 0; return true;
      case Code::kOr: target = a != 0 || b != 0; return true;
      case Code::kNot: target = a == 0; return true;
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
      case Code::kUnary: target = Apply(static_cast<UnaryCode>(step.index), a); return true;
      case Code::kWhole:
        if (!IsWhole(a)) return Refuse(node, "has a number that is declared an integer and is none");
        target = a;
        return true;
      case Code::kBoolean: target = a != 0; return true;
      case Code::kTruncate: target = a; return Truncate(node, &target);
      case Code::kStep: target = a <= b ? 1 : -1; return true;
      case Code::kRounds: {
        const double by = r[step.index];
        if (!IsWhole(a) || !IsWhole(b) || !IsWhole(by) || by == 0)
          return Refuse(node, "has a loop whose bounds are no whole numbers");
        target = (by > 0 ? a > b : a < b) ? 0 : std::floor((b - a) / by) + 1;
        return true;
      }
      case Code::kNeed: return a == a || Refuse(node, "reads a variable that has no value");
      default: return true;  // RunNode runs these.
    }
    return !step.is_whole || std::fabs(target) < kMostWhole || Refuse(node, kTooLarge);
  }

  [[gnu::noinline, gnu::cold]] bool Refuse(int32_t node, std::string_view what) {
    why_ = fmt::format("node {} {}", node, what);
    return false;
  }
  [[gnu::cold]] bool RefuseNan(int32_t node) { return Refuse(node, "decides by NaN (C3)"); }
  [[gnu::cold]] bool RefuseDecisions(int32_t node) {
    return Refuse(node, fmt::format("makes more than {} decisions (C8)", most_decisions_));
  }

  struct HashOfBatch {
    size_t operator()(const std::pair<int32_t, int32_t>& batch) const {
      return std::hash<int64_t>()((int64_t{batch.first} << 32) + batch.second);
    }
  };

  const StructureProgram& program_;
  const std::vector<Matrix> matrices_;
  const int32_t most_decisions_;
  StructureSteps steps_;
  std::vector<int32_t> visit_of_;  // By node; all kNotVisited but those of out_.
  DecisionTree decisions_;
  int32_t class_ = 0;                 // Of the last node that ran.
  std::vector<int32_t> low_batches_;  // kLow of each class, by height.
  std::unordered_map<std::pair<int32_t, int32_t>, int32_t, HashOfBatch>
      high_batches_;        // By class and height.
  std::vector<Open> open_;  // From the root to where the visit is.
  VisitedStructure out_;
  Status error_;
  int32_t circle_ = -1;  // A node that was called, from node to node, by itself.
  std::string why_;      // Of what was refused.
};

StructureVisitor::StructureVisitor(const StructureProgram& program, std::vector<Matrix> matrices,
                                   std::span<const double> uniforms, int32_t most_decisions)
    : machine_(std::make_unique<Machine>(program, std::move(matrices), uniforms, most_decisions)) {}

StructureVisitor::~StructureVisitor() = default;

Result<const VisitedStructure*> StructureVisitor::Visit(std::span<const int64_t> roots,
                                                        std::string_view function) {
  return machine_->Visit(roots, function);
}

const std::string& StructureVisitor::why() const { return machine_->why(); }

size_t StructureVisitor::bytes() const { return machine_->bytes(); }

std::optional<std::vector<int64_t>> StructureVisitor::CallsOf(std::span<const int64_t> nodes) {
  return machine_->CallsOf(nodes);
}

}  // namespace heddle::ops
