// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/read_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/exchange/resolve.h"
#include "ops/io/formats/options.h"

namespace heddle::ops {
namespace {

using Attributes = std::vector<std::pair<std::string, Scalar>>;

constexpr int64_t kCellsAtOnce = 1 << 20;

// The arguments behind the path; nothing where a script cannot write one of them.
std::optional<std::string> ArgumentsOf(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    const std::optional<std::string> literal =
        value.IsString() ? StringLiteral(value.AsString()) : std::optional(value.ToText());
    if (!literal) return std::nullopt;
    text += fmt::format(", {}={}", name, *literal);
  }
  return text;
}

// What was said of a file of arrays: which of them, and whether it is turned.
Attributes OfArrays(const ReadOptions& read) {
  Attributes attributes;
  if (!read.dataset.empty()) attributes.emplace_back("dataset", Scalar(read.dataset));
  if (read.transposed) attributes.emplace_back("transposed", Scalar(true));
  return attributes;
}

std::string SchemaOf(const FileFacts& facts) {
  std::string schema;
  for (size_t i = 0; i < facts.facts.size(); ++i)
    schema.append(i > 0 ? "," : "").append(facts.facts[i].schema_type());
  return schema;
}

// The calls that may give it, the shortest first.
std::vector<Attributes> PossibleCalls(const ReadOptions& read, const FileFacts& facts) {
  const Attributes base = OfArrays(read);
  std::vector<Attributes> calls = {base};
  const std::string format(Name(facts.format));
  if (facts.format != FileFormat::kCsv) {
    for (const bool says_format : {false, true}) {
      Attributes call = base;
      if (facts.is_frame) call.emplace_back("data_type", Scalar("frame"));
      if (says_format) call.emplace_back("format", Scalar(format));
      if (LacksSchema(read) && facts.columns <= FileFacts::kMostColumns)
        call.emplace_back("schema", Scalar(SchemaOf(facts)));
      calls.push_back(call);
    }
    return calls;
  }
  if (!facts.is_frame) calls.push_back({{"header", Scalar(facts.header)}});
  Attributes call;
  if (facts.is_frame) call.emplace_back("data_type", Scalar("frame"));
  call.emplace_back("format", Scalar(format));
  call.emplace_back("header", Scalar(facts.header));
  if (facts.separator != ",")
    call.emplace_back("sep", Scalar(facts.separator.empty() ? " " : facts.separator));
  if (facts.is_frame && facts.columns <= FileFacts::kMostColumns) {
    calls.push_back(call);
    calls.back().emplace_back("schema", Scalar(SchemaOf(facts)));
  }
  calls.push_back(call);
  return calls;
}

// Another meaning of the file than the one that was looked at.
Status CheckMeaning(const ReadOptions& read, const InspectOptions& options, const FileFacts& facts) {
  if ((read.data_type == DataType::kFrame) != facts.is_frame)
    return FailedPrecondition("it is read as a {}", Name(read.data_type));
  if (read.format != facts.format)
    return FailedPrecondition("it is read as a file in format '{}'", Name(*read.format));
  if (facts.format != FileFormat::kCsv) return OkStatus();
  if (read.header.value_or(false) != facts.header)
    return FailedPrecondition("line 1 is read as {}", facts.header ? "data" : "names");
  if (options.separator && facts.columns > 1 && read.separator != *options.separator)
    return FailedPrecondition("fields are read as separated by '{}'", read.separator);
  return OkStatus();
}

Status TryToRead(const Attributes& attributes, const InspectOptions& options, const FileFacts& facts,
                 Files& files) {
  Node node;
  node.op = "read";
  for (const auto& [name, value] : attributes) node.SetAttribute(name, value);
  HEDDLE_ASSIGN_OR_RETURN(ReadOptions read, ResolveReadOptions(node, facts.path, files));
  HEDDLE_RETURN_IF_ERROR(CheckMeaning(read, options, facts));
  HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(read, files));
  // The rows of other formats were read when they were looked at.
  const bool was_read = facts.format != FileFormat::kCsv && node.FindAttribute("schema") == nullptr;
  const int64_t end = was_read ? 0 : std::min(facts.rows_looked_at, summary.shape.rows);
  const int64_t at_once =
      summary.is_unordered ? end : std::max<int64_t>(1, kCellsAtOnce / std::max<int64_t>(1, facts.columns));
  for (int64_t row = 0; row < end; row += at_once) {
    const int64_t next = std::min(end, row + at_once);
    HEDDLE_RETURN_IF_ERROR(facts.is_frame ? ReadFrameRows(read, summary, row, next, files).status()
                                          : ReadRows(read, summary, row, next, files).status());
  }
  if (summary.shape == Shape{facts.rows, facts.columns}) return OkStatus();
  return FailedPrecondition("it is read as a {} of {} rows and {} columns", Name(read.data_type),
                            summary.shape.rows, summary.shape.columns);
}

// The message of read(), which begins with the path that everything here is about.
std::string WhyNot(const Status& status, const std::string& path) {
  std::string why = status.message();
  if (const std::string beginning = fmt::format("cannot read '{}': ", path); why.starts_with(beginning))
    why.erase(0, beginning.size());
  return why;
}

}  // namespace

std::optional<std::string> StringLiteral(std::string_view text) {
  std::string literal = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    static constexpr std::string_view kEscaped = "\b\t\n\f\r\"", kEscapes = "btnfr\"";
    if (const size_t escape = kEscaped.find(c); escape != std::string_view::npos) {
      literal.append({'\\', kEscapes[escape]});
    } else if (c != '\\') {
      literal.push_back(c);
    } else {
      // Two backslashes are two of the text, unless the second one and what follows are an escape.
      const bool is_pair = i + 1 < text.size() && text[i + 1] == '\\';
      const char behind = i + 2 < text.size() ? text[i + 2] : '\0';
      if (!is_pair || (behind != '\0' && std::string_view("btnfr'").find(behind) != std::string_view::npos))
        return std::nullopt;
      literal += "\\\\";
      ++i;
    }
  }
  literal.push_back('"');
  // Characters that a terminal obeys, and bytes that are none.
  return EscapeForTerminal(literal) == literal ? std::optional(literal) : std::nullopt;
}

void FindReadCall(const ReadOptions& read, const InspectOptions& options, Files& files, FileFacts* facts) {
  const std::optional<std::string> path = StringLiteral(facts->path);
  if (!path) {
    facts->why_not_read = "no string of a script is its path: rename it";
    return;
  }
  for (const Attributes& call : PossibleCalls(read, *facts)) {
    if (const Status status = TryToRead(call, options, *facts, files); !status.ok()) {
      facts->why_not_read = WhyNot(status, facts->path);
      continue;
    }
    const std::optional<std::string> arguments = ArgumentsOf(call);
    if (!arguments) {
      facts->why_not_read = "no string of a script is its separator or the name of its array";
      continue;
    }
    facts->how_to_read = "read(" + *path + *arguments + ")";
    facts->why_not_read.clear();
    return;
  }
}

}  // namespace heddle::ops
