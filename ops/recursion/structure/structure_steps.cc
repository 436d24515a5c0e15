// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure/structure_steps.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;
using Step = StructureSteps::Step;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Jumps(Code code) {
  return code == Code::kJump || code == Code::kBranch || code == Code::kDecide || code == Code::kDecideCell ||
         code == Code::kNextRound;
}

bool Writes(Code code) {
  switch (code) {
    case Code::kCall:
    case Code::kGive:
    case Code::kNeed:
    case Code::kEnd:
    case Code::kCallCell:
    case Code::kGiveCell: return false;
    default: return !Jumps(code) || code == Code::kNextRound;
  }
}

// True for steps that do nothing but write their register. Other steps may end the visit, or leave it to the
// interpreter, and stay even where nothing reads the register.
bool OnlyWrites(const Step& step) {
  switch (step.code) {
    case Code::kAdd:
    case Code::kSubtract:
    case Code::kMultiply: return !step.is_whole;
    case Code::kConstant:
    case Code::kCopy:
    case Code::kUniform:
    case Code::kDivide:
    case Code::kEqual:
    case Code::kNotEqual:
    case Code::kLess:
    case Code::kLessEqual:
    case Code::kAnd:
    case Code::kOr:
    case Code::kNot:
    case Code::kUnary:
    case Code::kBoolean:
    case Code::kDouble:
    case Code::kStep: return true;
    default: return false;
  }
}

class Preparer {
 public:
  Preparer(const StructureProgram& program, std::span<const Matrix> matrices,
           std::span<const double> uniforms)
      : program_(program), matrices_(matrices), known_(static_cast<size_t>(program.registers), false) {
    out_.registers.resize(known_.size(), 0.0);
    for (const StructureProgram::Step& step : program.steps)
      out_.steps.push_back({.code = step.code,
                            .is_whole = step.is_whole,
                            .target = step.target,
                            .a = step.a,
                            .b = step.b,
                            .index = step.index,
                            .source = static_cast<int32_t>(out_.steps.size()),
                            .matrix = step.code == Code::kCell ? step.index : 0,
                            .constant = step.code == Code::kUniform
                                            ? uniforms[static_cast<size_t>(step.index)]
                                            : step.constant});
  }

  StructureSteps Run() {
    SetKnown();
    ShortenJumps();
    while (DropUnread()) {
    }
    Group([this](size_t at) { return IsDecision(at); });
    Group([this](size_t at) { return IsRound(at); });
    for (Step& step : out_.steps) FixColumn(&step);
    while (Group([this](size_t at) { return IsTakenOn(at); })) {
    }
    Group([this](size_t at) { return IsUsed(at); });
    return std::move(out_);
  }

 private:
  Step& At(size_t at) { return out_.steps[at]; }
  size_t size() const { return out_.steps.size(); }

  // Finds registers that only one constant, or one number that all nodes share, is written to, and writes it.
  void SetKnown() {
    std::vector<int32_t> writes(known_.size(), 0);
    for (const int32_t unset : program_.unset) ++writes[static_cast<size_t>(unset)];
    for (const Step& step : out_.steps)
      if (Writes(step.code)) ++writes[static_cast<size_t>(step.target)];
    is_node_kept_ = writes[0] == 0;
    std::vector<bool> goes(size(), false);
    for (size_t at = 0; at < size(); ++at) {
      const Step& step = At(at);
      const auto target = static_cast<size_t>(step.target);
      if (step.target == 0 || !Writes(step.code) || writes[target] != 1) continue;
      if (step.code != Code::kUniform && step.code != Code::kConstant) continue;
      known_[target] = true;
      out_.registers[target] = step.constant;
      goes[at] = true;
    }
    Drop(goes);
  }

  void ShortenJumps() {
    std::vector<bool> goes(size(), false);
    for (size_t at = 0; at < size(); ++at) {
      Step& step = At(at);
      if (!Jumps(step.code)) continue;
      for (size_t most = size(); most > 0 && At(static_cast<size_t>(step.index)).code == Code::kJump; --most)
        step.index = At(static_cast<size_t>(step.index)).index;
      if (step.code != Code::kJump) continue;
      if (At(static_cast<size_t>(step.index)).code == Code::kEnd) step = {.code = Code::kEnd};
      goes[at] = step.code == Code::kJump && static_cast<size_t>(step.index) == at + 1;
    }
    Drop(goes);
  }

