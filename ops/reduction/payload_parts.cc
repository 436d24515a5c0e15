// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/payload_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/packed_triangle.h"
#include "ops/base/parallel.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

// Cells of a task that copies.
constexpr int64_t kGrainCells = int64_t{1} << 16;

// Rows of a symmetric payload that a thread mirrors.
constexpr int64_t kMirroredRows = 16;

// A row of a list of all units, or of a part of one.
struct ListRow {
  const double* cells = nullptr;  // Of the node: index, level, payload.
  int64_t width = 0;              // Of its payload.
  int64_t stride = 0;             // From one run to the next.
  int64_t first_unit = 0;
  bool is_part = false;  // Of units that kJoinParts has joined.
  TreeNode node() const { return {static_cast<int64_t>(cells[0]), static_cast<int>(cells[1])}; }
};

// Units [begin, end) of the rows of some lists.
class UnitsOfLists {
 public:
  UnitsOfLists(const StageCall& call, const PayloadLayout& layout)
      : context_(call.context),
        layout_(layout),
        begin_(call.begin),
        end_(call.end),
        width_(layout.Width(call.begin, call.end)) {
    for (const Value* list : call.received) AddRows(list->matrix());
    FindWhole(call);
    std::stable_sort(rows_.begin(), rows_.end(), [](const ListRow& a, const ListRow& b) {
      return a.node().FirstLeaf() < b.node().FirstLeaf();
    });
    if (std::none_of(wide_.begin(), wide_.end(), [&](const ListRow& row) { return HasNumbers(row); }))
      wide_.clear();
  }

  const PayloadLayout& layout() const { return layout_; }
  /// Asked for each row: what is made of them then is not complete.
  bool AreCancelled() const { return IsCancelled(context_.cancelled); }
  int64_t begin() const { return begin_; }
  int64_t width() const { return width_; }
  /// All units of lists as "partial" makes them, to be joined: they are read as they are.
  bool AreWhole() const { return are_whole_; }
  /// Those of nodes, in the order of their leaves.
  const std::vector<ListRow>& rows() const { return rows_; }
  /// Those of kWideLevel, if any has a number of these units.
  const std::vector<ListRow>& wide() const { return wide_; }

  /// The payload of the units, without gaps.
  void Read(const ListRow& row, double* out) const {
    if (are_whole_) return CopyWide(row.cells + 2, width_, out);
    out = std::copy_n(row.cells + 2, layout_.shared, out);
    const double* const runs = row.cells + 2 + layout_.shared;
    if (layout_.triangle && row.width == layout_.units * layout_.units) {
      for (int64_t i = begin_; i < end_; ++i)
        out = std::copy_n(runs + i * layout_.units + i, layout_.units - i, out);
      return;
    }
    if (layout_.mirrored && !row.is_part) return ReadMirrored(runs, row.width, out);
    const int64_t cells = layout_.CellsBefore(end_) - layout_.CellsBefore(begin_);
    const int64_t first = layout_.CellsBefore(begin_) - layout_.CellsBefore(row.first_unit);
    for (int64_t run = 0; run < layout_.runs; ++run)
      CopyWide(runs + run * row.stride + first, cells, out + run * cells);
  }

 private:
  // Rows of which the cells in front of the diagonal stand above it, in its column.
  void ReadMirrored(const double* cells, int64_t width, double* out) const {
    const int64_t n = layout_.units;
    const bool is_packed = width < n * n;
    const auto row_of = [&](int64_t i) { return cells + (is_packed ? CellsBeforeRow(n, i) - i : i * n); };
    // Row after row from the top, so that those above are read along their cells.
    const int64_t count = end_ - begin_;
    ParallelFor(CeilDivide(n, kMirroredRows), 1, [&](int64_t first, int64_t last) {
      for (int64_t j = first * kMirroredRows; j < std::min(n, last * kMirroredRows); ++j) {
        const double* const from = row_of(j);
        for (int64_t i = std::max(j + 1, begin_); i < end_; ++i) out[(i - begin_) * n + j] = from[i];
        if (j >= begin_ && j < begin_ + count) std::copy(from + j, from + n, out + (j - begin_) * n + j);
      }
    });
  }

