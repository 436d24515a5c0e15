// SPDX-License-Identifier: Apache-2.0
#include "tests/scripts/recursion_structures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

template <typename T>
void Shuffle(fuzz::Chooser& choose, std::vector<T>* values) {
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[choose.Below(i)]);
}

}  // namespace

RandomStructure::RandomStructure(fuzz::Chooser& choose) {
  Make(choose);
  std::vector<size_t> place(children.size());
  std::iota(place.begin(), place.end(), size_t{0});
  if (choose.Chance(70)) Shuffle(choose, &place);
  std::vector<std::vector<size_t>> moved(children.size());
  std::vector<bool> has_parent(children.size(), false);
  for (size_t node = 0; node < children.size(); ++node)
    for (const size_t child : children[node]) {
      moved[place[node]].push_back(place[child]);
      has_parent[place[child]] = true;
    }
  children = std::move(moved);
  for (size_t node = 0; node < children.size(); ++node)
    if (!has_parent[node]) roots.push_back(node);
  if (choose.Chance(30))
    for (int64_t more = choose.Between(1, 4); more > 0; --more)
      roots.push_back(choose.Below(children.size()));
  Shuffle(choose, &roots);
}

void RandomStructure::Make(fuzz::Chooser& choose) {
  const auto size = [&](int64_t low, int64_t high) { return static_cast<size_t>(choose.Between(low, high)); };
  switch (choose.Below(10)) {
    case 0: children = {{}}; break;
    case 1:  // a chain
      children = {{}};
      for (size_t n = size(1, 30); n > 0; --n) children.push_back({children.size() - 1});
      break;
    case 2:  // a comb
      children = {{}};
      for (size_t n = size(2, 15); n > 0; --n) {
        const size_t top = children.size() - 1;
        children.push_back({});
        children.push_back({top, top + 1});
        if (choose.Chance(50)) std::swap(children.back()[0], children.back()[1]);
      }
      break;
    case 3: {  // a grid
      const size_t height = size(2, 4), width = size(2, 4);
      for (size_t i = 0; i < height; ++i)
        for (size_t j = 0; j < width; ++j) {
          children.emplace_back();
          if (i > 0) children.back().push_back((i - 1) * width + j);
          if (j > 0) children.back().push_back(i * width + j - 1);
        }
      break;
    }
    case 4: {  // shared nodes
      std::vector<size_t> ways;
      for (size_t n = size(3, 16); n > 0; --n) {
        std::vector<size_t> given;
        size_t of_node = 1;
        for (size_t i = ways.empty() ? 0 : choose.Below(4); i > 0; --i) {
          const size_t child = choose.Below(ways.size());
          if (of_node + ways[child] > 300) continue;
          given.push_back(child);
          of_node += ways[child];
        }
        children.push_back(std::move(given));
        ways.push_back(of_node);
      }
      break;
    }
    case 5:  // a node with many children
      children.resize(size(1, 12));
      children.emplace_back(children.size());
      std::iota(children.back().begin(), children.back().end(), size_t{0});
      break;
    case 6:  // the same child twice
      children = {{}};
      for (size_t n = size(1, 6); n > 0; --n) children.push_back({children.size() - 1, children.size() - 1});
      break;
    case 7: return Join(choose, size(2, 20), 1);
    case 8: return Join(choose, size(4, 20), 4);
    default: return Join(choose, size(60, 90), 40);  // many roots, and batches of many rows
  }
}

// Neighbours become children of a new node until few are left.
void RandomStructure::Join(fuzz::Chooser& choose, size_t leaves, size_t most_roots) {
  children.resize(leaves);
  std::vector<size_t> open(leaves);
  std::iota(open.begin(), open.end(), size_t{0});
  const size_t arity = 2 + choose.Below(3);
  while (open.size() > most_roots) {
    const size_t count = std::min(open.size(), choose.Chance(10) ? 1 : choose.Chance(30) ? 2 : arity);
    const auto first = open.begin() + static_cast<std::ptrdiff_t>(choose.Below(open.size() - count + 1));
    children.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    *first = children.size() - 1;
    open.erase(first + 1, first + static_cast<std::ptrdiff_t>(count));
  }
}

std::string RandomStructure::Matrix(fuzz::Chooser& choose, int64_t tokens) const {
  std::vector<std::vector<double>> cells;
  std::vector<double> listed;
  const auto child = [](const std::vector<size_t>& of, size_t i) {
    return i < of.size() ? static_cast<double>(of[i] + 1) : 0.0;
  };
  const std::vector<double> numbers = {0, 1, -0.5, 2.25, 0.125, 3};
  for (const std::vector<size_t>& of : children) {
    const auto before = static_cast<double>(listed.size());
    for (size_t i = 0; i < of.size(); ++i) listed.push_back(child(of, i));
    const bool has_token = of.empty() || choose.Chance(60);
    cells.push_back({child(of, 0), child(of, 1),
                     has_token ? static_cast<double>(choose.Between(1, tokens)) : 0, before + 1,
                     static_cast<double>(listed.size()), 0, static_cast<double>(choose.Below(3)),
                     choose.Pick(numbers)});
  }
  while (cells.size() < listed.size()) cells.push_back({0, 0, 1, 1, 0, 0, 0, 0});
  for (size_t i = 0; i < listed.size(); ++i) cells[i][5] = listed[i];
  return MatrixText(cells);
}

int64_t RandomStructure::rows() const {
  size_t listed = 0;
  for (const std::vector<size_t>& of : children) listed += of.size();
  return static_cast<int64_t>(std::max(listed, children.size()));
}

std::string RandomStructure::Roots() const {
  std::vector<std::vector<double>> column;
  for (const size_t root : roots) column.push_back({static_cast<double>(root + 1)});
  return MatrixText(column);
}

std::string MatrixText(const std::vector<std::vector<double>>& rows) {
  std::string cells;
  for (const std::vector<double>& row : rows)
    for (const double cell : row) cells += fmt::format("{}{}", cells.empty() ? "" : " ", cell);
  return fmt::format("matrix(\"{}\", {}, {})", cells, rows.size(), rows[0].size());
}

}  // namespace heddle
