// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/text/utf8.h"

// Files that hold several arrays, one of which read() takes: dataset= says which.
namespace heddle::ops {

inline constexpr std::string_view kDatasetSaysWhich = "dataset= says which: ";

/// The names for a message: the first of them where they are many, the beginning of one that is long.
inline std::string ListOfArrays(const std::vector<std::string>& names) {
  constexpr size_t kMostBytes = 300;
  std::string list;
  for (const std::string& name : names) {
    if (list.size() > kMostBytes) return list + ", ...";
    list += (list.empty() ? "" : ", ") + ShownInLine(name, kMostBytes);
  }
  return list;
}

/// kDataLoss: nobody says which of them to read. `what`: "arrays", "matrices".
inline Status SeveralArrays(const std::string& path, std::string_view what,
                            const std::vector<std::string>& names) {
  return DataLoss("cannot read '{}': it holds {} {}", path, names.size(), what)
      .WithNote(std::string(kDatasetSaysWhich) + ListOfArrays(names));
}

/// kDataLoss: the one that dataset= names is not there. `what`: "array", "variable".
inline Status NoSuchArray(const std::string& path, std::string_view what, const std::string& wanted,
                          const std::vector<std::string>& names) {
  return DataLoss("cannot read '{}': it has no {} '{}'", path, what, wanted)
      .WithNote("it has: " + ListOfArrays(names));
}

}  // namespace heddle::ops
