// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace heddle::compiler {

/// A map from names to values whose copies share what none of them has changed. A copy takes no time, and
/// what differs between two copies is found in the time of what was changed in them since. For what is known
/// at the places of a program: most of it is the same in every branch and behind every loop.
///
/// A treap: sorted by name, and a heap by a hash of the name. Its shape follows from its names alone, so what
/// two copies share stands at the same place in both. One thread at a time may use copies of one map.
template <typename Value>
class SharedMap {
 public:
  /// nullptr where the name is not there.
  const Value* Find(std::string_view name) const {
    const Place* place = root_.get();
    while (place != nullptr) {
      const int order = name.compare(place->entry->name);
      if (order == 0) return &place->entry->value;
      place = (order < 0 ? place->left : place->right).get();
    }
    return nullptr;
  }
  bool contains(std::string_view name) const { return Find(name) != nullptr; }
  bool empty() const { return root_ == nullptr; }

  /// The value of the name, to be changed; a new one where the name is not there.
  Value& operator[](std::string_view name) { return Own(&root_, name, std::hash<std::string_view>()(name)); }

  void erase(std::string_view name) {
    if (contains(name)) Erase(&root_, name);
  }

  /// Calls visit(name, value) in the order of the names.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachBelow(root_.get(), visit);
  }

  /// Calls visit(name, mine, theirs) in the order of the names, nullptr for a name that is not there: for all
  /// that are not in both with values that are shared. Neither map may be changed meanwhile.
  template <typename Visit>
  void ForEachDifference(const SharedMap& theirs, const Visit& visit) const {
    Compare(root_, theirs.root_, visit);
  }

 private:
  struct Entry {
    std::string name;
    size_t hash = 0;
    Value value = {};
  };
  struct Place;
  using Tree = std::shared_ptr<Place>;
  struct Place {
    std::shared_ptr<Entry> entry;
    Tree left, right;
  };

  static bool IsAbove(size_t hash, std::string_view name, const Entry& other) {
    return hash != other.hash ? hash > other.hash : name < other.name;
  }

  // A place that no other map has: whoever holds a place holds what is below it, too.
  static Place& Own(Tree* tree) {
    if (tree->use_count() > 1) *tree = std::make_shared<Place>(**tree);
    return **tree;
  }

  static Value& Own(Tree* tree, std::string_view name, size_t hash) {
    while (*tree != nullptr && !IsAbove(hash, name, *(*tree)->entry)) {
      Place& place = Own(tree);
      const int order = name.compare(place.entry->name);
      if (order == 0) {
        if (place.entry.use_count() > 1) place.entry = std::make_shared<Entry>(*place.entry);
        return place.entry->value;
      }
      tree = order < 0 ? &place.left : &place.right;
    }
    auto made = std::make_shared<Place>();
    made->entry = std::make_shared<Entry>();
    made->entry->name = std::string(name);
    made->entry->hash = hash;
    Split(std::move(*tree), name, &made->left, &made->right);
    *tree = std::move(made);
    return (*tree)->entry->value;
  }

  // The names of a tree that come before a name that is not in it, and those that come behind it.
  static void Split(Tree tree, std::string_view name, Tree* before, Tree* behind) {
    if (tree == nullptr) return;
    Place& place = Own(&tree);
    if (place.entry->name < name) {
      Tree right = std::move(place.right);
      Split(std::move(right), name, &place.right, behind);
      *before = std::move(tree);
    } else {
      Tree left = std::move(place.left);
      Split(std::move(left), name, before, &place.left);
      *behind = std::move(tree);
    }
  }

  static Tree Join(Tree before, Tree behind) {
    if (before == nullptr) return behind;
    if (behind == nullptr) return before;
    if (IsAbove(before->entry->hash, before->entry->name, *behind->entry)) {
      Place& place = Own(&before);
      place.right = Join(std::move(place.right), std::move(behind));
      return before;
    }
    Place& place = Own(&behind);
    place.left = Join(std::move(before), std::move(place.left));
    return behind;
  }

  static void Erase(Tree* tree, std::string_view name) {
    Place& place = Own(tree);
    const int order = name.compare(place.entry->name);
    if (order != 0) return Erase(order < 0 ? &place.left : &place.right, name);
    Tree joined = Join(std::move(place.left), std::move(place.right));
    *tree = std::move(joined);
  }

  template <typename Visit>
  static void ForEachBelow(const Place* place, const Visit& visit) {
    if (place == nullptr) return;
    ForEachBelow(place->left.get(), visit);
    visit(place->entry->name, place->entry->value);
    ForEachBelow(place->right.get(), visit);
  }

  template <typename Visit>
  static void Compare(const Tree& mine, const Tree& theirs, const Visit& visit) {
    constexpr const Value* kNone = nullptr;
    if (mine == theirs) return;
    if (theirs == nullptr)
      return ForEachBelow(mine.get(), [&](const auto& name, const Value& x) { visit(name, &x, kNone); });
    if (mine == nullptr)
      return ForEachBelow(theirs.get(), [&](const auto& name, const Value& x) { visit(name, kNone, &x); });
    const Entry &a = *mine->entry, &b = *theirs->entry;
    if (a.name == b.name) {
      Compare(mine->left, theirs->left, visit);
      if (&a != &b) visit(a.name, &a.value, &b.value);
      Compare(mine->right, theirs->right, visit);
      return;
    }
    Tree before, behind;
    if (IsAbove(a.hash, a.name, b)) {
      Split(theirs, a.name, &before, &behind);
      Compare(mine->left, before, visit);
      visit(a.name, &a.value, kNone);
      Compare(mine->right, behind, visit);
    } else {
      Split(mine, b.name, &before, &behind);
      Compare(before, theirs->left, visit);
      visit(b.name, kNone, &b.value);
      Compare(behind, theirs->right, visit);
    }
  }

  Tree root_;
};

}  // namespace heddle::compiler
