// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/other_functions.h"

#include <fmt/core.h>

#include <algorithm>

#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Native builtins of DML (language reference 3.1 to 3.10) that the catalog does not have, and what to write
// instead. Sorted.
struct OtherNative {
  std::string_view name;
  std::string_view instead;
};
constexpr OtherNative kNatives[] = {
    {"autoDiff", "gradient() gives the derivatives of a function"},
    {"federated", ""},
    {"interQuantile", "order(target=X) and an index give the cells between two quantiles"},
    {"lineage", "of what a call of a function has made it is there for autoDiff(): l = lineage(x)"},
    {"range", "min(X) and max(X) are the ends of the range of cells"},
    {"sql", "write the result of the query to a csv file and read that"},
    {"transformmeta", "write the metadata that transformencode() gives, and read them as a frame"},
};

// Functions of SystemDS's library that Heddle's does not have. Sorted.
constexpr std::string_view kElsewhere[] = {"xdummy1", "xdummy2"};

static_assert(std::is_sorted(std::begin(kNatives), std::end(kNatives),
                             [](const OtherNative& a, const OtherNative& b) { return a.name < b.name; }));
static_assert(std::is_sorted(std::begin(kElsewhere), std::end(kElsewhere)));

}  // namespace

std::optional<std::string_view> InsteadOfNative(std::string_view name) {
  for (const OtherNative& native : kNatives)
    if (native.name == name && ops::FindBuiltin(name) == nullptr) return native.instead;
  return std::nullopt;
}

std::span<const std::string_view> FunctionsElsewhere() { return kElsewhere; }

std::string WhereLibraryIs(std::string_view name) {
  return fmt::format(
      "its file is DIR/builtin/{}.dml of a folder that --library DIR or HEDDLE_LIBRARY_PATH names: 'scripts' "
      "of a checkout of SystemDS, or your own",
      name);
}

bool IsElsewhere(std::string_view name) {
  return std::binary_search(std::begin(kElsewhere), std::end(kElsewhere), name);
}

}  // namespace heddle::compiler
