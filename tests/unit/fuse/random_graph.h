// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/environment/random.h"
#include "tests/unit/fuse/graph_maker.h"

namespace heddle::compiler {

/// Random blocks of operators that fuse in all templates: shared values, dense and CSR inputs of one height,
/// scalars that feed further operators, values that leave the block. Never executed, so sizes may be large.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  Graph Make(int operators) {
    rows_ = int64_t{1000} << Below(8);
    for (int i = 0; i < 3; ++i)
      values_.push_back(make_.Matrix("X" + std::to_string(i), rows_, kWidths[Below(3)]));
    values_.push_back(make_.Matrix("V", rows_, 1));
    values_.push_back(make_.Matrix("S", rows_, kWidths[1 + Below(2)], Format::kSparse));
    factor_left_ = make_.Matrix("U", rows_, 5);
    for (int64_t width : kWidths) {
      factors_.push_back(make_.Matrix("F" + std::to_string(width), width, 5));
      row_vectors_.push_back(make_.Matrix("R" + std::to_string(width), 1, width));
    }
    scalars_ = {make_.Scalar("s"), make_.Literal(2.0)};
    one_ = make_.Literal(heddle::Scalar(1));
    three_ = make_.Literal(heddle::Scalar(3));
    for (int i = 0; i < operators; ++i) AddOperator();
    Leave();
    return make_.graph();
  }

 private:
  static constexpr int64_t kWidths[] = {1, 20, 100};

  size_t Below(size_t bound) { return static_cast<size_t>(random_.Below(bound)); }
  const ValueInfo& InfoOf(NodeId id) { return make_.graph()[id].info; }
  int64_t WidthOf(NodeId id) { return InfoOf(id).shape.columns; }
  // Recent values more often, so that chains grow.
  NodeId Value() {
    const size_t count = values_.size();
    return values_[Below(3) == 0 ? Below(count) : count - 1 - Below(std::min<size_t>(count, 4))];
  }

  void AddOperator() {
    const NodeId x = Value();
    switch (Below(12)) {
      case 0: {
        static constexpr const char* kUnary[] = {"exp", "sqrt", "abs", "asin", "log"};
        return Keep(make_.Add(kUnary[Below(5)], {x}));
      }
      case 1:
      case 2:
      case 3:
      case 4: return AddBinary(x);
      case 5: return Keep(make_.Add("^", {x, scalars_[1]}));
      case 6: {
        static constexpr const char* kOfRows[] = {"rowSums", "rowMaxs", "rowSds"};
        return Keep(make_.Add(kOfRows[Below(3)], {x}));
      }
      case 7: {
        static constexpr const char* kFull[] = {"sum", "min", "max"};
        scalars_.push_back(make_.Add(kFull[Below(3)], {x}));
        return;
      }
      case 8: return Leave(make_.Add("colSums", {x}));
      case 9: return AddProduct(x);
      case 10: return AddSampled();
      default: return AddRange(x);
    }
  }

  void AddBinary(NodeId x) {
    static constexpr const char* kBinary[] = {"+", "-", "*", "/", "pmax", "!="};
    const char* op = kBinary[Below(6)];
    const NodeId y = Value();
    if (Below(4) == 0) return Keep(make_.Add(op, {x, scalars_[Below(scalars_.size())]}));
    if (Below(8) == 0)  // Repeated over the rows, or over the columns of a column.
      for (NodeId row : row_vectors_)
        if (WidthOf(x) == 1 ? WidthOf(row) == kWidths[1] : WidthOf(row) == WidthOf(x))
          return Keep(make_.Add(op, {x, row}));
    if (WidthOf(y) == WidthOf(x) || WidthOf(y) == 1) return Keep(make_.Add(op, {x, y}));
    if (WidthOf(x) == 1) return Keep(make_.Add(op, {y, x}));
    Keep(make_.Add(op, {x, x}));
  }

  void AddProduct(NodeId x) {
    if (Below(2) == 0) return Leave(make_.Add("t%*%", {x, Value()}));
    for (NodeId factor : factors_)
      if (InfoOf(factor).shape.rows == WidthOf(x)) return Keep(make_.Add("%*%", {x, factor}));
    Keep(make_.Add("abs", {x}));
  }

  void AddSampled() {
    for (NodeId x : values_)
      for (NodeId factor : factors_)
        if (InfoOf(x).format == Format::kSparse && InfoOf(factor).shape.rows == WidthOf(x))
          return Keep(make_.Add("sampledProduct", {x, factor_left_, factor}));
  }

  void AddRange(NodeId x) {
    if (WidthOf(x) < 3) return Keep(make_.Add("cbind", {x, Value()}));
    Keep(make_.Add("index", {x, kNoNode, kNoNode, one_, three_}));
  }

  void Keep(NodeId id) {
    values_.push_back(id);
    if (Below(8) == 0) Leave(id);
  }
  void Leave(NodeId id) { make_.Assign("out" + std::to_string(outputs_++), id); }
  // Whatever nobody reads yet.
  void Leave() {
    const Graph& graph = make_.graph();
    std::vector<bool> read(graph.nodes.size(), false);
    for (const Node& node : graph.nodes)
      for (NodeId input : node.inputs)
        if (input != kNoNode) read[static_cast<size_t>(input)] = true;
    const NodeId count = graph.size();
    for (NodeId id = 0; id < count; ++id)
      if (!read[static_cast<size_t>(id)] && !graph[id].Is("assign")) Leave(id);
  }

  SeededRandom random_;
  GraphMaker make_;
  int64_t rows_ = 0;
  std::vector<NodeId> values_, factors_, row_vectors_, scalars_;
  NodeId factor_left_ = kNoNode, one_ = kNoNode, three_ = kNoNode;
  int outputs_ = 0;
};

}  // namespace heddle::compiler
