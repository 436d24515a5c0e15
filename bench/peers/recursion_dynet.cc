// SPDX-License-Identifier: Apache-2.0
//
// The programs of bench/scripts/recursion in DyNet (github.com/clab/dynet), whose automatic batching is the
// strongest of the libraries that need no batching by hand: forward only, single precision, one thread (its
// CPU back end has no more). Prints one JSON line a case: milliseconds a batch, graph construction included,
// of the best strategy of dynet-autobatch. Not built with Heddle:
//
//   cmake -S dynet -B dynet/build -DEIGEN3_INCLUDE_DIR=/usr/include/eigen3 -DCMAKE_CXX_FLAGS=-march=native
//   cmake --build dynet/build --target dynet
//   c++ -std=c++17 -O3 -march=native -I dynet -I dynet/build -I /usr/include/eigen3
//       bench/peers/recursion_dynet.cc -L dynet/build/dynet -ldynet -o recursion_dynet
//   zcat sst-train.ptb.gz | head -250 | LD_LIBRARY_PATH=dynet/build/dynet ./recursion_dynet
//
// Standard input: trees in the bracket notation of the Stanford Sentiment Treebank, one a line.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/globals.h"
#include "dynet/init.h"
#include "dynet/param-init.h"

using dynet::ComputationGraph;
using dynet::Expression;

namespace {

// Children come before their parents; -1 where there is none.
struct TreeNode {
  int left = -1, right = -1;
  unsigned token = 0;
};
using Tree = std::vector<TreeNode>;

Tree ReadTree(const std::string& line, std::map<std::string, unsigned>* vocabulary) {
  Tree tree;
  size_t at = 0;
  std::function<int()> read = [&]() {
    at = line.find(' ', at) + 1;  // behind "(label"
    TreeNode node;
    if (line[at] == '(') {
      node.left = read();
      at = line.find('(', at);
      node.right = read();
      at = line.find(')', at) + 1;
    } else {
      const size_t end = line.find(')', at);
      node.token =
          vocabulary->try_emplace(line.substr(at, end - at), static_cast<unsigned>(vocabulary->size()))
              .first->second;
      at = end + 1;
    }
    tree.push_back(node);
    return static_cast<int>(tree.size()) - 1;
  };
  read();
  return tree;
}

Tree PerfectTree(int height) {
  Tree tree;
  std::function<int(int)> grow = [&](int levels) {
    TreeNode node;
    if (levels > 0) {
      node.left = grow(levels - 1);
      node.right = grow(levels - 1);
    }
    node.token = static_cast<unsigned>(tree.size());
    tree.push_back(node);
    return static_cast<int>(tree.size()) - 1;
  };
  grow(height);
  return tree;
}

// Predecessors above and to the left.
Tree Grid(int side) {
  Tree grid;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j)
      grid.push_back({i > 0 ? (i - 1) * side + j : -1, j > 0 ? i * side + j - 1 : -1,
                      static_cast<unsigned>(i * side + j)});
  return grid;
}

struct State {
  Expression h, c;
};

struct Model {
  dynet::ParameterCollection parameters;
  dynet::LookupParameter embedding;
  dynet::Parameter w_, b_, u_, u2_, b2_;
  Expression w, b, u, u2, b2;  // In the graph of a batch: products are batched where they have the same one.
  unsigned hidden = 0;
  void Enter(ComputationGraph& graph) {
    w = dynet::parameter(graph, w_), b = dynet::parameter(graph, b_), u = dynet::parameter(graph, u_);
    u2 = dynet::parameter(graph, u2_), b2 = dynet::parameter(graph, b2_);
  }
};

using Cell = std::function<State(ComputationGraph&, Model&, const TreeNode&, const State*, const State*)>;

Expression Part(const Expression& gates, unsigned i, unsigned hidden) {
  return dynet::pick_range(gates, i * hidden, (i + 1) * hidden);
}

State TreeFc(ComputationGraph& graph, Model& m, const TreeNode& node, const State* left, const State* right) {
  if (left == nullptr) return {dynet::lookup(graph, m.embedding, node.token), {}};
  return {dynet::rectify(dynet::affine_transform({m.b, m.u, dynet::concatenate({left->h, right->h})})), {}};
}

State TreeLstm(ComputationGraph& graph, Model& m, const TreeNode& node, const State* left,
               const State* right) {
  const auto gates = [&](const Expression& z, const Expression* kept) {
    Expression c = dynet::cmult(dynet::logistic(Part(z, 0, m.hidden)), dynet::tanh(Part(z, 2, m.hidden)));
    if (kept != nullptr) c = c + *kept;
    return State{dynet::cmult(dynet::logistic(Part(z, 1, m.hidden)), dynet::tanh(c)), c};
  };
  if (left == nullptr)
    return gates(dynet::affine_transform({m.b, m.w, dynet::lookup(graph, m.embedding, node.token)}), nullptr);
  const auto forget = [&](const State& child) {
    return dynet::cmult(dynet::logistic(dynet::affine_transform({m.b2, m.u2, child.h})), child.c);
  };
  const Expression kept = forget(*left) + forget(*right);
  return gates(dynet::affine_transform({m.b, m.u, left->h + right->h}), &kept);
}

