// SPDX-License-Identifier: Apache-2.0
#include "engine/report/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "engine/report/html.h"

namespace heddle::engine {
namespace {

constexpr double kLetter = 6.9, kLineHeight = 15, kPadding = 8, kGapX = 18, kGapY = 34;
constexpr double kWidthOfPassing = 6;  // What an edge takes in a layer that it passes.
constexpr size_t kMostLetters = 34, kMostLines = 8;
constexpr int kSweeps = 8;
constexpr int kShades = 5;
constexpr double kLittle = 0.001;  // A smaller share of the time has no shade.

// A box, or the place where an edge passes a layer.
struct Item {
  int32_t node = -1;  // In the plan; -1: an edge passes.
  int layer = 0;
  std::vector<std::string> lines;
  double width = kWidthOfPassing, height = 0;
  double x = 0, y = 0;  // Of its middle, of its top.
  std::vector<size_t> above, below;
  double order = 0;
};

std::string Cut(std::string text) {
  if (text.size() <= kMostLetters) return text;
  size_t end = kMostLetters - 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a letter
  return text.substr(0, end) + "..";
}

std::vector<std::string> LinesOf(const PlanNodeRecord& node) {
  std::vector<std::string> lines = {Cut(node.name)};
  std::string facts = node.shape;
  if (node.ns > 0) facts += (facts.empty() ? "" : ", ") + ShortTime(node.ns);
  if (node.acts > 1) facts += fmt::format(", {} times", node.acts);
  if (!facts.empty()) lines.push_back(Cut(facts));
  std::string_view body = node.body;
  size_t more = 0;
  while (!body.empty()) {
    const size_t end = std::min(body.find('\n'), body.size());
    std::string line(body.substr(0, end));
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    if (lines.size() < kMostLines)
      lines.push_back(Cut(std::move(line)));
    else
      ++more;
  }
  if (more > 0) lines.push_back(fmt::format("and {} more", more));
  return lines;
}

// The layout: layers by the longest way from the top, edges that pass a layer have a place in it, and the
// order within layers is that of what they are joined with, again and again.
class Layout {
 public:
  explicit Layout(const PlanRecord& plan) : plan_(plan) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) AddBox(i);
    LowerSources();
    for (size_t i = 0; i < plan.nodes.size(); ++i) AddEdges(i);
    Sort();
    Place();
  }

  const std::vector<Item>& items() const { return items_; }
  double width() const { return width_; }
  double height() const { return height_; }

 private:
  void AddBox(size_t number) {
    const PlanNodeRecord& node = plan_.nodes[number];
    Item item;
    item.node = static_cast<int32_t>(number);
    for (const int32_t input : node.inputs)
      item.layer = std::max(item.layer, items_[static_cast<size_t>(input)].layer + 1);
    item.lines = LinesOf(node);
    size_t longest = 0;
    for (const std::string& line : item.lines) longest = std::max(longest, line.size());
    item.width = std::max(48.0, static_cast<double>(longest) * kLetter + 2 * kPadding);
    item.height = static_cast<double>(item.lines.size()) * kLineHeight + kPadding;
    items_.push_back(std::move(item));
  }

  // What reads nothing stands above its first reader, not all at the top.
  void LowerSources() {
    std::vector<int> highest(items_.size(), -1);
    for (size_t i = 0; i < plan_.nodes.size(); ++i)
      for (const int32_t input : plan_.nodes[i].inputs) {
        int& layer = highest[static_cast<size_t>(input)];
        if (layer < 0 || items_[i].layer < layer) layer = items_[i].layer;
      }
    for (size_t i = 0; i < items_.size(); ++i)
      if (plan_.nodes[i].inputs.empty() && highest[i] > 0) items_[i].layer = highest[i] - 1;
  }

