// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/explain/explain_compression.h"
#include "compiler/optimize/static/static_pass.h"
#include "compiler/recursion/recognise.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

std::string Quoted(const Scalar& value) {
  if (!value.IsString()) return value.ToText();
  std::string text = "\"";
  for (const char c : value.AsString()) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  text += '"';
  return text;
}

bool IsInfix(const Node& node) {
  if (node.inputs.size() != 2) return false;
  const char first = node.op[0];
  return !((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'));
}

// "1000x10", "?x10 sparse", "double", "" for nothing known.
std::string TypeText(const ValueInfo& info) {
  switch (info.data_type) {
    case DataType::kUnknown: return "";
    case DataType::kScalar:
      return info.value_type == ValueType::kUnknown ? "scalar" : std::string(Name(info.value_type));
    case DataType::kMatrix:
      return fmt::format("{}{}", info.shape, info.format == Format::kSparse ? " sparse" : "");
    case DataType::kFrame: {
      const std::string columns = info.schema == nullptr ? "" : fmt::format(" ({})", info.schema->ToText());
      return fmt::format("{} frame{}", info.shape, columns);
    }
    case DataType::kList:
    case DataType::kTuple: return std::string(Name(info.data_type));
  }
  HEDDLE_CHECK(false, "every type has a text");
}

bool IsStatement(const Node& node) {
  using enum ops::Role;
  return ops::HasRole(node, {kPrint, kStop, kAssert, kWrite}) || node.Is("assign");
}

struct Line {
  std::string text;
  std::string type;
};

class GraphText {
 public:
  explicit GraphText(const Graph& graph) : graph_(graph), names_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.size(); ++id) Visit(id);
  }

  std::string Text(int indent) const {
    size_t width = 0;
    for (const Line& line : lines_)
      if (!line.type.empty() && line.text.size() <= 60) width = std::max(width, line.text.size());
    std::string text;
    for (const Line& line : lines_) {
      text.append(static_cast<size_t>(indent), ' ');
      if (line.type.empty()) {
        text += line.text;
      } else {
        text += fmt::format("{:<{}} : {}", line.text, width, line.type);
      }
      text += '\n';
    }
    return text;
  }

 private:
  void Visit(NodeId id) {
    const Node& node = graph_[id];
    std::string& name = names_[static_cast<size_t>(id)];
    if (node.Is("literal")) {
      name = Quoted(*node.FindAttribute("value"));
    } else if (node.Is("variable")) {
      name = node.Text("name");
      if (const std::string type = TypeText(node.info); !type.empty()) lines_.push_back({name, type});
    } else if (node.Is("assign")) {
      lines_.push_back({fmt::format("{} = {}", node.Text("name"), NameOf(node.inputs[0])), ""});
    } else if (IsStatement(node)) {
      lines_.push_back({OperatorText(node), ""});
    } else if (node.Is("result")) {
      name = ResultName(node);
    } else if (node.info.IsTuple()) {
      AddTuple(id);
    } else {
      name = fmt::format("%{}", ++last_name_);
      lines_.push_back({fmt::format("{} = {}", name, OperatorText(node)), TypeText(node.info)});
    }
  }

  // [%1, _] = eigen(X) : 3x1, 3x3. A result that nothing reads has no name.
  void AddTuple(NodeId id) {
    const Node& node = graph_[id];
    std::vector<std::string> names(node.results.size(), "_"), types;
    for (const Node& reader : graph_.nodes)
      if (reader.Is("result") && reader.inputs[0] == id) names[reader.ResultIndex()] = "";
    for (std::string& name : names)
      if (name.empty()) name = fmt::format("%{}", ++last_name_);
    for (const ValueInfo& result : node.results) types.push_back(TypeText(result));
    lines_.push_back({fmt::format("[{}] = {}", fmt::join(names, ", "), OperatorText(node)),
                      fmt::format("{}", fmt::join(types, ", "))});
    tuples_[id] = std::move(names);
  }

  // Of a tuple whose type is not known yet: %1.2.
  std::string ResultName(const Node& result) const {
    const auto tuple = tuples_.find(result.inputs[0]);
    if (tuple != tuples_.end()) return tuple->second[result.ResultIndex()];
    return fmt::format("{}.{}", NameOf(result.inputs[0]), result.ResultIndex() + 1);
  }

  std::string NameOf(NodeId id) const { return id == kNoNode ? "_" : names_[static_cast<size_t>(id)]; }

  std::string OperatorText(const Node& node) const {
    if (IsInfix(node))
      return fmt::format("{} {} {}", NameOf(node.inputs[0]), node.op, NameOf(node.inputs[1]));
    std::vector<std::string> parts;
    std::vector<ops::OperatorParameter> parameters;
    if (const ops::Operator* builtin = ops::FindBuiltin(node.op))
      parameters = ops::ParseParameters(builtin->parameters);
    std::erase_if(parameters, [](const ops::OperatorParameter& parameter) { return parameter.attribute; });
    size_t last = node.inputs.size();
    while (last > 0 && node.inputs[last - 1] == kNoNode) --last;
    // Optional inputs are told by their names, the others by their place.
    const bool by_name = parameters.size() == node.inputs.size();
    for (size_t i = 0; i < last; ++i) {
      const bool named = by_name && parameters[i].optional;
      if (node.inputs[i] == kNoNode && named) continue;
      parts.push_back(named ? fmt::format("{}={}", parameters[i].name, NameOf(node.inputs[i]))
                            : NameOf(node.inputs[i]));
    }
    for (const auto& [attribute, value] : node.attributes)
      if (attribute != "stream") parts.push_back(fmt::format("{}={}", attribute, Quoted(value)));
    return fmt::format("{}({})", node.op, fmt::join(parts, ", "));
  }

  const Graph& graph_;
  std::vector<std::string> names_;
  std::map<NodeId, std::vector<std::string>> tuples_;  // Names of results.
  std::vector<Line> lines_;
  int last_name_ = 0;
};

