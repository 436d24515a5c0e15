// SPDX-License-Identifier: Apache-2.0
#include "engine/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/report/html.h"

namespace heddle::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 800;

Json ThreadJson(const RecordedThread& thread, int64_t begin_ns) {
  Json begins = Json::array(), durations = Json::array(), sites = Json::array(), rows = Json::array();
  int64_t before_us = 0;
  for (const RecordedEvent& event : thread.events) {
    const int64_t at_us = (event.begin_ns - begin_ns) / 1000;
    begins.push_back(at_us - before_us);
    before_us = at_us;
    // A tenth of a microsecond is the least that matters, and keeps the numbers short.
    durations.push_back(static_cast<double>(event.duration_ns / 100) / 10);
    sites.push_back(event.site);
    rows.push_back(event.rows);
  }
  return {{"name", thread.name},       {"dropped", thread.dropped}, {"b", std::move(begins)},
          {"d", std::move(durations)}, {"s", std::move(sites)},     {"n", std::move(rows)}};
}

}  // namespace

int64_t BeginOf(const RunRecord& record) {
  int64_t begin_ns = INT64_MAX;
  for (const RankRecord& rank : record.records) begin_ns = std::min(begin_ns, rank.begin_ns);
  return begin_ns == INT64_MAX ? 0 : begin_ns;
}

std::vector<MemoryPoint> MemoryOf(const RankRecord& record) {
  std::vector<MemoryPoint> points;
  for (const RecordedThread& thread : record.threads)
    for (const RecordedEvent& event : thread.events)
      points.push_back({event.begin_ns + event.duration_ns, event.memory_bytes});
  std::ranges::sort(points, {}, &MemoryPoint::at_ns);
  if (points.size() <= kMostPoints) return points;
  std::vector<MemoryPoint> fewer;
  const int64_t begin_ns = points.front().at_ns;
  const int64_t width_ns = (points.back().at_ns - begin_ns) / static_cast<int64_t>(kMostPoints) + 1;
  int64_t part = -1;
  for (const MemoryPoint& point : points) {
    const int64_t own = (point.at_ns - begin_ns) / width_ns;
    if (own != part)
      fewer.push_back(point);
    else if (point.bytes > fewer.back().bytes)
      fewer.back() = point;
    part = own;
  }
  return fewer;
}

std::string ChartsJson(const RunRecord& record) {
  const int64_t begin_ns = BeginOf(record);
  int64_t elapsed_ns = 0;
  for (const SessionStatistics& rank : record.statistics) elapsed_ns = std::max(elapsed_ns, rank.elapsed_ns);
  Json json;
  json["elapsed"] = static_cast<double>(elapsed_ns) / 1e9;
  json["ranks"] = Json::array();
  for (const RankRecord& rank : record.records) {
    Json own = {{"rank", rank.rank}, {"limit", rank.limit_bytes}};
    for (const MemoryPoint& point : MemoryOf(rank)) {
      own["memory"]["t"].push_back(static_cast<double>((point.at_ns - begin_ns) / 1000) / 1e6);
      own["memory"]["b"].push_back(point.bytes);
    }
    own["sites"] = Json::array();
    for (const RecordedSite& site : rank.sites)
      own["sites"].push_back({site.name, Name(site.kind),
                              site.line > 0 ? fmt::format("{}:{}", site.file, site.line) : site.file,
                              site.stream});
    own["threads"] = Json::array();
    for (const RecordedThread& thread : rank.threads) own["threads"].push_back(ThreadJson(thread, begin_ns));
    json["ranks"].push_back(std::move(own));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string MemoryPicture(const RunRecord& record) {
  constexpr double kWidth = 760, kHeight = 160, kLeft = 4, kTop = 8;
  std::string lines;
  int64_t most_bytes = 1, end_ns = 1;
  const int64_t begin_ns = BeginOf(record);
  std::vector<std::vector<MemoryPoint>> ranks;
  for (const RankRecord& rank : record.records) {
    ranks.push_back(MemoryOf(rank));
    for (const MemoryPoint& point : ranks.back()) {
      most_bytes = std::max(most_bytes, point.bytes);
      end_ns = std::max(end_ns, point.at_ns - begin_ns);
    }
  }
  for (const std::vector<MemoryPoint>& points : ranks) {
    if (points.empty()) continue;
    std::string way;
    for (const MemoryPoint& point : points) {
      const double x = kLeft + (kWidth - 2 * kLeft) * static_cast<double>(point.at_ns - begin_ns) /
                                   static_cast<double>(end_ns);
      const double y =
          kHeight - (kHeight - kTop) * static_cast<double>(point.bytes) / static_cast<double>(most_bytes);
      way += fmt::format("{}{:.1f},{:.1f}", way.empty() ? "" : " ", x, y);
    }
    lines += fmt::format("<polyline class=\"memory\" points=\"{}\"/>", way);
  }
  if (lines.empty()) return "";
  return fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"Memory over time, at most {2}\">"
      "<line class=\"axis\" x1=\"0\" y1=\"{1}\" x2=\"{0}\" y2=\"{1}\"/>{3}</svg>",
      kWidth, kHeight + 1, ShortBytes(most_bytes), lines);
}

}  // namespace heddle::engine
