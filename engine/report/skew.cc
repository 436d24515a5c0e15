// SPDX-License-Identifier: Apache-2.0
#include "engine/report/skew.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/report/html.h"

namespace heddle::engine {
namespace {

constexpr size_t kMostRows = 12;
constexpr double kLittle = 0.001;  // of the longest run

// What one operator at one place took on each rank.
struct Work {
  std::string name, place;
  std::vector<int64_t> ns;  // by rank

  int64_t most() const { return *std::ranges::max_element(ns); }
  int64_t least() const { return *std::ranges::min_element(ns); }
  int64_t mean() const {
    return std::accumulate(ns.begin(), ns.end(), int64_t{0}) / static_cast<int64_t>(ns.size());
  }
  size_t slowest() const { return static_cast<size_t>(std::ranges::max_element(ns) - ns.begin()); }
  // How much less it would have taken, had all ranks had the same to do.
  int64_t lost() const { return most() - mean(); }
};

std::vector<Work> WorkOf(const RunRecord& record) {
  std::map<std::string, Work> by_key;
  const size_t ranks = record.statistics.size();
  for (size_t rank = 0; rank < ranks; ++rank)
    for (const auto& [key, place] : record.statistics[rank].places) {
      if (place.name.empty()) continue;  // waiting is what skew causes
      Work& work = by_key[key];
      work.name = place.name;
      work.place = place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
      work.ns.resize(ranks);
      work.ns[rank] += place.ns;
    }
  std::vector<Work> all;
  for (auto& [key, work] : by_key) all.push_back(std::move(work));
  std::ranges::stable_sort(all, [](const Work& a, const Work& b) { return a.lost() > b.lost(); });
  return all;
}

std::string Ratio(int64_t most, int64_t mean) {
  return mean == 0 ? "" : fmt::format("{:.2f}", static_cast<double>(most) / static_cast<double>(mean));
}

}  // namespace

std::string SkewSection(const RunRecord& record) {
  if (record.statistics.size() < 2) return "";
  const std::vector<Work> all = WorkOf(record);
  Work busy{"", "", std::vector<int64_t>(record.statistics.size())};
  int64_t elapsed_ns = 0;
  for (const Work& work : all)
    for (size_t rank = 0; rank < work.ns.size(); ++rank) busy.ns[rank] += work.ns[rank];
  for (const SessionStatistics& rank : record.statistics) elapsed_ns = std::max(elapsed_ns, rank.elapsed_ns);
  std::string section = "<section id=\"skew\"><h2>Skew between workers</h2>\n";
  section += fmt::format(
      "<p>Operators took {} on worker {}, which had the most to do, {} on the one that had the least and {} on "
      "average.</p>\n",
      ShortTime(busy.most()), record.statistics[busy.slowest()].rank, ShortTime(busy.least()),
      ShortTime(busy.mean()));
  std::string rows;
  for (size_t i = 0; i < std::min(all.size(), kMostRows); ++i) {
    const Work& work = all[i];
    if (static_cast<double>(work.lost()) < kLittle * static_cast<double>(elapsed_ns)) break;
    rows += fmt::format(
        "<tr><td class=\"name\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td "
        "class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r place\">{}</td></tr>\n",
        EscapeHtml(work.name), ShortTime(work.lost()), ShortTime(work.mean()), ShortTime(work.most()),
        Ratio(work.most(), work.mean()), record.statistics[work.slowest()].rank, EscapeHtml(work.place));
  }
  if (rows.empty())
    return section + "<p class=\"soft\">No operator has kept workers waiting.</p></section>\n";
  return section +
         "<p class=\"soft\">The operators whose time differs the most: all others wait for the worker with the longest.</p>\n"
         "<div class=\"wide\"><table><thead><tr><th>operator</th><th class=\"r\">longest less mean</th><th "
         "class=\"r\">mean</th><th class=\"r\">longest</th><th class=\"r\">ratio</th><th class=\"r\">on "
         "worker</th><th class=\"r\">place</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div></section>\n";
}

std::string RestartsSection(const RunRecord& record) {
  if (record.restarts.empty()) return "";
  std::string rows;
  for (const RunRecord::Restart& restart : record.restarts)
    rows += fmt::format("<tr><td class=\"r\">{}</td><td class=\"r\">{}</td><td>{}</td></tr>\n",
                        restart.attempt, ShortTime(restart.ended_ms * 1'000'000), EscapeHtml(restart.reason));
  return fmt::format(
             "<section id=\"attempts\"><h2>Earlier attempts</h2>\n<p class=\"soft\">This page tells of the last attempt. "
             "Before it the job was started {} time{}.</p>\n",
             record.restarts.size(), record.restarts.size() == 1 ? "" : "s") +
         "<div class=\"wide\"><table><thead><tr><th class=\"r\">attempt</th><th class=\"r\">ended after</th><th>"
         "why</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div></section>\n";
}

}  // namespace heddle::engine
