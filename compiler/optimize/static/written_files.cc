// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/written_files.h"

#include <algorithm>

#include "compiler/optimize/storage.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/files/files.h"
#include "ops/io/files/folders.h"

namespace heddle::compiler {
namespace {

// What a write leaves and what a read looks at.
std::vector<std::string> NamesOf(const Scalar& path) { return {path.ToText(), path.ToText() + ".mtd"}; }

class ProgramWalk {
 public:
  ProgramWalk(const Program& program, ops::Files* files) : program_(program), written_(files) {}

  std::map<int32_t, std::set<NodeId>> Run() {
    Walk(program_.main);
    // A function may be called again behind any write of the script.
    std::set<std::string> seen;
    AddWrites(program_.main, &seen);
    for (const auto& [name, function] : program_.functions) AddWrites(function.body, &seen);
    for (const auto& [name, function] : program_.functions) Walk(function.body);
    return std::move(reads_);
  }

 private:
  void Walk(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      std::set<std::string> seen;
      if (IsLoop(block)) AddWrites(block.body, &seen);  // of the round before
      WalkGraph(block);
      Walk(block.body);
      Walk(block.otherwise);
      ForEachCallee(block, [&](const std::string& function, const auto&) { AddWritesOf(function, &seen); });
    }
  }

  void WalkGraph(const Block& block) {
    AddListWrite(block);
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      const ops::Role role = ops::RoleOf(node);
      if (role == ops::Role::kWrite) written_.Add(LiteralPath(block.graph, node));
      if (role == ops::Role::kRead && written_.MayChange(LiteralPath(block.graph, node)))
        reads_[block.id].insert(id);
    }
  }

  // The step that writes a list makes as many files as the list has elements.
  void AddListWrite(const Block& block) {
    if (block.kind == Block::Kind::kList && block.operation == ListOperation::kWrite)
      written_.Add(std::nullopt);
  }

  void AddWrites(const std::vector<Block>& blocks, std::set<std::string>* seen) {
    ForEachBlock(blocks, [&](const Block& block) {
      AddListWrite(block);
      for (const Node& node : block.graph.nodes)
        if (ops::HasRole(node, ops::Role::kWrite)) written_.Add(LiteralPath(block.graph, node));
      ForEachCallee(block, [&](const std::string& function, const auto&) { AddWritesOf(function, seen); });
    });
  }

  void AddWritesOf(const std::string& function, std::set<std::string>* seen) {
    const auto found = program_.functions.find(function);
    if (found != program_.functions.end() && seen->insert(function).second)
      AddWrites(found->second.body, seen);
  }

  const Program& program_;
  WrittenFiles written_;
  std::map<int32_t, std::set<NodeId>> reads_;
};

}  // namespace

void WrittenFiles::Add(const std::optional<Scalar>& path) {
  if (!path) {
    is_any_ = true;
    return;
  }
  for (const std::string& name : NamesOf(*path)) written_.insert(IdentityOf(name));
}

bool WrittenFiles::MayChange(const std::optional<Scalar>& path) const {
  if (is_any_) return true;
  if (written_.empty()) return false;
  if (!path) return true;
  for (const std::string& name : NamesOf(*path)) {
    const std::string read = IdentityOf(name);
    for (const std::string& written : written_)
      if (ops::FileVersions::MayMeet(written, read)) return true;
  }
  return false;
}

std::string WrittenFiles::IdentityOf(const std::string& path) const {
  if (files_ != nullptr && files_->versions() != nullptr) return files_->versions()->Identity(path);
  return ops::FollowLinks("/" + path);
}

std::optional<Scalar> LiteralPath(const Graph& graph, const Node& node) {
  const Node& path = graph[node.inputs[ops::HasRole(node, ops::Role::kWrite) ? 1 : 0]];
  if (!path.Is("literal")) return std::nullopt;
  return *path.FindAttribute("value");
}

std::map<int32_t, std::set<NodeId>> ReadsBehindWrites(const Program& program, ops::Files* files) {
  return ProgramWalk(program, files).Run();
}

}  // namespace heddle::compiler
