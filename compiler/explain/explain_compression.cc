// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/explain_compression.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "compiler/explain/known_cells.h"
#include "compiler/optimize/static/written_files.h"
#include "compiler/optimize/storage.h"
#include "core/environment/clock.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/compressed/compression_records.h"
#include "ops/compressed/plan_groups.h"

namespace heddle::compiler {
namespace {

// "1000x10, 80.0 KB", "?x10".
std::string SizeText(const ValueInfo& info) {
  std::string text = fmt::format("{}", info.shape);
  if (info.IsSized() && info.format == Format::kDense)
    text += fmt::format(", {:.1f} MB", static_cast<double>(KnownBytes(info)) / 1e6);
  return text + (info.format == Format::kSparse ? ", sparse" : "");
}

std::string_view HowItReads(const StorageRead& read) {
  if (read.needs_all) return "decoded as a whole";
  const ops::Operator* const op = ops::FindOperator(read.reader);
  return op != nullptr && op->run_compressed != nullptr ? "codes and dictionaries"
                                                        : "decoded by tiles of rows";
}

// What reads a variable, at each place once.
std::string ReadsText(const std::vector<StorageRead>& reads) {
  std::map<std::string, double> times;
  std::vector<std::string> order;
  for (const StorageRead& read : reads) {
    const std::string text =
        fmt::format("{} in line {} ({})", read.reader, read.position.line, HowItReads(read));
    if (!times.contains(text)) order.push_back(text);
    times[text] += read.times;
  }
  std::string text;
  for (const std::string& place : order)
    text += fmt::format("  read {:.0f} time{} by {}\n", times[place], times[place] == 1 ? "" : "s", place);
  return text;
}

class CompressionText {
 public:
  CompressionText(const Program& program, const WrittenCompressions& written, const PlanningOptions& planning)
      : program_(program),
        written_(written),
        behind_writes_(ReadsBehindWrites(program, planning.files)),
        arena_(planning.fuse.threads),
        cells_(program, behind_writes_, context_) {
    context_.files = planning.files;
    context_.clock = &SystemClock();
    context_.threads = planning.fuse.threads;
  }

  std::string Text() {
    root_ = &program_.main;
    Visit(program_.main, /*is_main=*/true);
    for (const auto& [name, function] : program_.functions) {
      root_ = &function.body;
      told_.clear();
      Visit(function.body, /*is_main=*/false);
    }
    for (const auto& [line, column] : written_)
      if (!found_.contains({line, column}))
        text_ += fmt::format(
            "compress in line {}: nothing is stored: only its own block reads the result, and that reads the "
            "cells which it is made of\n",
            line);
    return text_.empty() ? "nothing is compressed\n" : std::move(text_);
  }

 private:
  void Visit(const std::vector<Block>& blocks, bool is_main) {
    for (const Block& block : blocks) {
      for (NodeId id = 0; id < block.graph.size(); ++id)
        if (block.graph[id].Is("assign")) AddAssigned(blocks, block, id, is_main);
      const bool is_loop = block.kind == Block::Kind::kWhile || block.kind == Block::Kind::kFor ||
                           block.kind == Block::Kind::kParallelFor;
      if (is_loop && !is_in_loop_) AddLoop(block);
      const bool was_in_loop = is_in_loop_;
      is_in_loop_ = is_in_loop_ || is_loop;
      Visit(block.body, false);
      Visit(block.otherwise, false);
      is_in_loop_ = was_in_loop;
    }
  }

  void AddAssigned(const std::vector<Block>& blocks, const Block& block, NodeId assign, bool is_main) {
    const Node& compressed = block.graph[block.graph[assign].inputs[0]];
    if (!Compresses(compressed)) return;
    found_.emplace(compressed.position.line, compressed.position.column);
    const std::string& name = block.graph[assign].Text("name");
    const bool is_chosen = compressed.FindAttribute("reads") != nullptr;
    told_.insert(name);
    text_ += fmt::format("{} in line {}: {}, {}\n", is_chosen ? "loop" : "compress", compressed.position.line,
                         name, SizeText(compressed.info));
    // Of what a branch or a loop compresses, reads of the whole script or function.
    const bool is_top = &blocks == root_;
    const size_t behind = is_top ? static_cast<size_t>(&block - blocks.data()) + 1 : 0;
    text_ += ReadsText(ReadsOf(program_, std::span(*root_).subspan(behind), name));
    text_ += CellsText(block, compressed, is_main);
  }

  // What its kernel makes of it.
  std::string CellsText(const Block& block, const Node& compressed, bool is_main) {
    std::optional<Value> value;
    if (is_main) arena_.Execute([&] { value = cells_.Of(block, compressed.inputs[0]); });
    if (!value || !value->IsMatrix())
      return "  groups and bytes follow from its cells, which only a run has (-stats)\n";
    ops::CompressionRecord record{.plain_bytes = value->matrix().bytes()};
    Result<Matrix> result = Matrix();
    arena_.Execute([&] {
      result = ops::CompressedOf(value->matrix(), compressed.FindAttribute("reads"), context_, &record);
    });
    if (!result.ok()) return fmt::format("  {}\n", result.status().message());
    return fmt::format("  {}\n", ops::BytesText(record));
  }

  void AddLoop(const Block& loop) {
    for (const LoopInput& input : InputsOf(program_, loop)) {
      if (told_.contains(input.variable)) continue;
      text_ +=
          fmt::format("loop in line {}: {}, {}\n", loop.position.line, input.variable, SizeText(input.info));
      text_ += ReadsText(input.reads);
      text_ += fmt::format("  as it is: {}\n", input.why_not.empty()
                                                   ? "nobody asks for it (compress(), --compress auto)"
                                                   : input.why_not);
    }
  }

  const Program& program_;
  const WrittenCompressions& written_;
  const std::map<int32_t, std::set<NodeId>> behind_writes_;
  ops::KernelContext context_;
  ops::Arena arena_;
  KnownCells cells_;
  WrittenCompressions found_;
  std::set<std::string> told_;  // Variables of the script or function that something compresses.
  const std::vector<Block>* root_ = nullptr;  // Of the script or function that is told.
  bool is_in_loop_ = false;
  std::string text_;
};

}  // namespace

WrittenCompressions FindCompressions(const Program& program) {
  WrittenCompressions places;
  ForEachBlock(program, [&](const Block& block) {
    for (const Node& node : block.graph.nodes)
      if (Compresses(node)) places.emplace(node.position.line, node.position.column);
  });
  return places;
}

std::string ExplainCompression(const Program& program, const WrittenCompressions& written,
                               const PlanningOptions& planning) {
  return CompressionText(program, written, planning).Text();
}

}  // namespace heddle::compiler