State TreeGru(ComputationGraph& graph, Model& m, const TreeNode& node, const State* left,
              const State* right) {
  if (left == nullptr) {
    const Expression x = dynet::affine_transform({m.b, m.w, dynet::lookup(graph, m.embedding, node.token)});
    const Expression z = dynet::logistic(Part(x, 1, m.hidden));
    return {dynet::cmult(1 - z, dynet::tanh(Part(x, 2, m.hidden))), {}};
  }
  const Expression s = left->h + right->h;
  const Expression rz =
      dynet::logistic(dynet::affine_transform({dynet::pick_range(m.b, 0, 2 * m.hidden), m.u, s}));
  const Expression r = Part(rz, 0, m.hidden), z = Part(rz, 1, m.hidden);
  const Expression candidate =
      dynet::tanh(dynet::affine_transform({Part(m.b, 2, m.hidden), m.u2, dynet::cmult(r, s)}));
  return {dynet::cmult(1 - z, candidate) + dynet::cmult(z, s), {}};
}

State DagRnn(ComputationGraph& graph, Model& m, const TreeNode& node, const State* up, const State* left) {
  const Expression x = dynet::affine_transform({m.b, m.w, dynet::lookup(graph, m.embedding, node.token)});
  if (up == nullptr && left == nullptr) return {dynet::tanh(x), {}};
  const Expression s = up == nullptr ? left->h : left == nullptr ? up->h : up->h + left->h;
  return {dynet::tanh(m.u * s + x), {}};
}

double MillisecondsABatch(const std::vector<Tree>& trees, size_t batch, const Cell& cell, Model* model) {
  const auto begin = std::chrono::steady_clock::now();
  size_t batches = 0;
  for (size_t first = 0; first + batch <= trees.size(); first += batch, ++batches) {
    ComputationGraph graph;
    model->Enter(graph);
    std::vector<Expression> roots;
    for (size_t t = first; t < first + batch; ++t) {
      std::vector<State> states;
      for (const TreeNode& node : trees[t]) {
        const State* const left = node.left < 0 ? nullptr : &states[static_cast<size_t>(node.left)];
        const State* const right = node.right < 0 ? nullptr : &states[static_cast<size_t>(node.right)];
        State state = cell(graph, *model, node, left, right);
        states.push_back(state);
      }
      roots.push_back(states.back().h);
    }
    graph.forward(dynet::sum(roots));
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(batches);
}

}  // namespace

int main(int argc, char** argv) {
  dynet::DynetParams settings = dynet::extract_dynet_params(argc, argv);
  settings.mem_descriptor = "1024";
  dynet::initialize(settings);
  std::map<std::string, unsigned> vocabulary;
  std::vector<Tree> sentiment;
  for (std::string line; std::getline(std::cin, line) && sentiment.size() < 250;)
    sentiment.push_back(ReadTree(line, &vocabulary));
  struct Case {
    std::string name;
    std::vector<Tree> trees;
    Cell cell;
    unsigned w_rows, u_rows, u_columns, u2_rows, b_rows;  // in hidden sizes
    int strategies;
  };
  const std::vector<Case> cases = {
      {"treefc", std::vector<Tree>(50, PerfectTree(7)), TreeFc, 1, 1, 2, 1, 1, 4},
      {"treelstm", sentiment, TreeLstm, 3, 3, 1, 1, 3, 4},
      {"treegru", sentiment, TreeGru, 3, 2, 1, 1, 3, 4},
      // Strategy 3 ends in a segmentation fault on the grids.
      {"dagrnn", std::vector<Tree>(50, Grid(10)), DagRnn, 1, 1, 1, 1, 1, 3},
  };
  for (const Case& one : cases)
    for (const unsigned hidden : {256U, 512U})
      for (const size_t batch : {size_t{1}, size_t{10}}) {
        if (one.trees.size() < batch) continue;
        Model model;
        model.hidden = hidden;
        model.embedding = model.parameters.add_lookup_parameters(
            std::max<unsigned>(256, static_cast<unsigned>(vocabulary.size())), {hidden});
        model.w_ = model.parameters.add_parameters({one.w_rows * hidden, hidden});
        model.u_ = model.parameters.add_parameters({one.u_rows * hidden, one.u_columns * hidden});
        model.u2_ = model.parameters.add_parameters({one.u2_rows * hidden, hidden});
        model.b_ = model.parameters.add_parameters({one.b_rows * hidden});
        model.b2_ = model.parameters.add_parameters({hidden});
        const std::vector<Tree> trees(one.trees.begin(),
                                      one.trees.begin() + static_cast<long>(std::min<size_t>(
                                                              one.trees.size(), batch == 1 ? 100 : 250)));
        double best = 1e300;
        int best_strategy = -1;
        for (int strategy = 0; strategy < one.strategies; ++strategy) {
          dynet::autobatch_flag = strategy;
          MillisecondsABatch(trees, batch, one.cell, &model);  // warm
          const double ms = MillisecondsABatch(trees, batch, one.cell, &model);
          if (ms < best) best = ms, best_strategy = strategy;
        }
        std::printf(
            "{\"bench\":\"recursion\",\"peer\":\"dynet\",\"case\":\"%s\",\"hidden\":%u,\"batch\":%zu,"
            "\"ms\":%.3f,\"strategy\":%d,\"threads\":1}\n",
            one.name.c_str(), hidden, batch, best, best_strategy);
        std::fflush(stdout);
      }
}
