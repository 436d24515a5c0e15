// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/run_dictionaries.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/program/body_view.h"
#include "ops/fused/run/body_rows.h"

namespace heddle::ops {
namespace {

// Tiles of all threads are faster than one thread with so many cells of dictionaries.
constexpr int64_t kMostCells = 1 << 20;

// Cells of dictionaries; of kEmpty one zero, of kUncompressed all.
int64_t CellsOf(const ColumnGroup& group) {
  return group.encoding == Encoding::kEmpty ? 1 : group.dictionary.cells();
}

const Matrix* CompressedInput(const TileProgram& program, const KernelCall& call) {
  const Matrix* found = nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const BodyRole role = program.roles.inputs[i];
    if (role == BodyRole::kScalar || role == BodyRole::kUnused) continue;
    // Row vectors, if the body is to run (CellNodes).
    if (role == BodyRole::kWhole) continue;
    if (role != BodyRole::kRows || found != nullptr || !call.inputs[i]->matrix().IsCompressed())
      return nullptr;
    found = &call.inputs[i]->matrix();
  }
  return found;
}

bool HasRowVectors(const TileProgram& program) {
  const std::vector<BodyRole>& inputs = program.roles.inputs;
  return std::find(inputs.begin(), inputs.end(), BodyRole::kWhole) != inputs.end();
}

// Which nodes of a body are X, or cell-wise values of nothing but such ones, scalars and row vectors.
class CellNodes {
 public:
  CellNodes(const BodyView& view, const Shape& shape) : view_(view), shape_(shape) {}

  bool Has(NodeId id) {
    const bool is_new = known_.emplace(id, false).second;
    if (is_new) known_[id] = Find(id);
    return known_[id];
  }

 private:
  bool Find(NodeId id) {
    const Node& node = view_.node(id);
    if (!view_.IsRows(id) || node.info.format != Format::kDense || node.info.shape != shape_) return false;
    if (view_.IsInput(id)) return true;
    if (RowUseOf(node) != RowUse::kCells) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input != kNoNode && !view_.node(input).info.IsScalar() && !Has(input) &&
          !(i > 0 && IsRowVector(node, input)))
        return false;
    }
    return true;
  }

  // One whose cells the operator repeats for every row of dictionaries, too.
  bool IsRowVector(const Node& node, NodeId input) const {
    const Operator* const op = FindOperator(node.op);
    const ValueInfo& info = view_.node(input).info;
    return view_.IsInput(input) && !view_.IsRows(input) && info.format == Format::kDense &&
           info.shape == Shape{1, shape_.columns} && shape_.columns > 1 && shape_.rows > 1 &&
           op->run_compressed != nullptr && !op->may_fail;
  }

  const BodyView& view_;
  const Shape& shape_;
  std::map<NodeId, bool> known_;
};

bool AggregatesCells(const BodyView& view, NodeId root, CellNodes* cells) {
  const Operator* const op = FindOperator(view.node(root).op);
  return op != nullptr && op->aggregate != nullptr && view.node(root).inputs.size() == 1 &&
         cells->Has(view.node(root).inputs[0]);
}

// The dictionaries of a matrix as the cells of another one with as many columns, one behind the other; the
// last row has zeros behind them.
class Dictionaries {
 public:
  explicit Dictionaries(const Matrix& x) : x_(x) {
    for (const ColumnGroup& group : x.groups().groups) {
      const auto [place, is_new] = places_.emplace(KeyOf(group), cells_);
      if (is_new) cells_ += CellsOf(group);
    }
  }

