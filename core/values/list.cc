// SPDX-License-Identifier: Apache-2.0
#include "core/values/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

constexpr size_t kMostNamesShown = 12;

Status NoSuchName(const std::vector<std::string>& names, const std::string& name) {
  if (names.empty()) return FailedPrecondition("the list has no names, so no element \"{}\"", name);
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNamesShown)));
  return FailedPrecondition("the list has no element \"{}\"", name)
      .WithNote(fmt::format("its names are {}{}", fmt::join(shown, ", "),
                            names.size() > kMostNamesShown ? ", ..." : ""));
}

// From 0.
Result<size_t> FindOne(const std::vector<std::string>& names, size_t count, const Scalar& index) {
  if (index.IsString()) {
    const auto found = std::find(names.rbegin(), names.rend(), index.AsString());
    if (found == names.rend()) return NoSuchName(names, index.AsString());
    return static_cast<size_t>(names.rend() - found) - 1;
  }
  const int64_t position = std::isnan(index.AsDouble()) ? 0 : index.AsInteger();
  if (position < 1 || position > static_cast<int64_t>(count))
    return FailedPrecondition("there is no element {} in a list of {} element{}", index.ToText(), count,
                              count == 1 ? "" : "s");
  return static_cast<size_t>(position) - 1;
}

}  // namespace

Result<ListRange> FindInList(const std::vector<std::string>& names, size_t count, const Scalar& from,
                             const Scalar& to) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t begin, FindOne(names, count, from));
  HEDDLE_ASSIGN_OR_RETURN(const size_t last, FindOne(names, count, to));
  if (last < begin)
    return FailedPrecondition("the elements {}:{} of a list: the first is behind the last", begin + 1,
                              last + 1);
  return ListRange{begin, last + 1};
}

Status AppendWithoutName() {
  return FailedPrecondition("append() of an element without a name to a list with names")
      .WithNote("append(l, list(name=x)) gives it one");
}

Status NestedTooDeep() {
  return FailedPrecondition("lists are nested more than {} deep", kMostNestedLists)
      .WithNote("append(l, list(x)) nests nothing, list(l, x) does");
}

}  // namespace heddle
