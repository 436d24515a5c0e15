// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/rules/rule_pattern.h"

namespace heddle::compiler {

/// What the rules look at: a graph with inferred nodes.
struct RuleSubject {
  Graph graph;
  std::vector<int> readers;           ///< Of each node: inputs of other nodes that name it.
  std::vector<bool> format_is_known;  ///< Of each node: info.format is what the run will have.
};

/// A place in a graph where a pattern fits.
class Match {
 public:
  explicit Match(const RuleSubject& subject) : subject_(&subject) {}

  /// Fits `pattern` (its assigned node) on node `root`. With `shared`, nodes inside may have other readers.
  /// Cost: the pattern's size, twice for each commuting operator in it, and the length of the chains that
  /// f(...) takes.
  bool Fit(const Graph& pattern, NodeId root, bool shared);

  /// Size, type and format of what a letter stands for.
  const ValueInfo& Info(std::string_view letter) const { return subject_->graph[NodeOf(letter)].info; }
  const Shape& ShapeOf(std::string_view letter) const { return Info(letter).shape; }
  const Shape& ShapeOfRoot() const { return subject_->graph[root_].info.shape; }
  /// The same of input i of the root. Its format is what the run will find only if that of every letter in it
  /// is.
  const ValueInfo& Operand(size_t i) const { return subject_->graph[subject_->graph[root_].inputs[i]].info; }
  /// The sizes of all inputs of the root are known, so that a rule may drop one that must fit the others.
  bool KnowsOperands() const;
  /// The format is CSR and the run will find it so; false where that is not known yet.
  bool IsSparse(std::string_view letter) const;
  bool IsDense(std::string_view letter) const;
  bool IsColumn(std::string_view letter) const { return ShapeOf(letter).columns == 1; }
  bool IsRow(std::string_view letter) const { return ShapeOf(letter).rows == 1; }
  bool IsLiteral(std::string_view letter) const { return subject_->graph[NodeOf(letter)].Is("literal"); }
  std::string_view OperatorOf(std::string_view letter) const { return subject_->graph[NodeOf(letter)].op; }
  /// Its number; nullptr where it is not known.
  const Scalar* LiteralOf(std::string_view letter) const {
    return IsLiteral(letter) ? subject_->graph[NodeOf(letter)].FindAttribute("value") : nullptr;
  }

  NodeId root() const { return root_; }
  NodeId NodeOf(std::string_view letter) const { return letters_.find(letter)->second; }
  /// One operator of the chain that f(...) stands for, outermost first.
  struct Link {
    NodeId node;
    size_t input;  ///< Which of its inputs leads on inside.
  };
  const std::vector<Link>& Chain(std::string_view name) const { return chains_.find(name)->second; }
  /// All other operands of the chain are scalars, so that it does the same to every cell.
  bool TakesScalars(std::string_view name) const;
  /// Every letter and every other operand of the chains has a format that is known.
  bool KnowsFormats() const;

 private:
  bool FitNode(const Graph& pattern, NodeId inner, NodeId node);
  bool FitInputs(const Graph& pattern, const Node& inner, const Node& node, bool swapped);
  bool FitChain(const Graph& pattern, const Node& context, NodeId node, std::vector<Link>& chain);
  bool MayEnter(NodeId node) const {
    return shared_ || node == root_ || subject_->readers[static_cast<size_t>(node)] == 1;
  }

  const RuleSubject* subject_;
  NodeId root_ = kNoNode;
  bool shared_ = false;
  std::map<std::string, NodeId, std::less<>> letters_;
  std::map<std::string, std::vector<Link>, std::less<>> chains_;
};

}  // namespace heddle::compiler
