// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/graph.h"
#include "core/values/list.h"

namespace heddle::ops {
class Files;
}

namespace heddle::compiler {

/// A text that long (64 KiB) is no path and no option: inference leaves it to the run, which counts its
/// memory. A script that doubles a text forty times is a small one.
bool IsLongText(const Scalar& scalar);

/// What is known about a variable when a block is entered.
struct LiveIn {
  ValueInfo info;
  std::optional<Scalar> value;  ///< Of a scalar, when known.
  std::shared_ptr<const ListOf<LiveIn>>
      list;  ///< Of a list whose elements are known as far as this tells; never changed.
};
using LiveIns = std::map<std::string, LiveIn, std::less<>>;
/// Looks up what is known of a variable; nullptr: it has no value.
using FindLiveIn = std::function<const LiveIn*(std::string_view name)>;

/// A graph with every node's info filled in as far as it can be known.
struct InferOutcome {
  Graph graph;
  /// Of every scalar node whose value is known before the block runs: literals, known live-ins, sizes of
  /// matrices of known shape, and pure scalar operators on those (ops::EvaluateScalar, the definition that
  /// kernels use as well); also FALSE & x and TRUE | x.
  std::vector<std::optional<Scalar>> values;
  bool complete = true;  ///< No matrix has an unknown size and no value an unknown type.
  Status error;  ///< The first error, with the node's position. kFailedPrecondition for wrong shapes, types
                 ///< and missing variables; the operator's own code otherwise (kNotFound of a read).
  NodeId failed = kNoNode;   ///< Its node. Nodes before it are inferred, nodes after it are not.
  NodeId waiting = kNoNode;  ///< The first read that waits for a write before it.
};

/// What a graph says of its nodes, taken down before an inference fills in what it finds: inference then goes
/// over the graph itself and not over a copy.
class NodesBefore {
 public:
  explicit NodesBefore(const Graph& graph);
  struct Facts {
    ValueInfo info;
    std::vector<ValueInfo> results;
  };
  const Facts& operator[](NodeId id) const { return facts_[static_cast<size_t>(id)]; }
  /// The operators that inference has chosen by the types of their operands are again what they were.
  void RestoreOperators(Graph* graph) const;
  /// All is again as it was.
  void Restore(Graph* graph) const;

 private:
  std::vector<Facts> facts_;
  std::vector<std::pair<NodeId, Node>> chosen_;  ///< Nodes whose operators are chosen by types.
};

/// Infers one node after the other; keeps its small arrays between nodes.
class NodeInference {
 public:
  explicit NodeInference(ops::Files* files, ElementType element_type = ElementType::kFloat64)
      : files_(files), element_type_(element_type) {}
  /// Fills in info and value of node `id` from those of its inputs. Leaves a "variable" node alone. An input
  /// of unknown type makes the result unknown. The error has no position.
  Status Infer(Graph& graph, std::vector<std::optional<Scalar>>& values, NodeId id);

 private:
  Status InferOperator(Graph& graph, std::vector<std::optional<Scalar>>& values, Node& node,
                       std::optional<Scalar>& value);

  ops::Files* files_;
  ElementType element_type_;
  std::vector<ValueInfo> infos_;
  std::vector<ValueInfo> results_;  ///< Of the node that is inferred.
  std::vector<const Scalar*> scalars_;
};

/// What nrow, ncol and length (the name of an operator) are of a matrix of this shape; nullopt where it is
/// not known, and for other operators.
std::optional<Scalar> SizeOf(std::string_view op, const Shape& shape);

/// Fills in node.info for every node through ops::Infer. Where a size depends on a value that is not known
/// yet, the size stays unknown, and so do those that follow from it.
///
/// `element_type` is what matrices that are made of no others hold: the precision of the program.
/// `files` tells `read` the size of its file; nullptr where files must not be touched.
/// `all_errors`, when given, collects the error of every node; inference then goes on behind a failing node,
/// whose type counts as unknown, and `error` is the first of them. Runs at every entry of a block: about a
/// microsecond a node.
/// `waiting`: reads whose files a write before them has yet to make. They are not looked at.
InferOutcome InferShapes(Graph graph, const LiveIns& live_in, ops::Files* files,
                         std::vector<std::pair<NodeId, Status>>* all_errors = nullptr,
                         ElementType element_type = ElementType::kFloat64,
                         const std::set<NodeId>* waiting = nullptr);
InferOutcome InferShapes(Graph graph, const FindLiveIn& live_in, ops::Files* files,
                         std::vector<std::pair<NodeId, Status>>* all_errors = nullptr,
                         ElementType element_type = ElementType::kFloat64,
                         const std::set<NodeId>* waiting = nullptr);

}  // namespace heddle::compiler
