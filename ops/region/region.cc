// SPDX-License-Identifier: Apache-2.0
#include "ops/region/region.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>

#include "core/text/named_value.h"

namespace heddle::ops {
namespace {

using Words = std::span<const std::string_view>;

#define HEDDLE_NAME(Name) #Name,
constexpr std::array<std::string_view, kBinaryCodes> kBinaryNames = {HEDDLE_BINARY_KERNELS(HEDDLE_NAME)};
constexpr std::array<std::string_view, kUnaryCodes> kUnaryNames = {HEDDLE_UNARY_KERNELS(HEDDLE_NAME)};
#undef HEDDLE_NAME
constexpr std::array<std::string_view, 4> kAccessNames = {"cells", "row", "column", "scalar"};
constexpr std::array<std::string_view, 4> kSinkNames = {"store", "fold-flat", "fold-columns", "fold-rows"};
constexpr std::array<std::string_view, 4> kFoldNames = {"add", "multiply", "minimum", "maximum"};

std::string HexadecimalText(double x) {
  if (std::isnan(x)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}

std::string NodeText(const RegionNode& node) {
  std::string text;
  switch (node.op) {
    case RegionOp::kInput:
      text = fmt::format("{} {}", kAccessNames[static_cast<size_t>(node.access)], node.input);
      break;
    case RegionOp::kLiteral: text = fmt::format("literal {}", HexadecimalText(node.literal)); break;
    case RegionOp::kUnary:
      text = fmt::format("{} %{}", kUnaryNames[static_cast<size_t>(node.unary)], node.a);
      break;
    case RegionOp::kBinary:
      text = fmt::format("{} %{} %{}", kBinaryNames[static_cast<size_t>(node.binary)], node.a, node.b);
      break;
    case RegionOp::kSelect: text = fmt::format("select %{} %{} %{}", node.a, node.b, node.c); break;
  }
  if (node.single) text += " single";
  if (node.prefetch != RowPrefetch::kNone)
    text += node.prefetch == RowPrefetch::kInOrder ? " prefetch-in-order" : " prefetch";
  if (node.skips_a) text += " skips-a";
  if (node.skips_b) text += " skips-b";
  if (node.drops_negative_zero) text += " drops-negative-zero";
  return text;
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    const size_t start = line.find_first_not_of(' ', at);
    if (start == std::string_view::npos) break;
    at = std::min(line.find(' ', start), line.size());
    words.push_back(line.substr(start, at - start));
  }
  return words;
}

bool ReadInteger(std::string_view word, int* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size();
}
bool ReadOperand(std::string_view word, int* value) {
  return word.starts_with('%') && ReadInteger(word.substr(1), value);
}
bool ReadLiteral(std::string_view word, double* value) {
  const std::string text(word);
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

/// What follows "%7 = ".
bool ReadNode(Words words, RegionNode* node) {
  for (; !words.empty(); words = words.first(words.size() - 1)) {
    if (words.back() == "prefetch" || words.back() == "prefetch-in-order") {
      node->prefetch = words.back() == "prefetch" ? RowPrefetch::kPagesInTurn : RowPrefetch::kInOrder;
      continue;
    }
    bool* const flag = words.back() == "single"                ? &node->single
                       : words.back() == "skips-a"             ? &node->skips_a
                       : words.back() == "skips-b"             ? &node->skips_b
                       : words.back() == "drops-negative-zero" ? &node->drops_negative_zero
                                                               : nullptr;
    if (flag == nullptr) break;
    *flag = true;
  }
  if (words.size() < 2) return false;
  if (words.size() == 2) {
    if (words[0] == "literal") {
      node->op = RegionOp::kLiteral;
      return ReadLiteral(words[1], &node->literal);
    }
    if (const auto access = ValueNamed<int>(kAccessNames, words[0])) {
      node->access = static_cast<Access>(*access);
      return ReadInteger(words[1], &node->input);
    }
    const auto code = ValueNamed<int>(kUnaryNames, words[0]);
    if (!code) return false;
    node->op = RegionOp::kUnary;
    node->unary = static_cast<UnaryCode>(*code);
    return ReadOperand(words[1], &node->a);
  }
  if (!ReadOperand(words[1], &node->a) || !ReadOperand(words[2], &node->b)) return false;
  if (words.size() == 4) {
    node->op = RegionOp::kSelect;
    return words[0] == "select" && ReadOperand(words[3], &node->c);
  }
  const auto code = ValueNamed<int>(kBinaryNames, words[0]);
  if (words.size() != 3 || !code) return false;
  node->op = RegionOp::kBinary;
  node->binary = static_cast<BinaryCode>(*code);
  return true;
}

/// "store %3", "store %3 single", "fold-rows add %3", "fold-rows add %3 mean" or "fold-flat add %3 eights 5".
bool ReadOutput(Words words, RegionOutput* output) {
  if (words.empty()) return false;
  const auto sink = ValueNamed<int>(kSinkNames, words[0]);
  if (!sink) return false;
  output->sink = static_cast<Sink>(*sink);
  if (output->sink == Sink::kStore && words.size() == 3 && words.back() == "single") {
    output->single = true;
    words = words.first(2);
  }
  if (output->sink == Sink::kStore) return words.size() == 2 && ReadOperand(words[1], &output->node);
  if (words.size() == 4 && words.back() == "mean") {
    output->is_mean = true;
    words = words.first(3);
  }
  if (words.size() == 5 && words[3] == "eights") {
    if (!ReadInteger(words[4], &output->eights)) return false;
    words = words.first(3);
  }
  if (words.size() != 3) return false;
  const auto fold = ValueNamed<int>(kFoldNames, words[1]);
  if (!fold) return false;
  output->fold = static_cast<simd::Fold>(*fold);
  return ReadOperand(words[2], &output->node);
}

/// "region 2", "region 2 columns 10", and either followed by "half-registers".
bool ReadHead(Words words, Region* region) {
  if (!words.empty() && words.back() == "half-registers") {
    region->half_registers = true;
    words = words.first(words.size() - 1);
  }
  if (words.size() == 4 && words[2] == "columns")
    return words[0] == "region" && ReadInteger(words[1], &region->inputs) &&
           ReadInteger(words[3], &region->columns);
  return words.size() == 2 && words[0] == "region" && ReadInteger(words[1], &region->inputs);
}

int OperandsOf(RegionOp op) {
  switch (op) {
    case RegionOp::kInput:
    case RegionOp::kLiteral: return 0;
    case RegionOp::kUnary: return 1;
    case RegionOp::kBinary: return 2;
    case RegionOp::kSelect: return 3;
  }
  return -1;
}

}  // namespace

bool KeepsSingles(const RegionNode& node) {
  using enum UnaryCode;
  using enum BinaryCode;
  if (node.op == RegionOp::kUnary) {
    for (const UnaryCode code :
         {kNot, kAbsolute, kRoundDown, kRoundUp, kSign, kIsNaN, kIsInfinite, kSingleExponential,
          kSingleLogarithm, kSingleHyperbolicTangent, kSingleSigmoid, kSingleErrorFunction})
      if (node.unary == code) return true;
    return false;
  }
  if (node.op != RegionOp::kBinary) return false;
  for (const BinaryCode code :
       {kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual, kLogicalAnd, kLogicalOr, kExclusiveOr})
    if (node.binary == code) return true;
  return false;
}

std::string Region::ToText() const {
  std::string text = fmt::format("region {}", inputs);
  if (columns > 0) text += fmt::format(" columns {}", columns);
  text += half_registers ? " half-registers\n" : "\n";
  for (size_t i = 0; i < nodes.size(); ++i) text += fmt::format("%{} = {}\n", i, NodeText(nodes[i]));
  for (const RegionOutput& output : outputs) {
    text += kSinkNames[static_cast<size_t>(output.sink)];
    if (output.sink != Sink::kStore) text += fmt::format(" {}", kFoldNames[static_cast<size_t>(output.fold)]);
    text +=
        fmt::format(" %{}{}{}", output.node, output.is_mean ? " mean" : "", output.single ? " single" : "");
    text += output.eights == 1 ? "\n" : fmt::format(" eights {}\n", output.eights);
  }
  return text;
}

Result<Region> Region::Parse(std::string_view text) {
  Region region;
  bool headed = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::vector<std::string_view> words = SplitWords(line);
    if (words.empty()) continue;
    bool good = false;
    int position = 0;
    if (!headed) {
      good = headed = ReadHead(words, &region);
    } else if (words[0].starts_with('%')) {
      good = words.size() > 2 && words[1] == "=" && ReadOperand(words[0], &position) &&
             position == static_cast<int>(region.nodes.size()) && region.outputs.empty() &&
             ReadNode(Words(words).subspan(2), &region.nodes.emplace_back());
    } else {
      good = ReadOutput(words, &region.outputs.emplace_back());
    }
    if (!good) return Internal("region: malformed line: {}", line);
  }
  if (!headed) return Internal("region: no text");
  HEDDLE_RETURN_IF_ERROR(Verify(region));
  return region;
}

Status Verify(const Region& region) {
  if (region.inputs < 0) return Internal("region: {} inputs", region.inputs);
  if (region.columns < 0 || region.columns > kMostNarrowColumns)
    return Internal("region: made for {} columns", region.columns);
  if (region.outputs.empty()) return Internal("region: no outputs");
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const RegionNode& node = region.nodes[i];
    const int operands = OperandsOf(node.op), here = static_cast<int>(i);
    const auto is_earlier = [&](int operand) { return operand >= 0 && operand < here; };
    bool good = operands >= 0 && (operands < 1 || is_earlier(node.a)) &&
                (operands < 2 || is_earlier(node.b)) && (operands < 3 || is_earlier(node.c));
    if (node.op == RegionOp::kInput)
      good = good && node.input >= 0 && node.input < region.inputs && node.access <= Access::kScalar;
    for (const RegionNode& other : region.nodes)  // Of a stride of 1 or of all columns.
      if (region.columns > 0 && node.op == RegionOp::kInput && node.access == Access::kPerRow &&
          other.op == RegionOp::kInput && other.input == node.input)
        good = good && other.access != Access::kCells;
    if (node.op == RegionOp::kUnary) good = good && static_cast<int>(node.unary) < kUnaryCodes;
    if (node.op == RegionOp::kBinary) good = good && static_cast<int>(node.binary) < kBinaryCodes;
    if (node.skips_a || node.skips_b) good = good && node.op == RegionOp::kBinary;
    if (node.single)
      good = good && node.op == RegionOp::kInput &&
             (node.access == Access::kCells || node.access == Access::kPerRow);
    const bool fetched = node.prefetch != RowPrefetch::kNone;
    if (fetched) good = good && node.op == RegionOp::kInput && node.access == Access::kCells;
    for (const RegionNode& other : region.nodes)
      if (fetched && other.prefetch != RowPrefetch::kNone)
        good = good && other.single == node.single && other.prefetch == node.prefetch;
    for (const RegionNode& other : region.nodes)
      if (node.op == RegionOp::kInput && other.op == RegionOp::kInput && other.input == node.input)
        good = good && other.single == node.single;
    if (!good) return Internal("region: wrong node: %{} = {}", i, NodeText(node));
  }
  int eights = 0;
  for (const RegionOutput& output : region.outputs) {
    if (output.sink == Sink::kFoldFlat && eights == 0) eights = output.eights;
    if (output.eights != (output.sink == Sink::kFoldFlat ? eights : 1) || output.eights < 1 ||
        output.eights > 8)
      return Internal("region: an output of {} eights", output.eights);
    if (output.node < 0 || output.node >= static_cast<int>(region.nodes.size()) ||
        output.sink > Sink::kFoldRows || output.fold > simd::Fold::kMaximum ||
        (region.columns > 0 && output.sink == Sink::kFoldFlat) ||
        (output.single && output.sink != Sink::kStore) ||
        (output.is_mean && (output.sink != Sink::kFoldRows || output.fold != simd::Fold::kAdd)))
      return Internal("region: an output of node %{}", output.node);
  }
  return OkStatus();
}

}  // namespace heddle::ops
