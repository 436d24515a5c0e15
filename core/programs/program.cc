// SPDX-License-Identifier: Apache-2.0
#include "core/programs/program.h"

#include <algorithm>
#include <array>

#include "core/programs/text_format.h"
#include "core/text/quoted.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 7> kKinds = {"basic", "if", "while", "for", "parfor", "call", "list"};
constexpr std::array<std::string_view, 23> kListOperations = {
    "make",      "copy",     "slice",   "assign",   "append",   "remove",   "length",    "as.scalar",
    "as.matrix", "as.frame", "as.list", "cbind",    "rbind",    "toString", "exists",    "read",
    "write",     "sum",      "zeros",   "appended", "inserted", "rows.of",  "columns.of"};
constexpr std::array<std::string_view, 4> kDerivatives = {"none", "forward", "backward", "rounds"};
constexpr int kDeepest = 2000;  // Nested blocks; a bound on the recursion, for texts from outside.

class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}

  void Open(std::string_view words) {
    Line(words);
    OpenBrace();
  }
  void OpenBrace() {
    out_.append(" {\n");
    indent_ += 2;
  }
  void Close() {
    indent_ -= 2;
    Line("}");
    out_.push_back('\n');
  }
  void Line(std::string_view words) {
    out_.append(static_cast<size_t>(indent_), ' ');
    out_.append(words);
  }
  void Strings(std::string_view word, const std::vector<std::string>& strings) {
    if (strings.empty()) return;
    Line(word);
    for (const std::string& text : strings) {
      out_.push_back(' ');
      AppendQuoted(text, &out_);
    }
    out_.push_back('\n');
  }
  void Text(std::string_view word, const std::string& text) {
    if (!text.empty()) Strings(word, {text});
  }
  void Parameters(std::string_view word, const std::vector<Parameter>& parameters) {
    if (parameters.empty()) return;
    Line(word);
    for (const Parameter& parameter : parameters) {
      out_.push_back(' ');
      AppendQuoted(parameter.name, &out_);
      out_.append(" ").append(Name(parameter.data_type)).append(" ").append(Name(parameter.value_type));
      if (parameter.default_value) out_.append(" = ").append(parameter.default_value->ToLiteral());
    }
    out_.push_back('\n');
  }
  void Blocks(std::string_view word, const std::vector<Block>& blocks) {
    if (blocks.empty()) return;
    Open(word);
    for (const Block& block : blocks) OneBlock(block);
    Close();
  }
  void Derivative(const DerivativeRole& derivative) {
    Line("derivative ");
    out_.append(kDerivatives[static_cast<size_t>(derivative.kind)]).push_back(' ');
    AppendQuoted(derivative.partner, &out_);
    out_.push_back('\n');
    Strings("adjoints", derivative.adjoints);
  }
  void OneFunction(const std::string& key, const Function& function) {
    Line("function ");
    AppendQuoted(key, &out_);
    if (function.name != key) {
      out_.append(" named ");
      AppendQuoted(function.name, &out_);
    }
    AppendPosition(function.position, &out_);
    OpenBrace();
    Parameters("parameters", function.parameters);
    Parameters("results", function.results);
    if (function.derivative.kind != DerivativeRole::Kind::kNone) Derivative(function.derivative);
    Blocks("body", function.body);
    Close();
  }

 private:
  void Arguments(const std::vector<std::pair<std::string, std::string>>& arguments) {
    for (const auto& [parameter, variable] : arguments) {
      out_.push_back(' ');
      AppendQuoted(parameter, &out_);
      out_.push_back('=');
      AppendQuoted(variable, &out_);
    }
    out_.push_back('\n');
  }

  void OneBlock(const Block& block) {
    Line(kKinds[static_cast<size_t>(block.kind)]);
    out_.push_back(' ');
    AppendInteger(block.id, &out_);
    AppendPosition(block.position, &out_);
    OpenBrace();
    Text("variable", block.variable);
    if (block.has_increment) Line("increment\n");
    if (block.independent) Line("independent\n");
    Strings("merged", block.merged);
    Strings("sums", block.sums);
    Strings("natural", block.natural);
    Strings("upward", block.upward);
    if (!block.in_order.empty()) Strings("in_order", {block.in_order});
    Strings("locals", block.locals);
    if (block.most_workers != 0) Line(fmt::format("workers {}\n", block.most_workers));
    Text("function", block.function);
    if (block.kind == Block::Kind::kList) Text("operation", std::string(Name(block.operation)));
    if (!block.arguments.empty()) {
      Line("arguments");
      Arguments(block.arguments);
    }
    Text("selector", block.selector);
    Text("first_argument", block.first_argument);
    if (block.gives_list) Line("gives_list\n");
    for (const CallCandidate& candidate : block.candidates) {
      Line("candidate ");
      AppendQuoted(candidate.name, &out_);
      out_.append(" ").append(Name(candidate.first_argument)).append(" ");
      AppendQuoted(candidate.function, &out_);
      out_.push_back(' ');
      AppendQuoted(candidate.reason, &out_);
      out_.append(candidate.is_wrong ? " wrong arguments" : " arguments");
      Arguments(candidate.arguments);
    }
    Strings("results", block.results);
    if (!block.graph.nodes.empty()) {
      Open("graph");
      AppendGraph(block.graph, indent_, &out_);
      Close();
    }
    Blocks("body", block.body);
    Blocks("otherwise", block.otherwise);
    Strings("dead_after", block.dead_after);
    Close();
  }

  std::string& out_;
  int indent_ = 0;
};

