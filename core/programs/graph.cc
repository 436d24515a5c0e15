// SPDX-License-Identifier: Apache-2.0
#include "core/programs/graph.h"

#include <algorithm>

#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/programs/text_format.h"
#include "core/text/quoted.h"

namespace heddle {
namespace {

auto LowerBound(auto& attributes, std::string_view name) {
  return std::lower_bound(
      attributes.begin(), attributes.end(), name,
      [](const auto& attribute, std::string_view wanted) { return attribute.first < wanted; });
}

void AppendIds(const std::vector<NodeId>& ids, std::string* out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out->append(", ");
    AppendNodeId(ids[i], out);
  }
  out->push_back(')');
}

std::vector<NodeId> ReadIds(TextReader& reader) {
  std::vector<NodeId> ids;
  if (reader.Accept(")")) return ids;
  do {
    ids.push_back(reader.Node());
  } while (reader.ok() && reader.Accept(","));
  reader.Expect(")");
  return ids;
}

// Operators are full of symbols, so an operator is all up to its parenthesis; anything stranger is quoted.
bool IsPlainOperator(std::string_view op) {
  return !op.empty() && op.find_first_of("(\" \n\t\r") == std::string_view::npos;
}

// Of nodes that hold operators: their text, as an attribute.
constexpr std::string_view kOperators = "operator";

void AppendOperators(const Node& node, std::string* out) {
  if (node.fused == nullptr && node.phased == nullptr) return;
  out->append(" ").append(kOperators).append("=");
  AppendQuoted(node.fused != nullptr ? node.fused->ToText() : node.phased->ToText(), out);
}

void ReadOperators(TextReader& reader, Node* node) {
  const std::string text = reader.Quoted();
  if (node->Is("phased")) {
    Result<PhasedOperator> phased = PhasedOperator::Parse(text);
    if (const Status status = phased.ok() ? Verify(*phased) : phased.status(); !status.ok())
      return reader.Fail(status);
    node->phased = std::make_shared<const PhasedOperator>(*std::move(phased));
    return;
  }
  Result<FusedOperator> fused = FusedOperator::Parse(text);
  if (const Status status = fused.ok() ? Verify(*fused) : fused.status(); !status.ok())
    return reader.Fail(status);
  node->fused = std::make_shared<const FusedOperator>(*std::move(fused));
}

void AppendNode(NodeId id, const Node& node, std::string* out) {
  AppendNodeId(id, out);
  out->append(" = ");
  if (IsPlainOperator(node.op))
    out->append(node.op);
  else
    AppendQuoted(node.op, out);
  out->push_back('(');
  AppendIds(node.inputs, out);
  if (!node.after.empty()) {
    out->append(" after(");
    AppendIds(node.after, out);
  }
  for (const auto& [name, value] : node.attributes) {
    out->push_back(' ');
    AppendName(name, out);
    out->push_back('=');
    out->append(value.ToLiteral());
  }
  AppendOperators(node, out);
  AppendInfo(node.info, out);
  for (size_t i = 0; i < node.results.size(); ++i) {
    out->append(i == 0 ? " results(" : ", ");
    AppendType(node.results[i], out);
  }
  if (!node.results.empty()) out->push_back(')');
  AppendPosition(node.position, out);
  out->push_back('\n');
}

Node ReadNode(TextReader& reader) {
  Node node;
  reader.Expect("=");
  node.op = reader.Peek() == '"' ? reader.Quoted() : std::string(reader.Until('('));
  reader.Expect("(");
  node.inputs = ReadIds(reader);
  if (reader.Accept("after(")) node.after = ReadIds(reader);
  while (reader.ok() && reader.Peek() != ':') {
    std::string name = reader.Name();
    reader.Expect("=");
    if (name == kOperators && (IsFused(node) || node.Is("phased")))
      ReadOperators(reader, &node);
    else
      node.attributes.emplace_back(std::move(name), reader.Literal());
  }
  node.info = reader.Info();
  if (reader.Accept("results(")) {
    do {
      node.results.push_back(reader.Type());
    } while (reader.ok() && reader.Accept(","));
    reader.Expect(")");
  }
  node.position = reader.Position();
  return node;
}

Status Broken(NodeId id, const Node& node, std::string_view why) {
  return Internal("broken graph: node %{} ({}) {}", id, node.op, why).At(node.position);
}

// The operators that say something about their nodes.
enum class Form : uint8_t { kLiteral, kVariable, kAssign, kResult, kFused, kPhased, kOther };

// Every graph is verified after every pass: the size tells most operators apart.
Form FormOf(const Node& node) {
  switch (node.op.size()) {
    case 5: return node.op == "fused" ? Form::kFused : Form::kOther;
    case 6:
      return node.op == "assign"   ? Form::kAssign
             : node.op == "result" ? Form::kResult
             : node.op == "phased" ? Form::kPhased
                                   : Form::kOther;
    case 7: return node.op == "literal" ? Form::kLiteral : Form::kOther;
    case 8: return node.op == "variable" ? Form::kVariable : Form::kOther;
    case 12: return node.op == "fusedSeveral" ? Form::kFused : Form::kOther;
    default: return Form::kOther;
  }
}

Status VerifyNode(NodeId id, const Node& node, Form form) {
  if (node.op.empty()) return Broken(id, node, "has no operator");
  for (const NodeId input : node.inputs)
    if (input != kNoNode && (input < 0 || input >= id))
      return Broken(id, node, "has an input that does not come before it");
  for (const NodeId before : node.after)
    if (before < 0 || before >= id) return Broken(id, node, "acts after a node that does not come before it");
  for (size_t i = 1; i < node.attributes.size(); ++i)
    if (!(node.attributes[i - 1].first < node.attributes[i].first))
      return Broken(id, node, "has attributes that are not sorted by name");
  if (node.info.shape.rows < kUnknown || node.info.shape.columns < kUnknown)
    return Broken(id, node, "has a negative size");
  if ((form == Form::kLiteral || form == Form::kVariable) && !node.inputs.empty())
    return Broken(id, node, "has inputs");
  if (form == Form::kLiteral && node.FindAttribute("value") == nullptr)
    return Broken(id, node, "has no value");
  if ((form == Form::kVariable || form == Form::kAssign) && node.Text("name").empty())
    return Broken(id, node, "names no variable");
  if ((form == Form::kAssign || form == Form::kResult) &&
      (node.inputs.size() != 1 || node.inputs[0] == kNoNode))
    return Broken(id, node, "does not have one input");
  if ((form == Form::kFused) != (node.fused != nullptr) ||
      (form == Form::kPhased) != (node.phased != nullptr))
    return Broken(id, node, "does not hold the operators that it runs, or runs none and holds some");
  if (node.info.IsTuple() == node.results.empty())
    return Broken(id, node, "has a tuple without results, or results without a tuple");
  return OkStatus();
}

// A node whose type is not known yet may turn out to be a tuple.
Status VerifyResults(const Graph& graph, NodeId id, Form form) {
  const Node& node = graph[id];
  if (form != Form::kResult) {
    for (const NodeId input : node.inputs)
      if (input != kNoNode && graph[input].info.IsTuple())
        return Broken(id, node, "reads several results as one value");
    return OkStatus();
  }
  const Scalar* const index = node.FindAttribute("index");
  if (index == nullptr || index->type() != ValueType::kInteger || index->AsInteger() < 0)
    return Broken(id, node, "says not which result it is");
  const Node& tuple = graph[node.inputs[0]];
  if (tuple.info.data_type != DataType::kUnknown && node.ResultIndex() >= tuple.results.size())
    return Broken(id, node, "is a result that its input does not have");
  return OkStatus();
}

}  // namespace

