// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

bool IsProduct(const Node& node) {
  return ops::HasRole(node, {ops::Role::kProduct, ops::Role::kTransposedProduct});
}

// The dynamic program is cubic; a longer chain is no program that anybody wrote.
constexpr size_t kLongestChain = 100;
// Share of cells that a CSR matrix is taken to hold: its class is all that may decide (docs/numerics.md,
// section 3).
constexpr double kSparseShare = 0.05;
// Two CSR factors are multiplied entry by entry, by none of which several cells become at once; nor does
// symmetry help there.
constexpr double kByEntry = 8;
// A new order must be clearly cheaper than the one the script says.
constexpr double kGain = 0.95;

// One factor: a node, or its transpose.
struct Factor {
  NodeId node;
  bool transposed;
  int64_t rows, columns;
  double share;  ///< Of cells that are not zero, as the cost takes it.
};

double ShareOfProduct(double left, double right, int64_t inner) {
  if (left == 1.0 || right == 1.0) return 1.0;  // the result is dense
  return 1.0 - std::pow(1.0 - left * right, static_cast<double>(inner));
}
// Multiplications, and the cells of the result, which are written and read.
double CostOfProduct(int64_t rows, int64_t inner, int64_t columns, double left, double right,
                     bool symmetric) {
  const double cells = static_cast<double>(rows) * static_cast<double>(columns);
  const double multiplication = left < 1.0 && right < 1.0 ? kByEntry : symmetric ? 0.5 : 1.0;
  return cells * static_cast<double>(inner) * left * right * multiplication + cells;
}

// The factors of the product at `root`, left to right. Inner products that others read as well are factors.
class Chain {
 public:
  Chain(const Graph& graph, const std::vector<int>& readers) : graph_(graph), readers_(readers) {}

  bool Collect(NodeId root) {
    known_ = true;
    written_cost_ = 0;
    factors_.clear();
    Visit(root, true);
    return known_ && factors_.size() >= 3 && factors_.size() <= kLongestChain && Fits();
  }
  const std::vector<Factor>& factors() const { return factors_; }
  /// Of the order that the script says.
  double written_cost() const { return written_cost_; }

 private:
  // A product that cannot be is an error of the run, if it comes to it.
  bool Fits() const {
    for (size_t i = 1; i < factors_.size(); ++i)
      if (factors_[i - 1].columns != factors_[i].rows) return false;
    return true;
  }

  bool IsInner(NodeId id) const { return IsProduct(graph_[id]) && readers_[static_cast<size_t>(id)] == 1; }

  // Returns the share of non-zeros of what is at `id`.
  double Visit(NodeId id, bool is_root) {
    const Node& node = graph_[id];
    if ((!is_root && !IsInner(id)) || factors_.size() > kLongestChain) return AddFactor(id, false);
    const NodeId a = node.inputs[0], b = node.inputs[1];
    const bool transposed = ops::HasRole(node, ops::Role::kTransposedProduct);
    const double left = transposed ? AddFactor(a, true) : Visit(a, false);
    const double right = Visit(b, false);
    const Shape& x = graph_[a].info.shape;
    const double share = ShareOfProduct(left, right, transposed ? x.rows : x.columns);
    written_cost_ += CostOfProduct(node.info.shape.rows, transposed ? x.rows : x.columns,
                                   node.info.shape.columns, left, right, transposed && a == b);
    return share;
  }

  double AddFactor(NodeId id, bool transposed) {
    const ValueInfo& info = graph_[id].info;
    known_ = known_ && info.shape.IsKnown();
    Factor factor{id, transposed, info.shape.rows, info.shape.columns,
                  info.format == Format::kSparse ? kSparseShare : 1.0};
    if (transposed) std::swap(factor.rows, factor.columns);
    factors_.push_back(factor);
    return factor.share;
  }

  const Graph& graph_;
  const std::vector<int>& readers_;
  std::vector<Factor> factors_;
  double written_cost_ = 0;
  bool known_ = true;
};

// cost[i][j]: the cheapest way to multiply factors i..j, by where it is split last.
class CheapestOrder {
 public:
  explicit CheapestOrder(const std::vector<Factor>& factors)
      : factors_(factors),
        size_(factors.size()),
        cost_(size_ * size_, 0.0),
        share_(size_ * size_, 1.0),
        split_(size_ * size_, 0) {
    for (size_t i = 0; i < size_; ++i) share_[At(i, i)] = factors[i].share;
    for (size_t length = 2; length <= size_; ++length)
      for (size_t i = 0; i + length <= size_; ++i) Choose(i, i + length - 1);
  }

  double cost() const { return cost_[At(0, size_ - 1)]; }
  size_t Split(size_t i, size_t j) const { return split_[At(i, j)]; }

 private:
  size_t At(size_t i, size_t j) const { return i * size_ + j; }

  // A transposed factor is free at the left end of a product (t%*%) and must be made elsewhere.
  double CostOfOperand(size_t i, size_t j, bool is_left) const {
    const bool is_made = i == j && factors_[i].transposed && !is_left;
    return cost_[At(i, j)] +
           (is_made ? 2.0 * static_cast<double>(factors_[i].rows) * static_cast<double>(factors_[i].columns)
                    : 0.0);
  }