std::vector<std::string> ReadStrings(TextReader& reader) {
  std::vector<std::string> strings;
  while (reader.Peek() == '"') strings.push_back(reader.Quoted());
  return strings;
}

Block::Kind ReadKind(TextReader& reader) {
  for (size_t i = 0; i < kKinds.size(); ++i)
    if (reader.AcceptWord(kKinds[i])) return static_cast<Block::Kind>(i);
  reader.Fail("a kind of block");
  return Block::Kind::kBasic;
}

ListOperation ReadListOperation(TextReader& reader) {
  const std::string name = reader.Quoted();
  for (size_t i = 0; i < kListOperations.size(); ++i)
    if (kListOperations[i] == name) return static_cast<ListOperation>(i);
  reader.Fail("an operation on lists before this");
  return ListOperation::kMake;
}

std::vector<std::pair<std::string, std::string>> ReadArguments(TextReader& reader) {
  std::vector<std::pair<std::string, std::string>> arguments;
  while (reader.Peek() == '"') {
    std::string parameter = reader.Quoted();
    reader.Expect("=");
    arguments.emplace_back(std::move(parameter), reader.Quoted());
  }
  return arguments;
}

CallCandidate ReadCandidate(TextReader& reader) {
  CallCandidate candidate;
  candidate.name = reader.Quoted();
  const auto type = ParseDataType(reader.Word());
  if (!type) reader.Fail("a data type before this");
  candidate.first_argument = type.value_or(DataType::kUnknown);
  candidate.function = reader.Quoted();
  candidate.reason = reader.Quoted();
  candidate.is_wrong = reader.AcceptWord("wrong");
  reader.Expect("arguments");
  candidate.arguments = ReadArguments(reader);
  return candidate;
}

// What stands in a block before the blocks inside it. A function of its own, so that what it needs for a
// while is not on the stack once for each level of nesting.
[[gnu::noinline]] void ReadHead(TextReader& reader, Block* block) {
  block->kind = ReadKind(reader);
  block->id = reader.Integer32();
  block->position = reader.Position();
  reader.Expect("{");
  if (reader.AcceptWord("variable")) block->variable = reader.Quoted();
  if (reader.AcceptWord("increment")) block->has_increment = true;
  if (reader.AcceptWord("independent")) block->independent = true;
  if (reader.AcceptWord("merged")) block->merged = ReadStrings(reader);
  if (reader.AcceptWord("sums")) block->sums = ReadStrings(reader);
  if (reader.AcceptWord("natural")) block->natural = ReadStrings(reader);
  if (reader.AcceptWord("upward")) block->upward = ReadStrings(reader);
  if (reader.AcceptWord("in_order")) block->in_order = reader.Quoted();
  if (reader.AcceptWord("locals")) block->locals = ReadStrings(reader);
  if (reader.AcceptWord("workers")) block->most_workers = reader.Integer32();
  if (reader.AcceptWord("function")) block->function = reader.Quoted();
  if (reader.AcceptWord("operation")) block->operation = ReadListOperation(reader);
  if (reader.AcceptWord("arguments")) block->arguments = ReadArguments(reader);
  if (reader.AcceptWord("selector")) block->selector = reader.Quoted();
  if (reader.AcceptWord("first_argument")) block->first_argument = reader.Quoted();
  if (reader.AcceptWord("gives_list")) block->gives_list = true;
  while (reader.AcceptWord("candidate")) block->candidates.push_back(ReadCandidate(reader));
  if (reader.AcceptWord("results")) block->results = ReadStrings(reader);
  if (reader.AcceptWord("graph")) {
    reader.Expect("{");
    block->graph = ReadGraph(reader);
    reader.Expect("}");
  }
}

