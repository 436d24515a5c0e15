// SPDX-License-Identifier: Apache-2.0
#include "core/programs/variable_copy.h"

namespace heddle {
namespace {

constexpr std::string_view kCopy = "%copy ", kOf = " of ";

}  // namespace

std::string NameOfCopy(std::string_view variable, const Distribution& distribution) {
  return std::string(kCopy).append(distribution.ToText()).append(kOf).append(variable);
}

std::string_view VariableOfCopy(std::string_view name) {
  if (!name.starts_with(kCopy)) return {};
  const size_t of = name.find(kOf);
  return of == std::string_view::npos ? std::string_view() : name.substr(of + kOf.size());
}

}  // namespace heddle