  void AddRows(const Matrix& list) {
    for (int64_t i = 0; i < list.rows(); ++i) {
      const double* const cells = list.data() + i * list.columns();
      ListRow row{cells, list.columns() - 2, layout_.stride, 0};
      if (cells[0] < 0) {  // A part: its runs have no gaps.
        const int64_t width = list.columns() - 3;
        row = {cells + 1, width, (width - layout_.shared) / layout_.runs, -1 - static_cast<int64_t>(cells[0]),
               true};
      }
      (row.node().level >= kWideLevel ? wide_ : rows_).push_back(row);
    }
  }

  // Joins of all cells, wherever they are in a payload, are joins of all units.
  void FindWhole(const StageCall& call) {
    if (call.stage != kJoinParts || begin_ != 0 || end_ != layout_.units) return;
    const std::vector<ListRow>& some = rows_.empty() ? wide_ : rows_;
    if (some.empty()) return;
    const auto is_like_first = [&](const ListRow& row) { return !row.is_part && row.width == some[0].width; };
    for (const auto* of : {&rows_, &wide_})
      if (!std::all_of(of->begin(), of->end(), is_like_first)) return;
    are_whole_ = true;
    width_ = some[0].width;
  }

  bool HasNumbers(const ListRow& row) const {
    std::vector<double> payload(static_cast<size_t>(width_));
    Read(row, payload.data());
    return std::any_of(payload.begin(), payload.end(), [](double x) { return !std::isnan(x); });
  }

  const KernelContext& context_;
  const PayloadLayout& layout_;
  const int64_t begin_, end_;
  int64_t width_;
  bool are_whole_ = false;
  std::vector<ListRow> rows_, wide_;
};

// A node on its way to a larger one: as a row has it, or joined already.
struct OpenNode {
  TreeNode node;
  const ListRow* row = nullptr;
  AlignedArray joined;
};

// Its payload, to be written over.
double* Load(const UnitsOfLists& units, OpenNode* open) {
  if (open->row == nullptr) return open->joined.data();
  open->joined = AlignedArray(units.width());
  units.Read(*open->row, open->joined.data());
  open->row = nullptr;
  return open->joined.data();
}
const double* Cells(const UnitsOfLists& units, OpenNode* open) {
  return units.AreWhole() && open->row != nullptr ? open->row->cells + 2 : Load(units, open);
}

// Whether a sum is infinite or NaN though both of its terms are finite. Where one is not, cells of the
// operand are not, and neither is any sum further up: nodes with cells so large have rows of kWideLevel
// beside them.
bool LeavesRange(const double* left, const double* right, const double* both, int64_t width) {
  for (int64_t i = simd::FindNonFinite(both, 0, width); i < width;
       i = simd::FindNonFinite(both, i + 1, width))
    if (std::isfinite(left[i]) && std::isfinite(right[i])) return true;
  return false;
}

// Joins two children of a node into the first; false where the layout wants them apart.
bool JoinChildren(const UnitsOfLists& units, OpenNode* left, OpenNode* right) {
  const PayloadLayout& layout = units.layout();
  Load(units, left);
  const double* const cells = Cells(units, right);
  if (!layout.adds_up) {
    JoinWide(layout.join, left->joined.data(), cells, units.width());
    return true;
  }
  AlignedArray both(units.width());
  CopyWide(left->joined.data(), units.width(), both.data());
  JoinWide(layout.join, both.data(), cells, units.width());
  if (LeavesRange(left->joined.data(), cells, both.data(), units.width())) return false;
  left->joined = std::move(both);
  return true;
}

