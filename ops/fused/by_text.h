// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace heddle::ops {

/// Things by long texts. Whoever asks has the text in the same place time after time, in a node of a plan; so
/// a text is looked for by its place first, and compared there, which takes a tenth of the time that hashing
/// it takes. Not thread-safe.
template <typename Thing>
class ByText {
 public:
  using Things = std::unordered_map<std::string, std::shared_ptr<Thing>>;

  /// nullptr when there is none.
  std::shared_ptr<Thing> Find(const std::string& text) {
    const auto place = places_.find(&text);
    if (place != places_.end() && place->second->first == text) return place->second->second;
    const auto found = things_.find(text);
    if (found == things_.end()) return nullptr;
    if (places_.size() >= kPlacesOfThing * (things_.size() + 1)) places_.clear();
    places_[&text] = &*found;
    return found->second;
  }
  /// Where there is none.
  void Add(const std::string& text, std::shared_ptr<Thing> thing) { things_[text] = std::move(thing); }
  void Clear() {
    places_.clear();
    things_.clear();
  }
  size_t size() const { return things_.size(); }
  const Things& all() const { return things_; }

 private:
  static constexpr size_t kPlacesOfThing = 4;  ///< More forget them all: nodes come and go.
  Things things_;
  std::unordered_map<const std::string*, const typename Things::value_type*> places_;
};

}  // namespace heddle::ops
