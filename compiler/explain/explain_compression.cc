// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/explain_compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
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

// As the script calls it. The compiler puts %in3. in front of the names of a function whose body it puts in
// place of a call, and % in front of names of its own.
std::string NameInScript(std::string_view name) {
  if (name.starts_with("%in")) name.remove_prefix(std::min(name.find('.') + 1, name.size()));
  if (name.starts_with('%')) return "an intermediate result";
  return std::string(name.substr(0, name.find('@')));
}

// "1000x10, 80.0 KB", "?x10".
std::string SizeText(ValueInfo info, ElementType element_type) {
  info.element_type = element_type;
  std::string text = fmt::format("{}", info.shape);
  if (info.IsSized() && info.format == Format::kDense) text += ", " + ops::AmountText(KnownBytes(info));
  return text + (info.format == Format::kSparse ? ", sparse" : "");
}

std::string_view HowItReads(const StorageRead& read) {
  if (read.needs_all) return "decodes the whole matrix each time";
  const ops::Operator* const op = ops::FindOperator(read.reader);
  return op != nullptr && op->run_compressed != nullptr && op->role != ops::Role::kWrite
             ? "reads codes and dictionaries where it can"
             : "decodes a few rows at a time";
}

std::string TimesText(double times) { return times == 1 ? "once" : fmt::format("{:.0f} times", times); }

// What reads a variable, at each place once.
std::string ReadsText(const std::vector<StorageRead>& reads) {
  std::map<std::string, std::pair<double, std::string_view>> places;
  std::vector<std::string> order;
  for (const StorageRead& read : reads) {
    const std::string_view reader = read.reader == "t%*%" ? "t() %*%" : std::string_view(read.reader);
    const std::string place = fmt::format("{} in line {}", reader, read.position.line);
    const auto [found, is_new] = places.emplace(place, std::pair(0.0, HowItReads(read)));
    if (is_new) order.push_back(place);
    found->second.first += read.times;
  }
  std::string text;
  for (const std::string& place : order) {
    const auto& [times, how] = places[place];
    text += fmt::format("  {} reads it {}, and {}\n", place, TimesText(times), how);
  }
  return text;
}

class CompressionText {
 public:
  CompressionText(const Program& program, const WrittenCompressions& written, const PlanningOptions& planning)
      : program_(program),
        written_(written),
        element_type_(planning.element_type),
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
    for (const auto& [place, function] : written_)
      if (!found_.contains(place)) text_ += WithoutEffect(place.first, function);
    if (!text_.empty()) return std::move(text_);
    return "Nothing is compressed: the script has no compress(), and no loop that reads a matrix which it does "
           "not change.\n";
  }

 private:
  void Visit(const std::vector<Block>& blocks, bool is_main) {
    for (const Block& block : blocks) {
      for (NodeId id = 0; id < block.graph.size(); ++id)
        if (block.graph[id].Is("assign")) AddAssigned(blocks, block, id, is_main);
      if (IsLoop(block) && !is_in_loop_) AddLoop(block);
      const bool was_in_loop = is_in_loop_;
      is_in_loop_ = is_in_loop_ || IsLoop(block);
      Visit(block.body, false);
      Visit(block.otherwise, false);
      is_in_loop_ = was_in_loop;
    }
  }

  void AddAssigned(const std::vector<Block>& blocks, const Block& block, NodeId assign, bool is_main) {
    const Node& compressed = block.graph[block.graph[assign].inputs[0]];
    if (!Compresses(compressed)) return;
    found_.emplace(compressed.position.line, compressed.position.column);
    const bool is_chosen = compressed.FindAttribute("reads") != nullptr;
    const std::string& name = block.graph[assign].Text("name");
    told_.insert(name);
    text_ += fmt::format(
        "{} line {}: {}, {}\n", is_chosen ? "--compress auto, in front of the loop in" : "compress() in",
        compressed.position.line, NameInScript(name), SizeText(compressed.info, element_type_));
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
      return "  what it takes then depends on cells that only a run has: heddle run -stats tells\n";
    ops::CompressionRecord record;
    const auto compress = [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix, ToElementType(value->matrix(), element_type_));
      record.plain_bytes = matrix.bytes();
      return ops::CompressedOf(matrix, matrix.bytes(), compressed.FindAttribute("reads"), context_, &record,
                               compressed.FindAttribute("of_tuples"))
          .status();
    };
    Status status;
    arena_.Execute([&] { status = compress(); });
    if (!status.ok()) return fmt::format("  {}\n", status.message());
    return record.groups.empty() ? fmt::format("  not compressed: {}\n", record.why_not)
                                 : fmt::format("  compressed: {}\n", ops::BytesText(record));
  }

  void AddLoop(const Block& loop) {
    for (const LoopInput& input : InputsOf(program_, loop)) {
      if (told_.contains(input.variable)) continue;
      const std::string name = NameInScript(input.variable);
      text_ += fmt::format("loop in line {}: {}, {}\n", loop.position.line, name,
                           SizeText(input.info, element_type_));
      text_ += ReadsText(input.reads);
      if (!input.why_not.empty())
        text_ += fmt::format("  not compressed: {}\n", input.why_not);
      else if (input.variable.starts_with('%') && !input.variable.starts_with("%in"))
        text_ += "  not compressed: nothing asks for it; --compress auto does where it pays\n";
      else
        text_ += fmt::format(
            "  not compressed: nothing asks for it; {} = compress({}) in front of the loop does, and --compress "
            "auto where it pays\n",
            name, name);
    }
  }

  // Of a compress() that no pass has left.
  std::string WithoutEffect(int32_t line, const std::string& function) const {
    if (!function.empty() && CallsItself(program_, function))
      return fmt::format(
          "compress() in line {}: no effect, as {}() calls itself\n"
          "  what such a function holds is stored by its cells; compress it before the first call\n",
          line, function);
    return fmt::format(
        "compress() in line {}: no effect, as no loop, branch, function or later block reads the result\n"
        "  the statements next to it read the cells, which are there anyway: compressing takes as long as {:.0f} "
        "reads of them\n"
        "  it pays in front of a loop that reads the result in many rounds\n",
        line, ops::kReadsOfCompressing);
  }

  const Program& program_;
  const WrittenCompressions& written_;
  const ElementType element_type_;
  const std::map<int32_t, std::set<NodeId>> behind_writes_;
  ops::KernelContext context_;
  ops::Arena arena_;
  KnownCells cells_;
  std::set<std::pair<int32_t, int32_t>> found_;  // Lines and columns.
  std::set<std::string> told_;  // Variables of the script or function that something compresses.
  const std::vector<Block>* root_ = nullptr;  // Of the script or function that is told.
  bool is_in_loop_ = false;
  std::string text_;
};

}  // namespace

WrittenCompressions FindCompressions(const Program& program) {
  WrittenCompressions places;
  const auto add = [&](const std::vector<Block>& blocks, const std::string& function) {
    ForEachBlock(blocks, [&](const Block& block) {
      for (const Node& node : block.graph.nodes)
        if (Compresses(node)) places.emplace(std::pair(node.position.line, node.position.column), function);
    });
  };
  add(program.main, "");
  for (const auto& [name, function] : program.functions) add(function.body, name);
  return places;
}

std::string ExplainCompression(const Program& program, const WrittenCompressions& written,
                               const PlanningOptions& planning) {
  return CompressionText(program, written, planning).Text();
}

}  // namespace heddle::compiler