const Scalar* Node::FindAttribute(std::string_view name) const {
  // A node has few attributes, and most names differ in their length or first letter.
  for (const auto& [own, value] : attributes)
    if (own.size() == name.size() && !own.empty() && own[0] == name[0] && own == name) return &value;
  return nullptr;
}

void Node::SetAttribute(std::string_view name, Scalar value) {
  const auto found = LowerBound(attributes, name);
  if (found != attributes.end() && found->first == name)
    found->second = std::move(value);
  else
    attributes.emplace(found, std::string(name), std::move(value));
}

const std::string& Node::Text(std::string_view name) const {
  static const std::string* const kEmpty = new std::string;
  const Scalar* const value = FindAttribute(name);
  return value != nullptr && value->IsString() ? value->AsString() : *kEmpty;
}

void AppendGraph(const Graph& graph, int indent, std::string* out) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    out->append(static_cast<size_t>(indent), ' ');
    AppendNode(id, graph[id], out);
  }
}

void AppendRoots(const std::vector<NodeId>& roots, std::string* out) {
  *out += " roots=(";
  for (size_t i = 0; i < roots.size(); ++i) {
    if (i > 0) *out += ", ";
    AppendNodeId(roots[i], out);
  }
  *out += ")\n";
}

std::vector<NodeId> ReadRoots(TextReader& reader) {
  std::vector<NodeId> roots;
  reader.Expect("roots=");
  reader.Expect("(");
  do {
    roots.push_back(reader.Node());
  } while (reader.ok() && reader.Accept(","));
  reader.Expect(")");
  return roots;
}

Graph ReadGraph(TextReader& reader) {
  Graph graph;
  while (reader.Peek() == '%') {
    reader.Accept("%");
    if (reader.Integer32() != graph.size()) reader.Fail("nodes numbered from %0");
    graph.Add(ReadNode(reader));
    if (!reader.ok()) break;
  }
  return graph;
}

std::string Graph::ToText() const {
  std::string text;
  AppendGraph(*this, 0, &text);
  return text;
}

Result<Graph> Graph::Parse(std::string_view text) {
  TextReader reader(text, "graph");
  Graph graph = ReadGraph(reader);
  if (!reader.AtEnd()) reader.Fail("a node");
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return graph;
}

Node ResultOf(const Graph& graph, NodeId tuple, size_t index) {
  const Node& from = graph[tuple];
  Node node;
  node.op = "result";
  node.inputs = {tuple};
  node.position = from.position;
  node.SetAttribute("index", Scalar(static_cast<int64_t>(index)));
  if (index < from.results.size()) node.info = from.results[index];
  return node;
}

Status Verify(const Graph& graph) {
  std::vector<std::pair<std::string_view, NodeId>> assigned;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Form form = FormOf(graph[id]);
    HEDDLE_RETURN_IF_ERROR(VerifyNode(id, graph[id], form));
    HEDDLE_RETURN_IF_ERROR(VerifyResults(graph, id, form));
    for (const NodeId before : graph[id].after)
      if (FormOf(graph[before]) == Form::kResult)
        return Broken(id, graph[id], "acts after a result and not after the node that has it");
    if (form == Form::kAssign) assigned.emplace_back(graph[id].Text("name"), id);
  }
  std::sort(assigned.begin(), assigned.end());
  for (size_t i = 1; i < assigned.size(); ++i)
    if (assigned[i].first == assigned[i - 1].first)
      return Broken(assigned[i].second, graph[assigned[i].second], "assigns a variable a second time");
  return OkStatus();
}

}  // namespace heddle
