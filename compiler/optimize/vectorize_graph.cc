// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/vectorize_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler {
namespace {

// What an operator that accumulates is over all rounds, "" if none.
std::string_view TotalOf(std::string_view name) {
  const ops::Operator* op = ops::FindOperator(name);
  return op == nullptr ? std::string_view() : op->total;
}

class BodyVectorizer {
 public:
  BodyVectorizer(const Graph& body, const std::string& counter, const Node& from, const Node& to,
                 const SharedNames& numbers)
      : body_(body), counter_(counter), from_(from), to_(to), numbers_(numbers) {}

  std::optional<Graph> Run() {
    for (const Node& node : body_.nodes) {
      if (node.Is("assign")) assigned_.insert(node.Text("name"));
      if (node.Is("variable")) read_.insert(node.Text("name"));
    }
    if (assigned_.contains(counter_)) return std::nullopt;
    CountReaders();
    facts_.resize(body_.nodes.size());
    bool changes = false;
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (!Classify(id)) return std::nullopt;
      changes |= FactOf(id).form == Form::kRows || FactOf(id).form == Form::kWritten;
    }
    if (!changes) return std::nullopt;
    // What one round writes beside its own row, another would read or write again.
    for (const std::string& state : shifted_)
      if (uses_[state] > 1) return std::nullopt;
    Emit();
    return Inferred();
  }

 private:
  enum class Form : uint8_t {
    kSame,     ///< The same in every round.
    kCounter,  ///< counter, or counter + shift, or counter - shift.
    kRows,     ///< One row (column) of what it is over all rounds; a row of one cell where the body has a
               ///< scalar.
    kNumber,   ///< A scalar that rounds accumulate in, before the round.
    kTotal,    ///< It, after the round.
    kWritten,  ///< A matrix whose row the round writes.
    kAssign,
  };
  struct Fact {
    Form form = Form::kSame;
    bool is_scalar = false;   // kRows
    int64_t width = -1;       // kRows: cells of a row, -1: not known
    std::string state;        // kWritten: the variable
    bool is_written = false;  // kWritten: by this round
  };
  Fact& FactOf(NodeId id) { return facts_[static_cast<size_t>(id)]; }
  const Fact& FactOf(NodeId id) const { return facts_[static_cast<size_t>(id)]; }

  void CountReaders() {
    readers_.assign(body_.nodes.size(), 0);
    for (const Node& node : body_.nodes)
      for (NodeId input : node.inputs)
        if (input != kNoNode) ++readers_[static_cast<size_t>(input)];
  }

