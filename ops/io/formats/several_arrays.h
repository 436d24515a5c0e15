// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

// Files that hold several arrays, one of which read() takes: dataset= says which.
namespace heddle::ops {

/// The names for a message: the first of them where they are many or long.
inline std::string ListOfArrays(const std::vector<std::string>& names) {
  constexpr size_t kMostBytes = 300;
  std::string list;
  for (const std::string& name : names) {
    if (list.size() > kMostBytes) return list + ", ...";
    list.append(list.empty() ? "" : ", ").append(name.size() > kMostBytes ? "..." : name);
  }
  return list;
}

/// kDataLoss: nobody says which of them to read; Status::choices() are the names. `what`: "arrays",
/// "matrices".
inline Status SeveralArrays(const std::string& path, std::string_view what,
                            const std::vector<std::string>& names) {
  return DataLoss("cannot read '{}': it holds {} {}", path, names.size(), what)
      .WithNote("dataset= says which: " + ListOfArrays(names))
      .WithChoices(names);
}

}  // namespace heddle::ops