  Result<Matrix> Cells() const {
    const int64_t bytes = BytesOf(x_.element_type());
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells,
                            Matrix::Dense(CeilDivide(cells_, x_.columns()), x_.columns(), x_.element_type()));
    std::memset(cells.mutable_data<char>(), 0, static_cast<size_t>(cells.cells() * bytes));
    for (const ColumnGroup& group : x_.groups().groups)
      if (group.encoding != Encoding::kEmpty)
        std::memcpy(cells.mutable_data<char>() + PlaceOf(group) * bytes, group.dictionary.data<char>(),
                    static_cast<size_t>(group.dictionary.cells() * bytes));
    return cells;
  }

  // The matrix whose dictionaries are these cells.
  Result<Matrix> With(const Matrix& cells) const {
    auto groups = std::make_shared<ColumnGroups>(x_.groups());
    groups->element_type = cells.element_type();
    const int64_t bytes = BytesOf(cells.element_type());
    std::map<Key, Matrix> made;
    for (ColumnGroup& group : groups->groups) {
      const char* const from = cells.data<char>() + PlaceOf(group) * bytes;
      if (group.encoding == Encoding::kEmpty) {
        HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Repeated(from, bytes, group.width(), cells.element_type()));
        group.encoding = Encoding::kConstant;
        continue;
      }
      Matrix& dictionary = made[KeyOf(group)];
      if (dictionary.cells() == 0) {
        HEDDLE_ASSIGN_OR_RETURN(dictionary,
                                Matrix::Dense(group.dictionary.rows(), group.width(), cells.element_type()));
        std::memcpy(dictionary.mutable_data<char>(), from, static_cast<size_t>(dictionary.cells() * bytes));
      }
      group.dictionary = dictionary;
    }
    return Matrix::OfGroups(std::move(groups)).Rows(x_.first_row(), x_.first_row() + x_.rows());
  }

 private:
  // Of a dictionary, which several groups may share; all groups of zeros have one.
  using Key = std::tuple<const void*, int64_t, int64_t>;
  static Key KeyOf(const ColumnGroup& group) {
    if (group.encoding == Encoding::kEmpty) return {};
    return {group.dictionary.data<void>(), group.dictionary.rows(), group.dictionary.columns()};
  }
  int64_t PlaceOf(const ColumnGroup& group) const { return places_.at(KeyOf(group)); }
  static Result<Matrix> Repeated(const char* cell, int64_t bytes, int64_t width, ElementType type) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix tuple, Matrix::Dense(1, width, type));
    for (int64_t k = 0; k < width; ++k)
      std::memcpy(tuple.mutable_data<char>() + k * bytes, cell, static_cast<size_t>(bytes));
    return tuple;
  }

  const Matrix& x_;
  std::map<Key, int64_t> places_;
  int64_t cells_ = 0;
};

}  // namespace

bool RunsOnDictionaries(const TileProgram& program, const KernelCall& call) {
  // Inputs of "finish" are lists of nodes.
  if (call.phase != Phase::kWhole && call.phase != Phase::kPartial) return false;
  const Matrix* const x = CompressedInput(program, call);
  if (x == nullptr || x->cells() == 0) return false;
  int64_t cells = 0;
  for (const ColumnGroup& group : x->groups().groups) {
    if (group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse()) return false;
    cells += CellsOf(group);
  }
  if (cells > std::min(kMostCells, x->cells() / 4)) return false;
  // Nodes of several reductions that are no stitch have all payloads in one row.
  const FusedOperator& fused = program.fused;
  if (fused.roots.size() > 1 && call.phase != Phase::kWhole && fused.kind != FusionTemplate::kStitch)
    return false;
  const BodyView view(program);
  const Shape& shape = view.node(view.Driver()).info.shape;
  CellNodes nodes(view, shape);
  return std::all_of(fused.roots.begin(), fused.roots.end(),
                     [&](NodeId root) { return nodes.Has(root) || AggregatesCells(view, root, &nodes); });
}

namespace {

// Cell-wise values of X, which share its codes.
class ValuesOfCells {
 public:
  ValuesOfCells(const TileProgram& program, const KernelCall& call)
      : program_(program), call_(call), view_(program), x_(*CompressedInput(program, call)) {}

