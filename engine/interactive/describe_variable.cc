// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/describe_variable.h"

#include <fmt/format.h>

#include "core/text/utf8.h"

namespace heddle::engine {
namespace {

constexpr size_t kMostText = 60;  // bytes of a string that are shown

}  // namespace

std::string Describe(const Variable& variable) {
  std::string text = Describe(variable.info);
  if (variable.list != nullptr) return fmt::format("{} of {}", text, variable.list->size());
  if (variable.value.IsScalar() && variable.info.IsScalar()) {
    const Scalar& scalar = variable.value.scalar();
    if (!scalar.IsString()) return text + " " + scalar.ToText();
    const std::string_view shown = CutAtCharacter(scalar.AsString(), kMostText);
    return fmt::format("{} \"{}\"{}", text, shown, shown.size() < scalar.AsString().size() ? "..." : "");
  }
  if (variable.value.IsPanels()) text += ", in panels";
  if (variable.value.IsMatrix() && variable.value.matrix().IsSparse())
    text += fmt::format(", {} non-zeros", variable.value.matrix().stored());
  if (variable.value.IsMatrix() && variable.value.matrix().IsCompressed())
    text +=
        fmt::format(", compressed to {:.1f} %", 100.0 * static_cast<double>(variable.value.bytes()) /
                                                    static_cast<double>(variable.value.matrix().cells() * 8));
  return text;
}

}  // namespace heddle::engine