// The nodes of all lists, each pair of children joined that is there. A node without a sibling, whose leaves
// would be beyond the last one, is its parent.
std::vector<OpenNode> JoinedNodes(const UnitsOfLists& units) {
  std::vector<OpenNode> open;
  for (const ListRow& row : units.rows()) {
    if (units.AreCancelled()) return open;
    open.push_back({row.node(), &row, {}});
    if (!units.wide().empty()) continue;
    for (;;) {
      OpenNode& last = open.back();
      const TreeNode sibling{last.node.index + 1, last.node.level};
      if (last.node.index % 2 == 0) {
        const bool is_alone = sibling.FirstLeaf() >= units.layout().leaves;
        if (!is_alone || last.node.index == 0) break;
        last.node = {last.node.index / 2, last.node.level + 1};
        continue;
      }
      if (open.size() < 2) break;
      OpenNode& before = open[open.size() - 2];
      if (before.node != TreeNode{last.node.index - 1, last.node.level} ||
          !JoinChildren(units, &before, &last))
        break;
      before.node = {before.node.index / 2, before.node.level + 1};
      open.pop_back();
    }
  }
  return open;
}

Result<Matrix> JoinParts(const UnitsOfLists& units) {
  std::vector<OpenNode> open = JoinedNodes(units);
  if (units.AreCancelled()) return Cancelled("cancelled");
  const auto rows = static_cast<int64_t>(open.size() + units.wide().size());
  const int64_t before = units.AreWhole() ? 2 : 3;  // Columns before the payload.
  HEDDLE_ASSIGN_OR_RETURN(Matrix part, Matrix::Dense(rows, before + units.width()));
  double* out = part.mutable_data();
  const auto write = [&](double index, double level) {
    out[0] = static_cast<double>(-1 - units.begin());
    out[before - 2] = index;
    out[before - 1] = level;
    return std::exchange(out, out + before + units.width()) + before;
  };
  for (const OpenNode& node : open) {
    if (units.AreCancelled()) return Cancelled("cancelled");
    double* const payload = write(static_cast<double>(node.node.index), node.node.level);
    if (node.row != nullptr)
      units.Read(*node.row, payload);
    else
      CopyWide(node.joined.data(), units.width(), payload);
  }
  for (const ListRow& row : units.wide()) units.Read(row, write(row.cells[0], row.cells[1]));
  return part;
}

// As JoinNodes (reduction_tree.h) of the units' payloads.
Result<AlignedArray> RootOf(const UnitsOfLists& units) {
  const PayloadLayout& layout = units.layout();
  std::vector<std::pair<int64_t, AlignedArray>> stack;  // First leaf, payload.
  const auto join_top = [&] {
    JoinWide(layout.join, stack[stack.size() - 2].second.data(), stack.back().second.data(), units.width());
    stack.pop_back();
  };
  for (const ListRow& row : units.rows()) {
    if (units.AreCancelled()) return Cancelled("cancelled");
    const int64_t leaf = row.node().FirstLeaf();
    while (stack.size() >= 2 && CommonLevel(stack[stack.size() - 2].first, stack.back().first) <
                                    CommonLevel(stack.back().first, leaf))
      join_top();
    stack.emplace_back(leaf, AlignedArray(units.width()));
    units.Read(row, stack.back().second.data());
  }
  while (stack.size() > 1) join_top();
  if (!stack.empty()) return std::move(stack.front().second);
  AlignedArray root(units.width());
  FillIdentity(Reduction{.join = layout.join, .width = units.width()}, root.data());
  return root;
}

// The rows of all nodes as a list of just these units.
Result<Matrix> ListOf(const UnitsOfLists& units) {
  const auto rows = static_cast<int64_t>(units.rows().size() + units.wide().size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, Matrix::Dense(rows, 2 + units.width()));
  double* out = list.mutable_data();
  for (const auto* of : {&units.rows(), &units.wide()})
    for (const ListRow& row : *of) {
      if (units.AreCancelled()) return Cancelled("cancelled");
      out = std::copy_n(row.cells, 2, out);
      units.Read(row, out);
      out += units.width();
    }
  return list;
}

