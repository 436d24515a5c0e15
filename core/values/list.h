// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/scalar.h"

namespace heddle {

/// Elements of a list that an index picks: [begin, end).
struct ListRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

/// The elements from:to of a list with these names (none: the list has no names) and `count` elements. A
/// string is a name, of equal ones the last; a number is a position from 1. kFailedPrecondition for what the
/// list does not have.
Result<ListRange> FindInList(const std::vector<std::string>& names, size_t count, const Scalar& from,
                             const Scalar& to);

/// What append() says when an element without a name meets a list with names.
Status AppendWithoutName();

/// Lists inside each other; more is an error of the script. Bounds every recursion over lists.
constexpr int kMostNestedLists = 500;
Status NestedTooDeep();

/// A list of the language (language reference 2.2, 2.7, 3.8): elements in order, all with names or none. The
/// compiler knows lists of what it knows of variables, a session has lists of variables; what the operations
/// mean is said once, here. `Element` is a value type whose member `list` points to a list that it is, or to
/// nothing.
template <typename Element>
struct ListOf {
  std::vector<std::string> names;  ///< One each, or empty.
  std::vector<Element> elements;
  int depth = 1;  ///< Lists inside each other, this one included, at most.

  size_t size() const { return elements.size(); }

  /// Fails, and so do those below, when lists are nested too deep; the list is then not to be used.
  Status Add(std::string name, Element element) {
    HEDDLE_RETURN_IF_ERROR(Deepen(element));
    // A list is named if all its elements are.
    if (!name.empty() && names.size() == elements.size()) {
      names.push_back(std::move(name));
    } else {
      names.clear();
    }
    elements.push_back(std::move(element));
    return OkStatus();
  }

  ListOf Slice(const ListRange& range) const {
    ListOf slice;
    const auto begin = static_cast<std::ptrdiff_t>(range.begin), end = static_cast<std::ptrdiff_t>(range.end);
    slice.elements.assign(elements.begin() + begin, elements.begin() + end);
    if (!names.empty()) slice.names.assign(names.begin() + begin, names.begin() + end);
    for (const Element& element : slice.elements) slice.depth = std::max(slice.depth, 1 + DepthOf(element));
    return slice;
  }

  /// list[range] = value. A list gives its elements, one for each place, and with them their names where both
  /// lists have some; anything else goes to the first place.
  Status Replace(const ListRange& range, Element value) {
    if (value.list == nullptr) {
      elements[range.begin] = std::move(value);
      return OkStatus();
    }
    const auto given = value.list;  // keeps the elements alive
    if (given->size() != range.size())
      return FailedPrecondition("the list that is assigned has another number of elements: {} instead of {}",
                                given->size(), range.size());
    for (size_t i = 0; i < range.size(); ++i) {
      HEDDLE_RETURN_IF_ERROR(Deepen(given->elements[i]));
      elements[range.begin + i] = given->elements[i];
      if (!names.empty() && !given->names.empty()) names[range.begin + i] = given->names[i];
    }
    return OkStatus();
  }

  /// append(list, value): a list of one element adds that element under its name, other lists are nested.
  Status Append(Element value) {
    const bool is_single = value.list != nullptr && value.list->size() == 1;
    const std::string name = is_single && !value.list->names.empty() ? value.list->names[0] : std::string();
    const bool has_names = !names.empty();
    if (has_names && name.empty()) return AppendWithoutName();
    Element added = is_single ? Element(value.list->elements[0]) : std::move(value);
    HEDDLE_RETURN_IF_ERROR(Deepen(added));
    elements.push_back(std::move(added));
    if (has_names) names.push_back(name);
    return OkStatus();
  }

  void Erase(const ListRange& range) {
    const auto begin = static_cast<std::ptrdiff_t>(range.begin), end = static_cast<std::ptrdiff_t>(range.end);
    elements.erase(elements.begin() + begin, elements.begin() + end);
    if (!names.empty()) names.erase(names.begin() + begin, names.begin() + end);
  }

 private:
  static int DepthOf(const Element& element) { return element.list == nullptr ? 0 : element.list->depth; }
  Status Deepen(const Element& element) {
    depth = std::max(depth, 1 + DepthOf(element));
    return depth <= kMostNestedLists ? OkStatus() : NestedTooDeep();
  }
};

}  // namespace heddle
