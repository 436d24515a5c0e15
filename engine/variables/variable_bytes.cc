// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/variable_bytes.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/text/quoted.h"
#include "engine/variables/shared_changes.h"
#include "engine/variables/source.h"
#include "engine/wire/value_wire.h"

namespace heddle::engine {
namespace {

// The frames of the first value in `bytes`, which then begin behind them.
Result<Value> TakeValue(std::string_view* bytes) {
  size_t end = 0;
  for (bool last = false; !last;) {
    if (bytes->size() - end < kHeaderBytes) return DataLoss("the value of a variable is cut off");
    HEDDLE_ASSIGN_OR_RETURN(const FrameHeader header,
                            FrameHeader::Decode(reinterpret_cast<const uint8_t*>(bytes->data() + end)));
    end += kHeaderBytes;
    if (bytes->size() - end < header.size) return DataLoss("the value of a variable is cut off");
    end += header.size;
    last = header.last;
  }
  Result<Value> value = DecodeValue(bytes->substr(0, end));
  bytes->remove_prefix(end);
  return value;
}

// Takes the values off the front of `bytes`.
Status TakeValues(std::string_view* bytes, Variable* variable) {
  if (variable->list == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(variable->value, TakeValue(bytes));
    return OkStatus();
  }
  for (Variable& element : variable->list->elements) HEDDLE_RETURN_IF_ERROR(TakeValues(bytes, &element));
  return OkStatus();
}

}  // namespace

void AppendVariable(const Variable& variable, std::string* out) {
  out->append(" ").append(variable.distribution.ToText());
  AppendInfo(variable.info, out);
  if (variable.is_panels) out->append(" panels");
  out->push_back('\n');
  if (variable.source != nullptr) {
    out->append("source ");
    AppendQuoted(variable.source->path, out);
    out->push_back(' ');
    AppendQuoted(variable.source->version.ToText(), out);
    out->push_back('\n');
    AppendGraph(variable.source->graph, 2, out);
  }
  if (variable.list == nullptr) return;
  out->append("{\n");
  for (size_t i = 0; i < variable.list->size(); ++i) {
    out->append("element ");
    AppendQuoted(variable.list->names.empty() ? "" : variable.list->names[i], out);
    AppendVariable(variable.list->elements[i], out);
  }
  out->append("}\n");
}

Variable ReadVariable(TextReader& reader) {
  Variable variable;
  variable.distribution = reader.Distribution();
  variable.info = reader.Info();
  variable.is_panels = reader.AcceptWord("panels");
  if (reader.AcceptWord("source")) {
    auto source = std::make_shared<Source>();
    source->path = reader.Quoted();
    Result<ops::FileVersion> version = ops::FileVersion::Parse(reader.Quoted());
    if (version.ok()) source->version = *version;
    source->graph = ReadGraph(reader);
    if (!version.ok() || source->graph.nodes.empty() || !source->graph.nodes.back().Is("assign") ||
        !Verify(source->graph).ok())
      reader.Fail("a source");
    variable.source = std::move(source);
  }
  if (!reader.Accept("{")) return variable;
  variable.list = std::make_shared<ListOf<Variable>>();
  while (reader.AcceptWord("element")) {
    std::string name = reader.Quoted();
    Variable element = ReadVariable(reader);
    if (!reader.ok() || !variable.list->Add(std::move(name), std::move(element)).ok()) {
      reader.Fail("an element of a list");
      return variable;
    }
  }
  reader.Expect("}");
  return variable;
}

std::string EncodeVariable(const Variable& variable) {
  std::string text;
  AppendVariable(variable, &text);
  std::string bytes = fmt::format("{}\n{}", text.size(), text);
  ForEachValue(variable, [&bytes](const Variable& value) { bytes.append(EncodeValue(value.value)); });
  return bytes;
}

Result<Variable> DecodeVariable(std::string_view bytes) {
  const size_t line = bytes.find('\n');
  TextReader size_reader(bytes.substr(0, line), "a variable");
  const int64_t size = size_reader.Integer();
  if (line == std::string_view::npos || !size_reader.ok() || size < 0 ||
      static_cast<uint64_t>(size) > bytes.size() - line - 1)
    return DataLoss("a variable is cut off");
  TextReader reader(bytes.substr(line + 1, static_cast<size_t>(size)), "a variable");
  Variable variable = ReadVariable(reader);
  if (!reader.ok()) return reader.status().WithCode(StatusCode::kDataLoss);
  bytes.remove_prefix(line + 1 + static_cast<size_t>(size));
  HEDDLE_RETURN_IF_ERROR(TakeValues(&bytes, &variable));
  if (!bytes.empty()) return DataLoss("bytes are left behind a variable");
  return variable;
}

}  // namespace heddle::engine