class ProgramText {
 public:
  std::string Text(const Program& program) {
    text_ = fmt::format("program {}\n", Quoted(Scalar(program.script)));
    AddBlocks(program.main, 2);
    for (const auto& [name, function] : program.functions) {
      std::vector<std::string> parameters;
      for (const Parameter& parameter : function.parameters) parameters.push_back(ParameterText(parameter));
      std::vector<std::string> results;
      for (const Parameter& result : function.results) results.push_back(ParameterText(result));
      text_ += fmt::format("function {}({}) return ({})\n", name, fmt::join(parameters, ", "),
                           fmt::join(results, ", "));
      AddBlocks(function.body, 2);
    }
    return std::move(text_);
  }

 private:
  static std::string ParameterText(const Parameter& parameter) {
    if (parameter.data_type == DataType::kScalar)
      return fmt::format("{} {}", Name(parameter.value_type), parameter.name);
    return fmt::format("{} {}", Name(parameter.data_type), parameter.name);
  }

  static std::string CallText(const std::string& function,
                              const std::vector<std::pair<std::string, std::string>>& arguments) {
    std::vector<std::string> texts;
    for (const auto& [parameter, variable] : arguments)
      texts.push_back(fmt::format("{}={}", parameter, variable));
    return fmt::format("{}({})", function, fmt::join(texts, ", "));
  }

  static std::string CandidateText(const Block& call, const CallCandidate& candidate) {
    std::vector<std::string> conditions;
    if (!call.selector.empty())
      conditions.push_back(fmt::format("{} is {}", call.selector, Quoted(Scalar(candidate.name))));
    if (candidate.first_argument != DataType::kUnknown)
      conditions.push_back(fmt::format("{} is a {}", call.first_argument, Name(candidate.first_argument)));
    return fmt::format(
        "{} if {}",
        candidate.function.empty() ? "error: " + candidate.reason
                                   : CallText(candidate.function, candidate.arguments),
        conditions.empty() ? "nothing else" : fmt::format("{}", fmt::join(conditions, " and ")));
  }

  void AddLine(int indent, const std::string& line) {
    text_.append(static_cast<size_t>(indent), ' ');
    text_ += line;
    text_ += '\n';
  }

  // Whether iterations of a parfor run at once, and what becomes of the variables of before it.
  void AddHowItRuns(const Block& loop, int indent) {
    if (!loop.independent) return AddLine(indent, fmt::format("# one at a time: {}", loop.in_order));
    std::string text = "# at once";
    if (loop.most_workers > 0) text += fmt::format(", {} at most", loop.most_workers);
    if (!loop.merged.empty()) text += fmt::format("; write cells of {}", fmt::join(loop.merged, ", "));
    if (!loop.sums.empty()) text += fmt::format("; add to {}", fmt::join(loop.sums, ", "));
    std::vector<std::string> conditions;
    for (const std::string& name : loop.natural)
      if (name != loop.variable) conditions.push_back(fmt::format("{} is a natural number", name));
    for (const std::string& name : loop.upward)
      conditions.push_back(fmt::format("the loop over {} counts up", name));
    if (!conditions.empty()) text += fmt::format("; if {}", fmt::join(conditions, " and "));
    AddLine(indent, text);
  }

  void AddBlocks(const std::vector<Block>& blocks, int indent) {
    for (const Block& block : blocks) AddBlock(block, indent);
  }