  Result<const Value*> Get(NodeId id) {
    if (const auto found = made_.find(id); found != made_.end()) return &found->second;
    if (view_.IsInput(id)) return call_.inputs[static_cast<size_t>(BodyView::InputPosition(view_.node(id)))];
    HEDDLE_ASSIGN_OR_RETURN(Value value, HasRowVectors(program_) ? OfOperator(id) : OfDictionaries(id));
    return &(made_[id] = std::move(value));
  }

 private:
  // A row vector has another cell for each column of a dictionary: the operators take them apart.
  Result<Value> OfOperator(NodeId id) {
    const Node& node = view_.node(id);
    if (node.Is("literal")) return Value(*node.FindAttribute("value"));
    std::vector<const Value*> inputs;
    std::vector<ValueInfo> infos;
    for (const NodeId input : node.inputs) {
      HEDDLE_ASSIGN_OR_RETURN(const Value* const value, input == kNoNode ? nullptr : Get(input));
      inputs.push_back(value);
      infos.push_back(input == kNoNode ? ValueInfo() : view_.node(input).info);
    }
    const int64_t first = call_.phase == Phase::kPartial ? call_.row_begin : 0;
    Value result;
    HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run({.node = node,
                                                 .phase = Phase::kWhole,
                                                 .inputs = inputs,
                                                 .input_infos = infos,
                                                 .row_begin = first,
                                                 .row_end = first + x_.rows(),
                                                 .total_rows = program_.roles.rows,
                                                 .context = call_.context},
                                                {&result, 1}));
    return result;
  }

  // The body on the dictionaries, as if they were some of the rows.
  Result<Value> OfDictionaries(NodeId id) {
    if (cells_.matrix().cells() == 0) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix tuples, dictionaries_.Cells());
      cells_ = Value(std::move(tuples));
    }
    std::vector<const Value*> inputs(call_.inputs.begin(), call_.inputs.end());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (program_.roles.inputs[i] == BodyRole::kRows) inputs[i] = &cells_;
    KernelCall on_tuples = call_;
    on_tuples.phase = Phase::kWhole;
    on_tuples.inputs = inputs;
    HEDDLE_ASSIGN_OR_RETURN(const Matrix of_tuples,
                            BodyRows(program_, on_tuples).Get(id, 0, cells_.matrix().rows()));
    HEDDLE_ASSIGN_OR_RETURN(Matrix all, dictionaries_.With(of_tuples));
    return Value(std::move(all));
  }

  const TileProgram& program_;
  const KernelCall& call_;
  const BodyView view_;
  const Matrix& x_;
  const Dictionaries dictionaries_{x_};
  Value cells_{Matrix()};  // Of the dictionaries.
  std::map<NodeId, Value> made_;
};

}  // namespace

Status RunDictionaries(const TileProgram& program, const KernelCall& call, std::span<Value> results) {
  const Graph& body = program.fused.body;
  const Matrix& x = *CompressedInput(program, call);
  const BodyView view(program);
  ValuesOfCells values(program, call);
  const bool whole = call.phase == Phase::kWhole;
  for (size_t i = 0; i < program.fused.roots.size(); ++i) {
    const NodeId root = program.fused.roots[i];
    const Node& node = body[root];
    const Operator* const op = FindOperator(node.op);
    if (view.IsInput(root) || op->aggregate == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(const Value* const value, values.Get(root));
      results[i] = *value;
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Value* const operand, values.Get(node.inputs[0]));
    HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run({.node = node,
                                                 .phase = call.phase,
                                                 .inputs = {&operand, 1},
                                                 .input_infos = {&body[node.inputs[0]].info, 1},
                                                 .row_begin = whole ? 0 : call.row_begin,
                                                 .row_end = whole ? x.rows() : call.row_end,
                                                 .total_rows = whole ? x.rows() : call.total_rows,
                                                 .context = call.context,
                                                 .op = op},
                                                {&results[i], 1}));
  }
  return OkStatus();
}

}  // namespace heddle::ops