// And behind them.
[[gnu::noinline]] void ReadTail(TextReader& reader, Block* block) {
  if (reader.AcceptWord("dead_after")) block->dead_after = ReadStrings(reader);
  reader.Expect("}");
}

void ReadBlocks(TextReader& reader, int depth, std::vector<Block>* blocks) {
  if (depth > kDeepest) reader.Fail("less nesting");
  reader.Expect("{");
  while (reader.ok() && reader.Peek() != '}') {
    Block& block = blocks->emplace_back();
    ReadHead(reader, &block);
    if (reader.AcceptWord("body")) ReadBlocks(reader, depth + 1, &block.body);
    if (reader.AcceptWord("otherwise")) ReadBlocks(reader, depth + 1, &block.otherwise);
    ReadTail(reader, &block);
  }
  reader.Expect("}");
}

std::vector<Parameter> ReadParameters(TextReader& reader) {
  std::vector<Parameter> parameters;
  while (reader.Peek() == '"') {
    Parameter parameter;
    parameter.name = reader.Quoted();
    const auto data_type = ParseDataType(reader.Word());
    if (!data_type) reader.Fail("a data type before this");
    const auto value_type = ParseValueType(reader.Word());
    if (!value_type) reader.Fail("a value type before this");
    parameter.data_type = data_type.value_or(DataType::kUnknown);
    parameter.value_type = value_type.value_or(ValueType::kUnknown);
    if (reader.Accept("=")) parameter.default_value = reader.Literal();
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

DerivativeRole ReadDerivative(TextReader& reader) {
  DerivativeRole derivative;
  const auto kind = std::find(kDerivatives.begin() + 1, kDerivatives.end(), reader.Word());
  if (kind == kDerivatives.end()) {
    reader.Fail("forward, backward or rounds before this");
    return derivative;
  }
  derivative.kind = static_cast<DerivativeRole::Kind>(kind - kDerivatives.begin());
  derivative.partner = reader.Quoted();
  if (reader.AcceptWord("adjoints")) derivative.adjoints = ReadStrings(reader);
  return derivative;
}

void ReadFunction(TextReader& reader, Program* program) {
  const std::string key = reader.Quoted();
  Function function;
  function.name = reader.AcceptWord("named") ? reader.Quoted() : key;
  function.position = reader.Position();
  reader.Expect("{");
  if (reader.AcceptWord("parameters")) function.parameters = ReadParameters(reader);
  if (reader.AcceptWord("results")) function.results = ReadParameters(reader);
  if (reader.AcceptWord("derivative")) function.derivative = ReadDerivative(reader);
  if (reader.AcceptWord("body")) ReadBlocks(reader, 0, &function.body);
  reader.Expect("}");
  if (!program->functions.emplace(key, std::move(function)).second) reader.Fail("each function once");
}

}  // namespace

std::string_view Name(ListOperation operation) { return kListOperations[static_cast<size_t>(operation)]; }

std::string Program::ToText() const {
  std::string text = "program ";
  AppendQuoted(script, &text);
  text.push_back('\n');
  for (const GivenVariable& variable : given) {
    text.append("given ");
    AppendQuoted(variable.name, &text);
    AppendInfo(variable.info, &text);
    if (variable.value) text.append(" = ").append(variable.value->ToLiteral());
    text.push_back('\n');
  }
  Writer writer(&text);
  writer.Strings("kept", kept);
  writer.Blocks("main", main);
  for (const auto& [key, function] : functions) writer.OneFunction(key, function);
  return text;
}

Result<Program> Program::Parse(std::string_view text) {
  TextReader reader(text, "program");
  Program program;
  reader.Expect("program");
  program.script = reader.Quoted();
  while (reader.AcceptWord("given")) {
    GivenVariable& variable = program.given.emplace_back();
    variable.name = reader.Quoted();
    variable.info = reader.Info();
    if (reader.Accept("=")) variable.value = reader.Literal();
  }
  if (reader.AcceptWord("kept")) program.kept = ReadStrings(reader);
  if (reader.AcceptWord("main")) ReadBlocks(reader, 0, &program.main);
  while (reader.AcceptWord("function")) ReadFunction(reader, &program);
  if (!reader.AtEnd()) reader.Fail("a function");
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return program;
}

}  // namespace heddle