  void AddBlock(const Block& block, int indent) {
    const std::string place = fmt::format("  # line {}", block.position.line);
    switch (block.kind) {
      case Block::Kind::kBasic:
        AddLine(indent, fmt::format("block{}", place));
        text_ += ExplainGraph(block.graph, indent + 2);
        break;
      case Block::Kind::kIf:
        AddLine(indent, fmt::format("if{}", place));
        text_ += ExplainGraph(block.graph, indent + 2);
        AddLine(indent, "then");
        AddBlocks(block.body, indent + 2);
        if (!block.otherwise.empty()) {
          AddLine(indent, "else");
          AddBlocks(block.otherwise, indent + 2);
        }
        break;
      case Block::Kind::kWhile:
        AddLine(indent, fmt::format("while{}", place));
        text_ += ExplainGraph(block.graph, indent + 2);
        AddLine(indent, "do");
        AddBlocks(block.body, indent + 2);
        break;
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor:
        AddLine(indent, fmt::format("{} {}{}", block.kind == Block::Kind::kFor ? "for" : "parfor",
                                    block.variable, place));
        if (block.kind == Block::Kind::kParallelFor) AddHowItRuns(block, indent + 2);
        text_ += ExplainGraph(block.graph, indent + 2);
        AddLine(indent, "do");
        AddBlocks(block.body, indent + 2);
        break;
      case Block::Kind::kCall:
      case Block::Kind::kList: {
        std::vector<std::string_view> results;
        for (const std::string& result : block.results)
          results.push_back(result.empty() ? "_" : std::string_view(result));
        const std::string targets = results.empty()    ? ""
                                    : block.gives_list ? fmt::format("{} = list of ", results[0])
                                                       : fmt::format("[{}] = ", fmt::join(results, ", "));
        if (block.candidates.empty()) {
          const bool is_call = block.kind == Block::Kind::kCall;
          AddLine(indent, fmt::format("{} {}{}{}", is_call ? "call" : "list", targets,
                                      CallText(is_call ? block.function : std::string(Name(block.operation)),
                                               block.arguments),
                                      place));
          break;
        }
        AddLine(indent, fmt::format("call {}one of{}", targets, place));
        for (const CallCandidate& candidate : block.candidates)
          AddLine(indent + 2, CandidateText(block, candidate));
        break;
      }
    }
    if (!block.dead_after.empty()) AddLine(indent, fmt::format("free {}", fmt::join(block.dead_after, ", ")));
  }

  std::string text_;
};

// All names and the nearest one, unless `level` is one of them.
Status CheckLevel(std::string_view level) {
  std::vector<std::string> known = {"ast", "program", "recursion", "structure", "all"};
  for (std::string_view name : Stages()) known.emplace_back(name);
  known.insert(known.end(), std::begin(kFusionLevels), std::end(kFusionLevels));
  if (std::find(known.begin(), known.end(), level) != known.end()) return OkStatus();
  Status error =
      Usage("unknown stage '{}'", level).WithNote(fmt::format("stages are {}", fmt::join(known, ", ")));
  const std::string nearest = SuggestName(level, known);
  return nearest.empty() ? error : error.WithNote(fmt::format("did you mean '{}'?", nearest));
}

bool IsOfFusion(std::string_view level) {
  return std::find(std::begin(kFusionLevels), std::end(kFusionLevels), level) != std::end(kFusionLevels);
}

}  // namespace

std::string ExplainGraph(const Graph& graph, int indent) { return GraphText(graph).Text(indent); }

std::string ExplainProgram(const Program& program) { return ProgramText().Text(program); }

Result<std::string> Explain(std::string text, const CompileOptions& options, std::string_view level,
                            Diagnostics* diagnostics, const PlanningOptions& planning) {
  HEDDLE_RETURN_IF_ERROR(CheckLevel(level));
  if (IsOfFusion(level)) {
    CompileOptions observed = options;
    WrittenCompressions written;
    observed.observe = [&](std::string_view name, const Program& program) {
      if (name == "build") written = FindCompressions(program);
    };
    HEDDLE_ASSIGN_OR_RETURN(Program program, CompileScript(std::move(text), observed, diagnostics));
    if (level == "compression") {
      PropagateShapes(&program, diagnostics, planning.files);
      HEDDLE_RETURN_IF_ERROR(diagnostics->HasErrors() ? diagnostics->ToStatus() : OkStatus());
      return ExplainCompression(program, written, planning);
    }
    return ExplainFusion(std::move(program), level, options.disabled_passes, planning);
  }
  std::string result;
  const auto add = [&](std::string_view name, const std::string& content) {
    if (level == "all") result += fmt::format("---- {}\n{}", name, content);
    if (level == name) result += content;
  };
  CompileOptions observed = options;
  observed.observe_ast = [&](std::string_view ast) { add("ast", std::string(ast)); };
  observed.observe = [&](std::string_view name, const Program& program) {
    if (level == "all" || level == name) add(name, ExplainProgram(program));
  };
  HEDDLE_ASSIGN_OR_RETURN(const Program program, CompileScript(std::move(text), observed, diagnostics));
  if (level == "program") add("program", ExplainProgram(program));
  if (level == "recursion") add("recursion", ExplainRecursion(program));
  if (level == "structure") add("structure", ExplainRecursion(program, /*with_steps=*/true));
  return result;
}

}  // namespace heddle::compiler
