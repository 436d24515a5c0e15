// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

// Files that hold several arrays, one of which read() takes: dataset= says which.
namespace heddle::ops {

inline constexpr std::string_view kDatasetSaysWhich = "dataset= says which: ";

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

/// kDataLoss: nobody says which of them to read. `what`: "arrays", "matrices".
inline Status SeveralArrays(const std::string& path, std::string_view what,
                            const std::vector<std::string>& names) {
  return DataLoss("cannot read '{}': it holds {} {}", path, names.size(), what)
      .WithNote(std::string(kDatasetSaysWhich) + ListOfArrays(names));
}

/// The names that the note of SeveralArrays() lists; none of another status.
inline std::vector<std::string> ArraysToChooseFrom(const Status& status) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string> names;
  for (const std::string& note : status.notes()) {
    if (!note.starts_with(kDatasetSaysWhich)) continue;
    std::string_view rest = std::string_view(note).substr(kDatasetSaysWhich.size());
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(kBetween), rest.size());
      names.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
    }
  }
  return names;
}

}  // namespace heddle::ops
