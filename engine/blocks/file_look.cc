// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/file_look.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/optimize/static/written_files.h"
#include "ops/base/operator.h"
#include "ops/base/split.h"
#include "ops/io/files/files.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/read_stages.h"
#include "ops/io/formats/shared_look.h"

namespace heddle::engine {
namespace {

constexpr uint64_t kMostNumber = 1'000'000'000;

// Takes the bytes up to the next blank or newline from the front of `rest`; nullopt when there are none.
std::optional<uint64_t> TakeNumber(std::string_view* rest) {
  const size_t end = rest->find_first_of(" \n");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : rest->substr(0, end)) {
    if (digit < '0' || digit > '9' || number > kMostNumber) return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  rest->remove_prefix(end + 1);
  return number;
}

}  // namespace

// "W P S\n", W node ids each with a newline, P times "BYTES VERSION\nPATH\n", S times "ID BYTES\nPATH\n".
std::string FileLook::ToText() const {
  std::string text = fmt::format("{} {} {}\n", waiting.size(), versions.size(), shared.size());
  for (const NodeId id : waiting) text += fmt::format("{}\n", id);
  for (const auto& [path, version] : versions)
    text += fmt::format("{} {}\n{}\n", path.size(), version.ToText(), path);
  for (const auto& [id, path] : shared) text += fmt::format("{} {}\n{}\n", id, path.size(), path);
  return text;
}

Result<FileLook> FileLook::Parse(const std::string& text) {
  const Status malformed = Internal("what rank 0 saw of the files arrived malformed");
  std::string_view rest = text;
  const std::optional<uint64_t> waiting = TakeNumber(&rest);
  const std::optional<uint64_t> versions = TakeNumber(&rest);
  const std::optional<uint64_t> shared = TakeNumber(&rest);
  if (!waiting || !versions || !shared) return malformed;
  FileLook look;
  for (uint64_t i = 0; i < *waiting; ++i) {
    const std::optional<uint64_t> id = TakeNumber(&rest);
    if (!id) return malformed;
    look.waiting.insert(static_cast<NodeId>(*id));
  }
  for (uint64_t i = 0; i < *versions; ++i) {
    const std::optional<uint64_t> bytes = TakeNumber(&rest);
    const size_t line = rest.find('\n');
    if (!bytes || line == std::string_view::npos || rest.size() - line < *bytes + 2) return malformed;
    HEDDLE_ASSIGN_OR_RETURN(const ops::FileVersion version, ops::FileVersion::Parse(rest.substr(0, line)));
    look.versions.emplace(rest.substr(line + 1, *bytes), version);
    rest.remove_prefix(line + *bytes + 2);
  }
  for (uint64_t i = 0; i < *shared; ++i) {
    const std::optional<uint64_t> id = TakeNumber(&rest);
    const std::optional<uint64_t> bytes = TakeNumber(&rest);
    if (!id || !bytes || rest.size() < *bytes + 1) return malformed;
    look.shared.emplace(static_cast<NodeId>(*id), rest.substr(0, *bytes));
    rest.remove_prefix(*bytes + 1);
  }
  return look;
}

bool ReadsFiles(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return ops::HasRole(node, ops::Role::kRead); });
}

FileLook LookAtFiles(const Graph& graph, const compiler::LiveIns& live_in, ops::Files* files) {
  FileLook look;
  ops::FileVersions* versions = files != nullptr ? files->versions() : nullptr;
  // Computed paths, of writes where a read follows.
  std::optional<compiler::InferOutcome> known;
  compiler::WrittenFiles written(files);
  const auto path_of = [&](const Node& node) {
    if (std::optional<Scalar> literal = compiler::LiteralPath(graph, node)) return literal;
    if (!known) {
      std::vector<std::pair<NodeId, Status>> ignored;
      known = compiler::InferShapes(graph, live_in, nullptr, &ignored);
    }
    return known->values[static_cast<size_t>(node.inputs[ops::HasRole(node, ops::Role::kWrite) ? 1 : 0])];
  };
  std::vector<NodeId> writes;  // since the last read
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (ops::HasRole(node, ops::Role::kWrite)) writes.push_back(id);
    if (!ops::HasRole(node, ops::Role::kRead)) continue;
    for (const NodeId write : writes) written.Add(path_of(graph[write]));
    writes.clear();
    const std::optional<Scalar> path = path_of(node);
    if (!path || !look.waiting.empty() || written.MayChange(path)) {
      look.waiting.insert(id);
    } else if (versions != nullptr) {
      for (const std::string& name : {path->ToText(), path->ToText() + ".mtd"})
        if (!look.versions.contains(name)) look.versions.emplace(name, versions->Find(name));
      look.shared.emplace(id, path->ToText());
    }
  }
  return look;
}

void FindSharedLooks(const Graph& graph, int64_t min_distributed_bytes, ops::Files& files, FileLook* look) {
  std::erase_if(look->shared, [&](const auto& read) {
    const auto& [id, path] = read;
    const ops::FileVersion& version = look->versions.at(path);
    const bool is_there =
        version.kind == ops::FileVersion::Kind::kFile || version.kind == ops::FileVersion::Kind::kFolder;
    if (!is_there || version.bytes < min_distributed_bytes) return true;
    const DataType type = ops::FileTypeOf(graph[id]).data_type;
    if (type != DataType::kMatrix && type != DataType::kFrame) return true;
    // What is wrong with it is told where the size is asked for.
    const Result<ops::ReadOptions> options = ops::ResolveReadOptions(graph[id], path, files);
    return !options.ok() || !options->format || !ops::CanShareLook(*options) ||
           ops::IsSummarized(*options, files);
  });
}

void MarkSendingReads(const std::vector<std::optional<Scalar>>& values, int32_t ranks,
                      int64_t min_distributed_bytes, int64_t memory_bytes, ops::Files& files, Graph* graph) {
  for (Node& node : graph->nodes) {
    if (!ops::HasRole(node, ops::Role::kRead)) continue;
    std::erase_if(node.attributes, [](const auto& attribute) { return attribute.first == ops::kSendsCells; });
    const std::optional<Scalar>& path = values[static_cast<size_t>(node.inputs[0])];
    if (path && node.info.IsMatrix() &&
        ops::IsSplit(ops::RowRule::kGenerate, {}, node.info, min_distributed_bytes) &&
        ops::ShouldSendCells(node, path->ToText(), ranks, memory_bytes, files))
      node.SetAttribute(ops::kSendsCells, Scalar(true));
  }
}

Graph GraphOfSharedLook(const Node& read, const std::string& path, int64_t ranks) {
  Node look;
  look.op = "lookAtFile";
  look.attributes = read.attributes;
  look.SetAttribute("path", Scalar(path));
  look.SetAttribute("shares", Scalar(ranks));
  look.SetAttribute("even.rows", Scalar(true));
  look.info = ValueInfo::OfMatrix({ranks, 1});
  look.position = read.position;
  Node assign;
  assign.op = "assign";
  assign.info = look.info;
  assign.position = read.position;
  assign.SetAttribute("name", Scalar(std::string(kLooked)));
  Graph graph;
  assign.inputs = {graph.Add(std::move(look))};
  graph.Add(std::move(assign));
  return graph;
}

}  // namespace heddle::engine
