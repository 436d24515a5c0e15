// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/optimize/shared_map.h"

namespace heddle::compiler {

using Names = std::set<std::string, std::less<>>;

/// A set of names whose copies share what none of them has changed.
class SharedNames {
 public:
  bool contains(std::string_view name) const { return names_.contains(name); }
  void insert(std::string_view name) {
    if (!contains(name)) names_[name];
  }
  void erase(std::string_view name) { names_.erase(name); }

  /// The names of this set that another one has not, in their order.
  std::vector<std::string> Beside(const SharedNames& other) const {
    std::vector<std::string> names;
    names_.ForEachDifference(other.names_,
                             [&](const std::string& name, const Nothing* mine, const Nothing* theirs) {
                               if (mine != nullptr && theirs == nullptr) names.push_back(name);
                             });
    return names;
  }
  void AddAllOf(const SharedNames& other) {
    for (const std::string& name : other.Beside(*this)) insert(name);
  }
  /// Erases what the other set has not. True if there was anything.
  bool KeepThoseOf(const SharedNames& other) {
    const std::vector<std::string> missing = Beside(other);
    for (const std::string& name : missing) erase(name);
    return !missing.empty();
  }

 private:
  using Nothing = std::monostate;
  SharedMap<Nothing> names_;
};

}  // namespace heddle::compiler