  bool Classify(NodeId id) {
    const Node& node = body_[id];
    Fact& fact = FactOf(id);
    if (node.Is("literal")) return true;
    if (node.Is("variable")) return ClassifyVariable(node, &fact);
    if (node.Is("assign")) return ClassifyAssign(node, &fact);
    if (std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) { return IsSame(input); }))
      return IsRepeatable(node);
    if (ops::HasRole(node, ops::Role::kRange)) return ClassifyIndex(node, &fact);
    if (ops::HasRole(node, ops::Role::kRangeAssign)) return ClassifyWrite(node, &fact);
    fact.form = Form::kRows;
    if (ops::HasRole(node, ops::Role::kAsScalar)) {
      fact = FactOf(node.inputs[0]);
      fact.is_scalar = true;
      return fact.form == Form::kRows && fact.width == 1;
    }
    if (IsShift(node)) {
      fact.form = Form::kCounter;
      return true;
    }
    if (IsAccumulation(node)) {
      fact.form = Form::kTotal;
      return readers_[static_cast<size_t>(id)] == 1;
    }
    if (IsCellWise(node)) return ClassifyCells(node, &fact);
    if (!RowAggregateOf(node.op).empty()) {
      const Fact& rows = FactOf(node.inputs[0]);
      fact.is_scalar = true;
      fact.width = 1;
      return rows.form == Form::kRows && !rows.is_scalar;
    }
    if (ops::HasRole(node, ops::Role::kProduct) && by_rows_) {
      fact.width = node.info.shape.columns;
      return FactOf(node.inputs[0]).form == Form::kRows && !FactOf(node.inputs[0]).is_scalar &&
             IsSame(node.inputs[1]) && body_[node.inputs[1]].info.IsMatrix();
    }
    return false;
  }

  bool IsSame(NodeId input) const { return input == kNoNode || FactOf(input).form == Form::kSame; }

  // May be computed once for all rounds, of which there is one at least.
  static bool IsRepeatable(const Node& node) {
    const ops::Operator* const op = ops::FindOperator(node.op);
    return op != nullptr && op->pure && !op->effect && op->seed_input < 0;
  }

  bool ClassifyVariable(const Node& node, Fact* fact) {
    const std::string& name = node.Text("name");
    if (name == counter_) {
      fact->form = Form::kCounter;
    } else if (assigned_.contains(name)) {
      fact->form = node.info.IsMatrix() ? Form::kWritten : Form::kNumber;
      fact->state = name;
      return node.info.IsMatrix() || numbers_.contains(name);
    }
    return true;
  }

  // counter + k and counter - k.
  bool IsShift(const Node& node) const {
    const std::optional<ops::BinaryCode> code = ops::FindBinaryCode(node.op);
    const bool adds = code == ops::BinaryCode::kAdd;
    if ((!adds && code != ops::BinaryCode::kSubtract) || node.inputs.size() != 2) return false;
    const auto is_counter = [&](NodeId id) {
      return body_[id].Is("variable") && FactOf(id).form == Form::kCounter;
    };
    const auto is_step = [&](NodeId id) {
      return IsSame(id) && body_[id].info.IsScalar() && body_[id].info.value_type == ValueType::kInteger;
    };
    return (is_counter(node.inputs[0]) && is_step(node.inputs[1])) ||
           (adds && is_step(node.inputs[0]) && is_counter(node.inputs[1]));
  }

  // Positions of an index node begin at input `first`: rows, then columns, a begin and an end each. Those of
  // the counter pick one row.
  bool ClassifyPositions(const Node& node, size_t first) {
    const auto input = [&](size_t k) {
      return first + k < node.inputs.size() ? node.inputs[first + k] : kNoNode;
    };
    const auto is_counter = [&](size_t k) {
      return input(k) != kNoNode && FactOf(input(k)).form == Form::kCounter;
    };
    const bool rows = is_counter(0), columns = is_counter(2);
    if (rows == columns || (has_axis_ && rows != by_rows_)) return false;
    has_axis_ = true;
    by_rows_ = rows;
    const size_t own = rows ? 0 : 2, other = rows ? 2 : 0;
    return input(own) == input(own + 1) && IsSame(input(other)) && IsSame(input(other + 1));
  }
  NodeId CounterOf(const Node& node, size_t first) const { return node.inputs[first + (by_rows_ ? 0 : 2)]; }

  bool ClassifyIndex(const Node& node, Fact* fact) {
    fact->form = Form::kRows;
    const Fact& from = FactOf(node.inputs[0]);
    if (!ClassifyPositions(node, 1) || !body_[node.inputs[0]].info.IsMatrix() || !node.info.IsMatrix())
      return false;
    fact->width = by_rows_ ? node.info.shape.columns : node.info.shape.rows;
    if (from.form == Form::kSame) return true;
    if (from.form != Form::kWritten || !body_[CounterOf(node, 1)].Is("variable")) return false;
    ++uses_[from.state];
    return true;
  }

  bool ClassifyWrite(const Node& node, Fact* fact) {
    const Fact &target = FactOf(node.inputs[0]), &value = FactOf(node.inputs[1]);
    if (target.form != Form::kWritten || !ClassifyPositions(node, 2)) return false;
    *fact = {.form = Form::kWritten, .state = target.state, .is_written = true};
    ++uses_[target.state];
    if (!body_[CounterOf(node, 2)].Is("variable")) shifted_.insert(target.state);
    // Written one after the other, never side by side.
    if (!written_.insert(node.inputs[0]).second) return false;
    // A number of the round fills all cells of a range; a column of numbers does not.
    if (value.form == Form::kRows) return !value.is_scalar || IsOneCell(node);
    return value.form == Form::kSame && IsNumber(body_, node.inputs[1], numbers_);
  }

  // Of a write: across the rows, it is one position.
  bool IsOneCell(const Node& node) const {
    const size_t across = by_rows_ ? 4 : 2;
    if (node.inputs.size() < across + 2) return false;
    const NodeId begin = node.inputs[across], end = node.inputs[across + 1];
    if (begin == kNoNode || end == kNoNode) return false;
    const Scalar *const first = body_[begin].FindAttribute("value"), *const last =
                                                                         body_[end].FindAttribute("value");
    return begin == end || (first != nullptr && last != nullptr && IsSameScalar(*first, *last));
  }

  // Cell by cell with other rows and with numbers. A number of each round is a column beside rows: a vector
  // on the right. Sizes that are not known either fit in the loop and in all rounds at once, or in neither.
  bool ClassifyCells(const Node& node, Fact* fact) {
    fact->is_scalar = true;
    bool has_rows = false;
    for (NodeId input : node.inputs) {
      if (input == kNoNode) continue;
      const Fact& operand = FactOf(input);
      if (operand.form == Form::kSame) {
        if (!IsNumber(body_, input, numbers_)) return false;
        continue;
      }
      if (operand.form != Form::kRows) return false;
      const int64_t left = fact->width, right = operand.width;
      if (has_rows && right != 1 && (left == 1 || (left >= 0 && right >= 0 && left != right))) return false;
      if (!has_rows) fact->width = right;
      has_rows = true;
      fact->is_scalar &= operand.is_scalar;
    }
    return has_rows;
  }

  bool IsAccumulation(const Node& node) const {
    if (TotalOf(node.op).empty() || node.inputs.size() != 2) return false;
    const auto fits = [&](size_t number, size_t value) {
      const NodeId id = node.inputs[number];
      return FactOf(id).form == Form::kNumber && readers_[static_cast<size_t>(id)] == 1 &&
             FactOf(node.inputs[value]).form == Form::kRows && FactOf(node.inputs[value]).is_scalar &&
             body_[node.inputs[value]].info.value_type == ValueType::kDouble;
    };
    return fits(0, 1) || (ops::FindBinaryCode(node.op) != ops::BinaryCode::kSubtract && fits(1, 0));
  }

  // Of an aggregate of one row.
  std::string_view RowAggregateOf(std::string_view name) const {
    const ops::Operator* op = ops::FindOperator(name);
    if (op == nullptr) return {};
    return by_rows_ ? op->of_rows : op->of_columns;
  }

  bool ClassifyAssign(const Node& node, Fact* fact) {
    fact->form = Form::kAssign;
    const NodeId value = node.inputs[0];
    const Fact& of = FactOf(value);
    switch (of.form) {
      case Form::kSame:
      case Form::kRows: return !read_.contains(node.Text("name"));  // By the next round.
      case Form::kWritten: return of.is_written && of.state == node.Text("name") && !written_.contains(value);
      case Form::kTotal: {
        const Node& op = body_[value];
        const NodeId number = FactOf(op.inputs[0]).form == Form::kNumber ? op.inputs[0] : op.inputs[1];
        return FactOf(number).state == node.Text("name");
      }
      default: return false;
    }
  }

  NodeId Add(std::string op, std::vector<NodeId> inputs, const Node& like) {
    Node node = {.op = std::move(op), .inputs = std::move(inputs), .position = like.position};
    return result_.Add(std::move(node));
  }

  void Emit() {
    from_id_ = result_.Add(from_);
    to_id_ = result_.Add(to_);
    whole_.assign(body_.nodes.size(), kNoNode);
    last_.assign(body_.nodes.size(), kNoNode);
    for (NodeId id = 0; id < body_.size(); ++id) {
      const Node& node = body_[id];
      NodeId& whole = whole_[static_cast<size_t>(id)];
      switch (FactOf(id).form) {
        case Form::kCounter: break;
        case Form::kAssign: {
          const bool rows = FactOf(node.inputs[0]).form == Form::kRows;
          Node assign = node;
          assign.inputs = {rows ? LastOf(node.inputs[0]) : whole_[static_cast<size_t>(node.inputs[0])]};
          result_.Add(std::move(assign));
          break;
        }
        case Form::kTotal: {
          const bool first = FactOf(node.inputs[0]).form == Form::kNumber;
          const NodeId number = whole_[static_cast<size_t>(node.inputs[first ? 0 : 1])],
                       value = whole_[static_cast<size_t>(node.inputs[first ? 1 : 0])];
          const NodeId total = Add(std::string(TotalOf(node.op)), {value}, node);
          whole = Add(node.op, first ? std::vector{number, total} : std::vector{total, number}, node);
          break;
        }
        default:
          whole = Copy(
              node, [&](NodeId input) { return whole_[static_cast<size_t>(input)]; }, false);
          break;
      }
    }
    Node counter = {.op = "assign", .inputs = {to_id_}, .position = to_.position};
    counter.SetAttribute("name", counter_);
    result_.Add(std::move(counter));
  }

  // A node of all rounds, or (`last`) of the last one.
  template <typename InputOf>
  NodeId Copy(const Node& node, const InputOf& input_of, bool last) {
    if (ops::HasRole(node, ops::Role::kAsScalar) && !last && FactOf(node.inputs[0]).form == Form::kRows)
      return input_of(node.inputs[0]);
    Node copy = node;
    copy.info = {};
    const size_t positions = ops::HasRole(node, ops::Role::kRange) ? 1 : 2;
    const bool picks =
        ops::HasRole(node, {ops::Role::kRange, ops::Role::kRangeAssign}) && IsOfCounter(node, positions);
    for (size_t k = 0; k < copy.inputs.size(); ++k) {
      NodeId& input = copy.inputs[k];
      if (input == kNoNode) continue;
      if (picks && FactOf(input).form == Form::kCounter)
        input = Position(input, !last && (k - positions) % 2 == 0 ? from_id_ : to_id_);
      else
        input = input_of(input);
    }
    if (!last && node.inputs.size() == 1 && FactOf(node.inputs[0]).form == Form::kRows)
      if (const std::string_view aggregate = RowAggregateOf(node.op); !aggregate.empty()) copy.op = aggregate;
    copy.after.clear();
    if (!IsOrdered(copy)) return result_.Add(std::move(copy));
    if (last_ordered_ != kNoNode) copy.after = {last_ordered_};
    return last_ordered_ = result_.Add(std::move(copy));
  }

  bool IsOfCounter(const Node& node, size_t positions) const {
    return std::any_of(
        node.inputs.begin() + static_cast<std::ptrdiff_t>(positions), node.inputs.end(),
        [&](NodeId input) { return input != kNoNode && FactOf(input).form == Form::kCounter; });
  }

  // The counter, or the counter and its shift, where the counter is `bound`.
  NodeId Position(NodeId counter, NodeId bound) {
    const Node& node = body_[counter];
    if (node.Is("variable")) return bound;
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs)
      inputs.push_back(FactOf(input).form == Form::kCounter ? bound : whole_[static_cast<size_t>(input)]);
    return Add(node.op, std::move(inputs), node);
  }

  // What the last round computes.
  NodeId LastOf(NodeId id) {
    if (FactOf(id).form != Form::kRows) return whole_[static_cast<size_t>(id)];
    NodeId& last = last_[static_cast<size_t>(id)];
    if (last == kNoNode)
      last = Copy(
          body_[id], [&](NodeId input) { return LastOf(input); }, true);
    return last;
  }

  // nullopt if something cannot be: the loop says so in its own words.
  std::optional<Graph> Inferred() {
    LiveIns live_in;
    for (const Node& node : body_.nodes)
      if (node.Is("variable")) live_in[node.Text("name")] = {node.info, std::nullopt};
    for (const Node* bound : {&from_, &to_})
      if (bound->Is("variable")) live_in[bound->Text("name")] = {bound->info, std::nullopt};
    InferOutcome outcome = InferShapes(std::move(result_), live_in, nullptr);
    if (!outcome.error.ok()) return std::nullopt;
    return std::move(outcome.graph);
  }

  const Graph& body_;
  const std::string& counter_;
  const Node &from_, &to_;
  const SharedNames& numbers_;
  Names assigned_, read_;  // Variables.
  std::vector<Fact> facts_;
  std::vector<int> readers_;
  std::set<NodeId> written_;  // Nodes whose matrix a later node writes.
  bool has_axis_ = false, by_rows_ = true;
  std::map<std::string, int> uses_;  // Reads and writes of each matrix that the body writes.
  Names shifted_;                    // Those of which it writes rows beside that of the counter.
  Graph result_;
  NodeId from_id_ = kNoNode, to_id_ = kNoNode, last_ordered_ = kNoNode;
  std::vector<NodeId> whole_, last_;  // By node of the body.
};

}  // namespace

bool IsNumeric(ValueType type) {
  return type == ValueType::kDouble || type == ValueType::kInteger || type == ValueType::kBoolean;
}

bool IsNumber(const Graph& graph, NodeId id, const SharedNames& numbers) {
  const Node& node = graph[id];
  if (node.info.IsScalar() && IsNumeric(node.info.value_type)) return true;
  if (node.Is("variable")) return numbers.contains(node.Text("name"));
  return IsCellWise(node) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
           return input == kNoNode || IsNumber(graph, input, numbers);
         });
}

std::optional<Graph> VectorizeBody(const Graph& body, const std::string& counter, const Node& from,
                                   const Node& to, const SharedNames& numbers) {
  return BodyVectorizer(body, counter, from, to, numbers).Run();
}

}  // namespace heddle::compiler