  void AddEdges(size_t number) {
    std::vector<int32_t> inputs = plan_.nodes[number].inputs;
    std::ranges::sort(inputs);
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const int32_t input : inputs) {
      auto from = static_cast<size_t>(input);
      for (int layer = items_[from].layer + 1; layer < items_[number].layer; ++layer) {
        items_.push_back({.layer = layer});
        Join(from, items_.size() - 1);
        from = items_.size() - 1;
      }
      Join(from, number);
    }
  }

  void Join(size_t above, size_t below) {
    items_[above].below.push_back(below);
    items_[below].above.push_back(above);
  }

  void Sort() {
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto layer = static_cast<size_t>(items_[i].layer);
      if (layers_.size() <= layer) layers_.resize(layer + 1);
      items_[i].order = static_cast<double>(layers_[layer].size());
      layers_[layer].push_back(i);
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t at = 0; at < layers_.size(); ++at)
        SortLayer(down ? at : layers_.size() - 1 - at, down ? &Item::above : &Item::below);
    }
  }

  void SortLayer(size_t number, std::vector<size_t> Item::*joined) {
    std::vector<size_t>& layer = layers_[number];
    std::vector<double> middles(items_.size());
    for (const size_t i : layer) {
      const std::vector<size_t>& others = items_[i].*joined;
      middles[i] = items_[i].order;
      if (others.empty()) continue;
      double sum = 0;
      for (const size_t other : others) sum += items_[other].order;
      middles[i] = sum / static_cast<double>(others.size());
    }
    std::ranges::stable_sort(layer, [&](size_t a, size_t b) { return middles[a] < middles[b]; });
    for (size_t i = 0; i < layer.size(); ++i) items_[layer[i]].order = static_cast<double>(i);
  }

  void Place() {
    std::vector<double> widths;
    for (const std::vector<size_t>& layer : layers_) {
      double width = -kGapX;
      for (const size_t i : layer) width += items_[i].width + kGapX;
      widths.push_back(width);
    }
    width_ = (widths.empty() ? 0 : *std::ranges::max_element(widths)) + 2 * kPadding;
    double y = kPadding;
    for (size_t at = 0; at < layers_.size(); ++at) {
      double x = (width_ - widths[at]) / 2, height = 0;
      for (const size_t i : layers_[at]) {
        items_[i].x = x + items_[i].width / 2;
        items_[i].y = y;
        x += items_[i].width + kGapX;
        height = std::max(height, items_[i].height);
      }
      for (const size_t i : layers_[at])
        if (items_[i].node < 0) items_[i].height = height;
      y += height + kGapY;
    }
    height_ = y - kGapY + kPadding;
  }

  const PlanRecord& plan_;
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> layers_;
  double width_ = 0, height_ = 0;
};

std::string Edge(const Item& from, const Item& to) {
  const double begin = from.y + from.height, middle = (begin + to.y) / 2;
  std::string way = fmt::format("M{0:.1f},{1:.1f}C{0:.1f},{2:.1f} {3:.1f},{2:.1f} {3:.1f},{4:.1f}", from.x,
                                begin, middle, to.x, to.y);
  if (to.node < 0) way += fmt::format("V{:.1f}", to.y + to.height);
  return fmt::format("<path class=\"edge\" d=\"{}\"{}/>", way,
                     to.node < 0 ? "" : " marker-end=\"url(#tip)\"");
}

std::string Box(const Item& item, const PlanNodeRecord& node, double share) {
  const int shade =
      share < kLittle ? 0 : std::clamp(static_cast<int>(std::ceil(share * (kShades - 1))), 1, kShades - 1);
  std::string title = node.name;
  if (!node.place.empty()) title += " at " + node.place;
  if (!node.body.empty()) title += "\n" + node.body;
  std::string out = fmt::format(
      "<g class=\"{} h{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "rx=\"4\"/>",
      node.body.empty() ? "op" : "op fused", shade, EscapeHtml(title), item.x - item.width / 2, item.y,
      item.width, item.height);
  for (size_t i = 0; i < item.lines.size(); ++i)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" xml:space=\"preserve\">{}</text>",
                       item.x - item.width / 2 + kPadding, item.y + kLineHeight * static_cast<double>(i + 1),
                       i == 0   ? "name"
                       : i == 1 ? "fact"
                                : "body",
                       EscapeHtml(item.lines[i]));
  return out + "</g>";
}

}  // namespace

std::string PlanPicture(const PlanRecord& plan) {
  if (plan.nodes.empty() || plan.nodes.size() > kMostInPicture) return "";
  const Layout layout(plan);
  int64_t all_ns = 0;
  for (const PlanNodeRecord& node : plan.nodes) all_ns += node.ns;
  std::string edges, boxes;
  for (const Item& item : layout.items()) {
    for (const size_t below : item.below) edges += Edge(item, layout.items()[below]);
    if (item.node < 0) continue;
    const PlanNodeRecord& node = plan.nodes[static_cast<size_t>(item.node)];
    boxes += Box(item, node, all_ns == 0 ? 0.0 : static_cast<double>(node.ns) / static_cast<double>(all_ns));
  }
  return fmt::format(
      "<svg class=\"plan\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
      "aria-label=\"Plan of {2} operators\">{3}{4}</svg>",
      layout.width(), layout.height(), plan.nodes.size(), edges, boxes);
}

}  // namespace heddle::engine
