// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "core/status.h"

namespace heddle {

/// What all caches of the system do at their limit: the values that were used least recently go, one by one,
/// so that a working set that fits is never made again. A limit counts values, and where they differ much in
/// size their weights as well: bytes, or columns of frames. The value used last always stays, however much it
/// weighs. Not thread-safe: the owner locks.
template <typename Value>
class RecentlyUsedList {
  struct Entry {
    Value value;
    int64_t weight;
  };

 public:
  using Place = typename std::list<Entry>::iterator;

  explicit RecentlyUsedList(size_t most_values, int64_t most_weight = INT64_MAX)
      : most_values_(most_values), most_weight_(most_weight) {
    HEDDLE_CHECK(most_values > 0, "a cache has room for the value that was added last");
  }

  /// The value for which `matches` is true, from now on the one used last; nullptr where there is none.
  /// Values are asked in the order of their last use. What is returned is valid until it goes.
  template <typename Matches>
  Value* FindIf(Matches matches) {
    for (Place place = entries_.begin(); place != entries_.end(); ++place)
      if (matches(place->value)) return &Use(place);
    return nullptr;
  }
  /// The same value, out of the list.
  template <typename Matches>
  std::optional<Value> TakeIf(Matches matches) {
    if (FindIf(matches) == nullptr) return std::nullopt;
    std::optional<Value> taken(std::move(entries_.front().value));
    Erase(entries_.begin());
    return taken;
  }
  /// Adds the value used last. `drop` is called with each value that goes for it, the least recently used
  /// first.
  template <typename Drop>
  Value& Add(Value value, int64_t weight, Drop drop) {
    entries_.push_front({std::move(value), weight});
    weight_ += weight;
    while (entries_.size() > 1 && (entries_.size() > most_values_ || weight_ > most_weight_)) {
      drop(entries_.back().value);
      Erase(std::prev(entries_.end()));
    }
    return entries_.front().value;
  }
  Value& Add(Value value, int64_t weight = 0) {
    return Add(std::move(value), weight, [](Value&) {});
  }

  /// By the place of a value, which it keeps as long as it is in the list.
  Place first() { return entries_.begin(); }
  Value& Use(Place place) {
    entries_.splice(entries_.begin(), entries_, place);
    return place->value;
  }
  void Erase(Place place) {
    weight_ -= place->weight;
    entries_.erase(place);
  }

  size_t size() const { return entries_.size(); }

 private:
  size_t most_values_;
  int64_t most_weight_;
  int64_t weight_ = 0;        // of all values
  std::list<Entry> entries_;  // the one used last comes first
};

/// Takes a key out of a map again, unless Keep() is called: for what a value that follows has no memory for.
template <typename Map>
class UnlessKept {
 public:
  UnlessKept(Map& map, typename Map::iterator at) : map_(&map), at_(at) {}
  ~UnlessKept() {
    if (map_ != nullptr) map_->erase(at_);
  }
  UnlessKept(const UnlessKept&) = delete;
  UnlessKept& operator=(const UnlessKept&) = delete;
  void Keep() { map_ = nullptr; }

 private:
  Map* map_;
  const typename Map::iterator at_;
};

/// The same by keys.
template <typename Key, typename Value>
class RecentlyUsedMap {
 public:
  explicit RecentlyUsedMap(size_t most_values, int64_t most_weight = INT64_MAX)
      : values_(most_values, most_weight) {}

  /// The value of the key, from now on the one used last; nullptr where there is none. Valid until it goes.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : &values_.Use(found->second).value;
  }
  /// The value of the key from now on, and the one used last.
  Value& Add(const Key& key, Value value, int64_t weight = 0) {
    Erase(key);
    const auto at = places_.emplace(key, Place()).first;
    UnlessKept unfinished(places_, at);
    values_.Add({std::move(value), &at->first}, weight,
                [&](Keyed& dropped) { places_.erase(places_.find(*dropped.key)); });
    at->second = values_.first();
    unfinished.Keep();
    return at->second->value.value;
  }
  void Erase(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    values_.Erase(found->second);
    places_.erase(found);
  }

  size_t size() const { return values_.size(); }

 private:
  struct Keyed {
    Value value;
    const Key* key;  // in places_
  };
  using Place = typename RecentlyUsedList<Keyed>::Place;
  RecentlyUsedList<Keyed> values_;
  std::map<Key, Place> places_;
};

}  // namespace heddle