  bool DropUnread() {
    CountReads();
    std::vector<bool> goes(size(), false);
    bool any = false;
    for (size_t at = 0; at < size(); ++at) {
      const Step& step = At(at);
      goes[at] = OnlyWrites(step) && step.target != 0 && reads_[static_cast<size_t>(step.target)] == 0;
      any = any || goes[at];
    }
    Drop(goes);
    return any;
  }

  // Counts the steps that may read a register. Counting a step too many only keeps a step that could be
  // dropped.
  void CountReads() {
    reads_.assign(known_.size(), 0);
    const auto reads = [&](int32_t read) { ++reads_[static_cast<size_t>(read)]; };
    for (const Step& step : out_.steps) {
      if (step.code == Code::kEnd || step.code == Code::kJump) continue;
      reads(step.a);
      reads(step.b);
      if (step.code == Code::kRounds) reads(step.index);
      if (step.code == Code::kNextRound) reads(step.target);
    }
  }

  void Drop(const std::vector<bool>& goes) {
    std::vector<int32_t> left(size() + 1, 0);
    std::vector<Step> steps;
    for (size_t at = 0; at < size(); ++at) {
      if (!goes[at]) steps.push_back(At(at));
      left[at + 1] = static_cast<int32_t>(steps.size());
    }
    for (Step& step : steps) {
      if (Jumps(step.code)) step.index = left[static_cast<size_t>(step.index)];
      if (step.code == Code::kNextRound) step.next = left[static_cast<size_t>(step.next)];
    }
    out_.steps = std::move(steps);
  }

  // Calls joined(at) for each step: it may replace the step by one that does the work of several, which begin
  // there, and returns how many. No jump goes into their middle.
  template <typename Joined>
  bool Group(const Joined& joined) {
    CountReads();
    is_jumped_to_.assign(size() + 1, false);
    for (const Step& step : out_.steps) {
      if (Jumps(step.code)) is_jumped_to_[static_cast<size_t>(step.index)] = true;
      if (step.code == Code::kNextRound) is_jumped_to_[static_cast<size_t>(step.next)] = true;
    }
    std::vector<bool> goes(size(), false);
    bool any = false;
    for (size_t at = 0; at < size();) {
      const size_t steps = joined(at);
      for (size_t i = 1; i < steps; ++i) goes[at + i] = true;
      any = any || steps > 1;
      at += steps;
    }
    Drop(goes);
    return any;
  }

  // Whether only the next step reads what this step writes.
  bool IsForNext(size_t at) {
    if (at + 1 >= size() || is_jumped_to_[at + 1]) return false;
    const auto target = static_cast<size_t>(At(at).target);
    const Step& next = At(at + 1);
    return target != 0 && reads_[target] == 1 && static_cast<size_t>(next.a) == target &&
           next.code != Code::kJump && next.code != Code::kEnd;
  }

  // A comparison with a known number and a branch by it: one decision, whether a register is in an interval.
  size_t IsDecision(size_t at) {
    if (!IsForNext(at) || At(at + 1).code != Code::kBranch) return 1;
    const Step& step = At(at);
    Step decision = {.code = Code::kDecide, .a = step.a, .index = At(at + 1).index};
    if (step.code == Code::kNot) {
      At(at) = decision;  // From 0 to 0.
      return 2;
    }
    const bool left = known_[static_cast<size_t>(step.a)], right = known_[static_cast<size_t>(step.b)];
    if (left == right) return 1;
    const double number = out_.registers[static_cast<size_t>(left ? step.a : step.b)];
    if (!std::isfinite(number)) return 1;
    if (left) decision.a = step.b;
    decision.low = left ? number : -kInfinity;
    decision.high = left ? kInfinity : number;
    switch (step.code) {
      case Code::kEqual:
      case Code::kNotEqual:
        decision.low = decision.high = number;
        decision.is_outside = step.code == Code::kNotEqual;
        break;
      case Code::kLess:
        (left ? decision.low : decision.high) = std::nextafter(number, left ? kInfinity : -kInfinity);
        break;
      case Code::kLessEqual: break;
      default: return 1;
    }
    At(at) = decision;
    return 2;
  }