Result<Matrix> Assemble(const StageCall& call, const PayloadLayout& layout) {
  const Shape& shape = ResultsOf(call.node)[call.result].shape;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(shape.rows, shape.columns));
  const Matrix& cells = call.received[0]->matrix();
  HEDDLE_CHECK(cells.cells() == layout.CellsBefore(layout.units), "the finished parts are all there");
  if (layout.triangle)
    UnpackTriangle(cells.data(), layout.units, result.mutable_data());
  else
    CopyWide(cells.data(), cells.cells(), result.mutable_data());
  return result;
}

}  // namespace

Result<Matrix> PackTriangles(const Matrix& nodes, int64_t n) {
  const int64_t width = n * (n + 1) / 2;
  HEDDLE_ASSIGN_OR_RETURN(Matrix packed, Matrix::Dense(nodes.rows(), 2 + width));
  for (int64_t i = 0; i < nodes.rows(); ++i) {
    const double* const from = nodes.data() + i * nodes.columns();
    double* const to = packed.mutable_data() + i * (2 + width);
    std::copy_n(from, 2, to);
    ParallelFor(n, CeilDivide(kGrainCells, n), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        std::copy_n(from + 2 + j * n + j, n - j, to + 2 + CellsBeforeRow(n, j));
    });
  }
  return packed;
}

void UnpackTriangle(const double* packed, int64_t n, double* out) {
  // Squares of cells, so that those below the diagonal, which are read down a column, stay in the cache.
  constexpr int64_t kSide = 64;
  const auto above = [&](int64_t i, int64_t j) { return packed[CellsBeforeRow(n, i) + j - i]; };
  ParallelFor(CeilDivide(n, kSide), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t first = 0; first < n; first += kSide)
        for (int64_t i = block * kSide; i < std::min(n, (block + 1) * kSide); ++i)
          for (int64_t j = first; j < std::min(n, first + kSide); ++j)
            out[i * n + j] = j < i ? above(j, i) : above(i, j);
  });
}

Result<Matrix> AsResultCells(const StageCall& call, Matrix cells) {
  if (ResultsOf(call.node)[call.result].element_type != ElementType::kFloat32) return cells;
  HEDDLE_ASSIGN_OR_RETURN(Matrix singles,
                          Matrix::Dense(cells.rows(), cells.columns(), ElementType::kFloat32));
  ParallelFor(cells.cells(), kGrainCells, [&](int64_t begin, int64_t end) {
    SelectedElementwiseKernels().narrow(cells.data() + begin, singles.mutable_data<float>() + begin,
                                        end - begin);
  });
  return singles;
}

Status RunReductionStage(const StageCall& call, const PayloadLayout& layout, const ClosePart& close,
                         std::span<Value> outputs) {
  if (call.stage == kAssembleParts) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Assemble(call, layout));
    HEDDLE_ASSIGN_OR_RETURN(result, AsResultCells(call, std::move(result)));
    outputs[0] = Value(std::move(result));
    return OkStatus();
  }
  const UnitsOfLists units(call, layout);
  if (call.stage == kJoinParts) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix part, JoinParts(units));
    outputs[0] = Value(std::move(part));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const AlignedArray root, RootOf(units));
  HEDDLE_ASSIGN_OR_RETURN(Matrix part, close(root.data(), [&] { return ListOf(units); }));
  if (call.form.units(call.node, call.input_infos, call.result).by_rows) {
    HEDDLE_ASSIGN_OR_RETURN(part, AsResultCells(call, std::move(part)));
  }
  outputs[0] = Value(std::move(part));
  return OkStatus();
}

}  // namespace heddle::ops
