// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/hover.h"

#include <fmt/format.h>

#include "compiler/help/describe_value.h"
#include "compiler/help/function_help.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

constexpr int64_t kBytesOfRow = 8;     // of a CSR matrix: where the next row begins
constexpr int64_t kBytesOfEntry = 12;  // value and column

std::string Grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string ShownBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  std::string text = Grouped(bytes) + " bytes";
  if (bytes < 1024) return text;
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return fmt::format("{} ({:.1f} {})", text, size, kUnits[unit]);
}

// Format, bytes and place of a matrix or frame, as far as they are known before the script runs.
std::string StorageOf(const ValueInfo& info, const HoverOptions& options) {
  if (!info.IsTabular()) return "";
  const bool is_sparse = info.IsMatrix() && info.format == Format::kSparse;
  std::string text;
  if (is_sparse) {
    text = "sparse (CSR): memory grows with the non-zeros";
    if (info.shape.IsKnown())
      text += fmt::format(", {} bytes each and {} for the rows", kBytesOfEntry,
                          ShownBytes(info.shape.rows * kBytesOfRow));
    return text + "\n";
  }
  if (info.IsMatrix()) text = "dense\n";
  if (!info.IsSized()) return text + "size and bytes: known when it runs\n";
  const int64_t bytes = KnownBytes(info);
  text += (info.IsFrame() ? "at least " : "") + ShownBytes(bytes) + "\n";
  text += bytes < options.min_distributed_bytes
              ? fmt::format("place: on a cluster whole on one worker, as it has less than {}\n",
                            ShownBytes(options.min_distributed_bytes))
              : "place: on a cluster by rows on all workers\n";
  return text;
}

std::optional<Hover> OfVariable(const ScriptView& script, const NameUse& use, const ValueInfos& values,
                                const HoverOptions& options) {
  Hover hover;
  hover.range = use.range;
  std::optional<ValueInfo> info =
      options.is_current ? values.Of(script, use) : values.LastOf(use.scope, use.name);
  if (!info && use.parameter != nullptr)
    info = ValueInfo::OfDeclared(use.parameter->data_type, use.parameter->value_type);
  hover.code = fmt::format("{}: {}", use.name, Describe(info.value_or(ValueInfo())));
  if (info) hover.text = StorageOf(*info, options);
  if (info && !options.is_current) hover.text += "as of the last text without errors\n";
  return hover;
}

std::optional<Hover> OfFunction(const Callable& callable, const SourceRange& range) {
  Hover hover;
  hover.range = range;
  hover.code = callable.Usage();
  hover.text = callable.text;
  return hover;
}

std::optional<Hover> OfArgument(const NameUse& use, const Callable& callable) {
  for (const Callable::Parameter& parameter : callable.parameters) {
    if (parameter.name != use.name) continue;
    Hover hover;
    hover.range = use.range;
    hover.code = fmt::format("{}{}{}{}", parameter.type, parameter.type.empty() ? "" : " ", parameter.name,
                             parameter.default_value.empty() ? "" : " = " + parameter.default_value);
    hover.text = "argument of " + callable.Usage() + "\n";
    if (const LibraryFile* const file = FindLibraryFunction(callable.name))
      if (const Result<FunctionHelp> help = HelpOf(*file); help.ok())
        for (const FunctionHelp::Parameter& described : help->arguments)
          if (described.name == use.name)
            hover.text = fmt::format("{}\n", fmt::join(described.lines, "\n")) + hover.text;
    return hover;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Hover> HoverAt(const ScriptViewPointer& script, const Place& place, const ValueInfos& values,
                             const HoverOptions& options, Scripts* scripts) {
  const NameUse* const use = script->NameAt(place);
  if (use == nullptr) return std::nullopt;
  switch (use->kind) {
    case NameUse::Kind::kVariable: return OfVariable(*script, *use, values, options);
    case NameUse::Kind::kFunction: {
      const std::optional<Callable> callable = FindCallable(script, use->name_space, use->name, scripts);
      if (callable) return OfFunction(*callable, use->range);
      const std::string help = HelpOfName(use->name);
      if (help.empty()) return std::nullopt;
      return Hover{use->range, use->name + "(...)", help};
    }
    case NameUse::Kind::kArgument: {
      const std::optional<Callable> callable = FindCallable(script, use->name_space, use->callee, scripts);
      return callable ? OfArgument(*use, *callable) : std::nullopt;
    }
    case NameUse::Kind::kNameSpace: {
      const ScriptViewPointer imported = scripts->Imported(*script, use->name);
      return Hover{use->range, "namespace " + use->name, imported == nullptr ? "" : imported->path + "\n"};
    }
    case NameUse::Kind::kScriptArgument:
      return Hover{use->range, "$" + use->name,
                   "argument of the script: heddle run ... -nvargs " + use->name + "=VALUE\n"};
  }
  return std::nullopt;
}

}  // namespace heddle::compiler