  // counter += step, rounds -= 1, jump to the branch at the top of the loop: one step.
  size_t IsRound(size_t at) {
    if (at + 2 >= size() || is_jumped_to_[at + 1] || is_jumped_to_[at + 2]) return 1;
    const Step &add = At(at), &subtract = At(at + 1), &jump = At(at + 2);
    if (add.code != Code::kAdd || subtract.code != Code::kSubtract || jump.code != Code::kJump) return 1;
    if (add.is_whole || add.target != add.a || subtract.is_whole || subtract.target != subtract.a) return 1;
    if (add.b == subtract.target || add.target == subtract.target) return 1;
    const auto one = static_cast<size_t>(subtract.b);
    if (!known_[one] || out_.registers[one] != 1) return 1;
    const Step& top = At(static_cast<size_t>(jump.index));
    if (top.code != Code::kBranch || top.a != subtract.target) return 1;
    At(at) = {.code = Code::kNextRound,
              .target = add.target,
              .a = add.b,
              .b = subtract.target,
              .index = top.index,
              .next = jump.index + 1};
    return 3;
  }

  void FixColumn(Step* step) {
    if (step->code != Code::kCell || !known_[static_cast<size_t>(step->b)]) return;
    const Matrix& matrix = matrices_[static_cast<size_t>(step->matrix)];
    const double column = out_.registers[static_cast<size_t>(step->b)];
    if (!(column >= 1 && column <= static_cast<double>(matrix.columns())) || std::floor(column) != column)
      return;
    const int64_t cell_bytes = BytesOf(matrix.element_type());
    step->code = Code::kCellOf;
    step->is_of_node = step->a == 0 && is_node_kept_;
    step->is_float = matrix.element_type() == ElementType::kFloat32;
    step->rows = matrix.rows();
    step->row_bytes = matrix.columns() * cell_bytes;
    step->column = matrix.data<char>() + (static_cast<int64_t>(column) - 1) * cell_bytes;
  }

  // A cell that only the next step reads, to copy or truncate it.
  size_t IsTakenOn(size_t at) {
    if (At(at).code != Code::kCellOf || !IsForNext(at)) return 1;
    const Step& next = At(at + 1);
    const bool passes = next.code == Code::kCopy || next.code == Code::kDouble;
    if (!passes && next.code != Code::kTruncate) return 1;
    At(at).truncates = At(at).truncates || next.code == Code::kTruncate;
    At(at).target = next.target;
    return 2;
  }

  // A cell that only the next step reads, to call that node, to give the number, or to decide by it.
  size_t IsUsed(size_t at) {
    if (At(at).code != Code::kCellOf || !IsForNext(at)) return 1;
    Step& step = At(at);
    const Step& next = At(at + 1);
    switch (next.code) {
      case Code::kCall: step.code = Code::kCallCell; break;
      case Code::kGive: step.code = Code::kGiveCell; break;
      case Code::kBranch:
      case Code::kDecide:
        step.code = Code::kDecideCell;
        step.index = next.index;
        step.low = next.low;
        step.high = next.high;
        step.is_outside = next.is_outside;
        step.refuses_nan = next.code == Code::kBranch;
        if (next.code == Code::kBranch) step.is_outside = true;  // Of 0 to 0.
        break;
      default: return 1;
    }
    return 2;
  }

  const StructureProgram& program_;
  const std::span<const Matrix> matrices_;
  StructureSteps out_;
  std::vector<bool> known_;  // Registers that have one value for all nodes.
  bool is_node_kept_ = true;
  std::vector<int32_t> reads_;
  std::vector<bool> is_jumped_to_;
};

}  // namespace

StructureSteps PrepareSteps(const StructureProgram& program, std::span<const Matrix> matrices,
                            std::span<const double> uniforms) {
  return Preparer(program, matrices, uniforms).Run();
}

}  // namespace heddle::ops