  void Choose(size_t i, size_t j) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t k = i; k < j; ++k) {
      const bool symmetric = k == i && j == i + 1 && factors_[i].node == factors_[j].node &&
                             factors_[i].transposed && !factors_[j].transposed;
      const double cost = CostOfOperand(i, k, true) + CostOfOperand(k + 1, j, false) +
                          CostOfProduct(factors_[i].rows, factors_[k].columns, factors_[j].columns,
                                        share_[At(i, k)], share_[At(k + 1, j)], symmetric);
      if (!(cost < best)) continue;
      best = cost;
      split_[At(i, j)] = k;
      share_[At(i, j)] = ShareOfProduct(share_[At(i, k)], share_[At(k + 1, j)], factors_[k].columns);
    }
    cost_[At(i, j)] = best;
  }

  const std::vector<Factor>& factors_;
  size_t size_;
  std::vector<double> cost_, share_;
  std::vector<size_t> split_;
};

// Rebuilds a graph with some products in another order.
class Reorderer {
 public:
  /// `sizes_matter` as in PassOptions.
  Reorderer(Graph graph, bool* sizes_matter)
      : old_(std::move(graph)),
        sizes_matter_(sizes_matter),
        readers_(old_.nodes.size(), 0),
        inference_(nullptr) {
    for (const Node& node : old_.nodes)
      for (const NodeId input : node.inputs)
        if (input != kNoNode) ++readers_[static_cast<size_t>(input)];
  }

  Graph Run() {
    const std::vector<bool> is_inside = FindInnerProducts();
    if (!HasChain(is_inside)) return std::move(old_);
    new_ids_.assign(old_.nodes.size(), kNoNode);
    Chain chain(old_, readers_);
    for (NodeId id = 0; id < old_.size(); ++id) {
      const Node& node = old_[id];
      NodeId& new_id = new_ids_[static_cast<size_t>(id)];
      const bool is_root = IsProduct(node) && !is_inside[static_cast<size_t>(id)];
      const bool is_chain = is_root && chain.Collect(id);
      if (sizes_matter_ != nullptr && is_root && chain.factors().size() >= 3) *sizes_matter_ = true;
      if (is_chain) {
        const CheapestOrder order(chain.factors());
        if (order.cost() < kGain * chain.written_cost()) {
          position_ = node.position;
          new_id = Build(chain.factors(), order, 0, chain.factors().size() - 1);
          continue;
        }
      }
      Node copy = node;
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = new_ids_[static_cast<size_t>(input)];
      for (NodeId& earlier : copy.after) earlier = new_ids_[static_cast<size_t>(earlier)];
      new_id = new_.Add(std::move(copy));
    }
    return std::move(new_);
  }

 private:
  // Products that are part of a longer chain.
  std::vector<bool> FindInnerProducts() const {
    std::vector<bool> is_inside(old_.nodes.size(), false);
    for (const Node& node : old_.nodes) {
      if (!IsProduct(node)) continue;
      for (size_t i = ops::HasRole(node, ops::Role::kTransposedProduct) ? 1 : 0; i < 2; ++i) {
        const auto input = static_cast<size_t>(node.inputs[i]);
        if (readers_[input] == 1) is_inside[input] = true;
      }
    }
    return is_inside;
  }

  // A product inside of another one makes three factors; two have one order.
  bool HasChain(const std::vector<bool>& is_inside) const {
    for (NodeId id = 0; id < old_.size(); ++id)
      if (is_inside[static_cast<size_t>(id)] && IsProduct(old_[id])) return true;
    return false;
  }

  NodeId Add(const char* op, std::vector<NodeId> inputs) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.position = position_;
    const NodeId id = new_.Add(std::move(node));
    values_.resize(new_.nodes.size());
    const Status status = inference_.Infer(new_, values_, id);
    HEDDLE_CHECK(status.ok(), "factors of a product fit in every order");
    return id;
  }

  NodeId Build(const std::vector<Factor>& factors, const CheapestOrder& order, size_t i, size_t j) {
    const NodeId node = new_ids_[static_cast<size_t>(factors[i].node)];
    if (i == j) return factors[i].transposed ? Add("t", {node}) : node;
    const size_t k = order.Split(i, j);
    if (k == i && factors[i].transposed) return Add("t%*%", {node, Build(factors, order, k + 1, j)});
    const NodeId left = Build(factors, order, i, k);
    return Add("%*%", {left, Build(factors, order, k + 1, j)});
  }

  Graph old_;
  bool* sizes_matter_;
  Graph new_;
  std::vector<int> readers_;
  std::vector<NodeId> new_ids_;
  NodeInference inference_;
  std::vector<std::optional<Scalar>> values_;
  SourcePosition position_;
};

}  // namespace

// Every maximal chain of products of which only the last result is read elsewhere is multiplied in the order
// with the fewest multiplications; a CSR factor counts as kSparseShare of its cells, a multiplication of two
// as kByEntry. t(A) at the left end of a product is no transposition (t%*%); t(A) %*% A counts half. Where
// shapes are not known yet, nothing changes.
Result<Graph> OrderProducts(Graph graph, const PassOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(graph, ShareCommonSubexpressions(std::move(graph), options));
  HEDDLE_ASSIGN_OR_RETURN(graph, RemoveDeadNodes(std::move(graph), options));
  Graph ordered = Reorderer(std::move(graph), options.sizes_matter).Run();
  return RemoveDeadNodes(std::move(ordered), options);
}

}  // namespace heddle::compiler
