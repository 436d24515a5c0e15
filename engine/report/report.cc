// SPDX-License-Identifier: Apache-2.0
#include "engine/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/report/charts.h"
#include "engine/report/html.h"
#include "engine/report/line_times.h"
#include "engine/report/page_parts.h"
#include "engine/report/plan_picture.h"
#include "engine/report/skew.h"

namespace heddle::engine {
namespace {

std::string TextOf(std::span<const PagePart> parts, std::string_view path) {
  for (const PagePart& part : parts)
    if (part.path == path) return std::string(part.text);
  return "";
}

constexpr size_t kMostPlaces = 40, kFewPlaces = 8, kMostPlans = 12, kMostOperators = 60;
constexpr int kLinesAround = 2;           // Of a line with time, in a file of which a part is shown.
constexpr size_t kMostWholeLines = 2000;  // A script of more is shown in parts as well.
constexpr size_t kMostOfLine = 400;
constexpr double kLittle = 0.001;  // A smaller share of the time is shown as none.

std::string Milliseconds(int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }

std::string Code(const std::string& text) { return "<code>" + EscapeHtml(text) + "</code>"; }

std::string Row(const std::vector<std::string>& cells, std::string_view kind = "td") {
  std::string row = "<tr>";
  // The first cell is a name, the others are numbers.
  for (size_t i = 0; i < cells.size(); ++i)
    row += fmt::format("<{0} class=\"{1}\">{2}</{0}>", kind, i == 0 ? "name" : "r", cells[i]);
  return row + "</tr>\n";
}

std::string Table(const std::vector<std::string>& heads, const std::string& rows) {
  return "<div class=\"wide\"><table><thead>" + Row(heads, "th") + "</thead><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

std::string Bar(double share) {
  return fmt::format("<td class=\"bar\"><span style=\"width:{:.0f}%\"></span></td>",
                     std::clamp(share, 0.0, 1.0) * 100);
}

std::string PlaceOf(const std::string& file, int32_t line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

// A page, section by section.
class Page {
 public:
  explicit Page(const RunRecord& record) : record_(record), times_(TimesOf(record)) {}

  std::string Make() const {
    std::string page =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
        EscapeHtml(record_.script) + ": what took the time</title>\n<style>" +
        TextOf(ChartParts(), "uPlot.min.css") + "\n" + TextOf(PageParts(), "report.css") +
        "</style></head>\n<body><main>\n";
    page += Head() + Program() + Operators() + Threads() + Memory() + SkewSection(record_) +
            RestartsSection(record_) + Plans() + Statistics();
    page += "</main>\n<script type=\"application/json\" id=\"data\">" + EscapeForScript(ChartsJson(record_)) +
            "</script>\n<script>" + TextOf(ChartParts(), "uPlot.iife.min.js") + "</script>\n<script>" +
            TextOf(PageParts(), "report.js") + "</script>\n</body></html>\n";
    return page;
  }

 private:
  double Share(int64_t ns) const {
    return times_.all_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(times_.all_ns);
  }

  // 0 to 4, by share.
  int Shade(int64_t ns) const {
    const double share = Share(ns);
    return share < kLittle ? 0 : share < 0.05 ? 1 : share < 0.2 ? 2 : share < 0.5 ? 3 : 4;
  }

  int64_t ElapsedNs() const {
    int64_t elapsed_ns = 0;
    for (const SessionStatistics& rank : record_.statistics)
      elapsed_ns = std::max(elapsed_ns, rank.elapsed_ns);
    return elapsed_ns;
  }

  int64_t Dropped() const {
    int64_t dropped = 0;
    for (const RankRecord& rank : record_.records)
      for (const RecordedThread& thread : rank.threads) dropped += thread.dropped;
    return dropped;
  }

  // "one process with 2 threads", "3 workers with 1 thread each"
  std::string Processes() const {
    std::string text = record_.ranks == 1 ? "one process" : fmt::format("{} workers", record_.ranks);
    if (record_.threads > 0)
      text += fmt::format(" with {} thread{}{}", record_.threads, record_.threads == 1 ? "" : "s",
                          record_.ranks == 1 ? "" : " each");
    return text;
  }

  std::string Head() const {
    std::string head = "<header><p class=\"lead\">" + FirstSentence(record_, times_, Code) + "</p>\n";
    if (!record_.error.empty()) head += "<p class=\"error\">" + EscapeHtml(record_.error) + "</p>\n";
    int64_t peak = 0, limit = 0;
    for (const SessionStatistics& rank : record_.statistics) peak = std::max(peak, rank.peak_bytes);
    for (const RankRecord& rank : record_.records) limit = std::max(limit, rank.limit_bytes);
    head += fmt::format("<p class=\"facts\">{}: {} in {}, matrices of {} at most", Code(record_.script),
                        ShortTime(ElapsedNs()), Processes(), ShortBytes(peak));
    if (limit > 0) head += fmt::format(", {} promised", ShortBytes(limit));
    head += fmt::format(", {} of it making plans, fusion {}.</p>\n", Percent(Share(times_.planning_ns)),
                        EscapeHtml(record_.fusion));
    const std::string more = std::string(record_.statistics.size() > 1 ? "<a href=\"#skew\">skew</a>" : "") +
                             (record_.restarts.empty() ? "" : "<a href=\"#attempts\">attempts</a>");
    return head +
           "<nav><a href=\"#program\">program</a><a href=\"#operators\">operators</a><a href=\"#threads\">threads</a>"
           "<a href=\"#held\">memory</a>" +
           more +
           "<a href=\"#plans\">plans</a><a href=\"#statistics\">statistics</a></nav></header>\n"
           "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs><marker id=\"tip\" viewBox=\"0 0 8 8\" "
           "refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 8,4 0,8z\"/></marker></defs></svg>\n";
  }

  // --- the program ---

  std::string Program() const {
    std::string section =
        "<section id=\"program\"><h2>The program, line by line</h2>\n<p class=\"soft\">How much of the time each line took, with the "
        "functions that it calls, and by itself.</p>\n";
    section += File(record_.script, /*is_whole=*/true);
    std::vector<std::pair<int64_t, std::string>> others;
    for (const auto& [file, lines] : times_.files) {
      int64_t own_ns = 0;
      for (const auto& [line, time] : lines) own_ns += time.own_ns;
      if (file != record_.script && record_.sources.contains(file) && Share(own_ns) >= kLittle)
        others.emplace_back(own_ns, file);
    }
    std::ranges::sort(others, std::greater<>());
    for (const auto& [own_ns, file] : others)
      section += fmt::format("<details{}><summary>{}: {}</summary>{}</details>\n",
                             Share(own_ns) > 0.1 ? " open" : "", EscapeHtml(file), Percent(Share(own_ns)),
                             File(file, /*is_whole=*/false));
    return section + "</section>\n";
  }

  std::string File(const std::string& file, bool is_whole) const {
    const auto source = record_.sources.find(file);
    if (source == record_.sources.end()) return "";
    const auto found = times_.files.find(file);
    static const std::map<int32_t, LineTime> kNone;
    const std::map<int32_t, LineTime>& times = found == times_.files.end() ? kNone : found->second;
    const std::string& text = source->second;
    is_whole &= std::ranges::count(text, '\n') <= static_cast<std::ptrdiff_t>(kMostWholeLines);
    std::string rows;
    bool is_in_gap = false;
    std::string_view rest = text;
    for (int32_t line = 1; !rest.empty(); ++line) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view content = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (is_whole || IsNearTime(times, line)) {
        rows += Line(times, line, content);
        is_in_gap = false;
      } else if (!std::exchange(is_in_gap, true)) {
        rows +=
            "<tr class=\"gap\"><td class=\"r\"></td><td class=\"r own\"></td><td class=\"r\">...</td><td class=\"c\"></td></tr>\n";
      }
    }
    return "<div class=\"wide\"><table class=\"code\"><thead><tr><th class=\"r\">time</th><th class=\"r own\">itself</th><th class=\"r\">"
           "line</th><th></th></tr></thead><tbody>\n" +
           rows + "</tbody></table></div>\n";
  }

  bool IsNearTime(const std::map<int32_t, LineTime>& times, int32_t line) const {
    for (auto near = times.lower_bound(line - kLinesAround);
         near != times.end() && near->first <= line + kLinesAround; ++near)
      if (Share(near->second.total_ns) >= kLittle) return true;
    return false;
  }

  std::string Line(const std::map<int32_t, LineTime>& times, int32_t line, std::string_view content) const {
    const auto found = times.find(line);
    const LineTime time = found == times.end() ? LineTime() : found->second;
    const auto cell = [&](int64_t ns) { return Share(ns) < kLittle ? "" : Percent(Share(ns)); };
    std::string text(content.substr(0, kMostOfLine));
    if (text.size() < content.size()) text += "...";
    const std::string title = time.total_ns > 0
                                  ? fmt::format(" title=\"{}, itself {}, {} operators\"",
                                                ShortTime(time.total_ns), ShortTime(time.own_ns), time.acts)
                                  : "";
    return fmt::format(
        "<tr class=\"h{}\"{}><td class=\"r\">{}</td><td class=\"r own\">{}</td><td class=\"r\">{}</td><td class=\"c\">{}</td></tr>\n",
        Shade(time.total_ns), title, cell(time.total_ns), cell(time.own_ns), line, EscapeHtml(text));
  }

  // --- operators by place, and what the machine can do ---

  std::string Operators() const {
    std::map<std::pair<std::string, std::string>, PlaceStatistics> by_place;
    for (const SessionStatistics& rank : record_.statistics)
      for (const auto& [key, place] : rank.places) {
        const std::string name = place.name.empty() ? "between operators" : place.name;
        PlaceStatistics& sum = by_place[{name, PlaceOf(place.file, place.line)}];
        sum.acts += place.acts;
        sum.ns += place.ns;
        sum.bytes += place.bytes;
      }
    std::vector<std::pair<std::pair<std::string, std::string>, PlaceStatistics>> sorted(by_place.begin(),
                                                                                        by_place.end());
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    if (sorted.size() > kMostPlaces) sorted.resize(kMostPlaces);
    while (sorted.size() > kFewPlaces && Share(sorted.back().second.ns) < kLittle) sorted.pop_back();
    std::string section = "<section id=\"operators\"><h2>Operators</h2>\n" + Machine();
    std::string rows;
    for (const auto& [name_and_place, sum] : sorted) {
      if (sum.ns == 0) continue;
      const auto& [name, place] = name_and_place;
      const double rate = static_cast<double>(sum.bytes) / static_cast<double>(sum.ns);
      rows += fmt::format(
          "<tr><td class=\"name\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td>{}<td class=\"r\">{}</td>"
          "<td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r place\">{}</td></tr>\n",
          EscapeHtml(name), ShortTime(sum.ns), Percent(Share(sum.ns)), Bar(Share(sum.ns)), sum.acts,
          sum.bytes == 0 ? "" : ShortBytes(sum.bytes), sum.bytes == 0 ? "" : fmt::format("{:.2f}", rate),
          EscapeHtml(place));
    }
    section +=
        "<div class=\"wide\"><table><thead><tr><th>operator</th><th class=\"r\">time</th><th class=\"r\">share</th><th class=\"bar\">"
        "</th><th class=\"r\">count</th><th class=\"r\">bytes</th><th class=\"r\">GB/s</th><th class=\"r\">place</th></tr></thead><tbody>\n" +
        rows + "</tbody></table></div>\n";
    return section +
           "<p class=\"soft\">Bytes are those of dense operands and results. What runs between operators is scalar arithmetic, control "
           "flow, and waiting for other workers.</p></section>\n";
  }

  std::string Machine() const {
    if (record_.statistics.empty()) return "";
    const ops::MachineConstants& constants = record_.statistics.front().constants;
    return fmt::format(
        "<p>This machine reads {:.0f} GB/s, writes {:.0f} GB/s and computes {:.0f} billion operations a second with the threads "
        "of a worker ({}): an operator near these rates can only become faster by moving less.</p>\n",
        constants.read_bytes_per_ns, constants.write_bytes_per_ns, constants.work_per_ns,
        constants.measured ? "as measured on it" : "built-in figures, as it was not measured yet");
  }

  // --- threads and memory ---

  std::string Threads() const {
    std::string rows;
    for (const RankRecord& rank : record_.records)
      for (const RecordedThread& thread : rank.threads) {
        int64_t busy_ns = 0;
        for (const RecordedEvent& event : thread.events)
          if (rank.sites[event.site].kind == RecordedKind::kOperator) busy_ns += event.duration_ns;
        rows += Row(
            {EscapeHtml(record_.ranks > 1 ? fmt::format("worker {} {}", rank.rank, thread.name)
                                          : thread.name),
             std::to_string(thread.events.size()), ShortTime(busy_ns),
             Percent(ElapsedNs() == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(ElapsedNs())),
             std::to_string(thread.dropped)});
      }
    std::string section =
        "<section id=\"threads\"><h2>Threads and streams</h2>\n<p class=\"soft\"><span style=\"color:#d98032\">&#9632;</span> operators "
        "<span style=\"color:#7a5fc0\">&#9632;</span> copies <span style=\"color:#4b9a5b\">&#9632;</span> making plans "
        "<span style=\"color:#7d8891\">&#9632;</span> calls <span style=\"color:#a9b1b8\">&#9632;</span> loops"
        "<span class=\"on-screen\" hidden>. Drag to look closer, double-click to see all.</span></p>\n"
        "<div class=\"timeline\" id=\"timeline\"></div><p class=\"hint\" id=\"timeline-hint\"></p>\n";
    if (Dropped() > 0)
      section += fmt::format(
          "<p class=\"soft\">{} short events are left out: a thread keeps its longest ones.</p>\n",
          Dropped());
    return section + "<div class=\"still\">" +
           Table({"thread", "events", "in operators", "of the time", "left out"}, rows) +
           "</div></section>\n";
  }

  std::string Memory() const {
    std::string section = "<section id=\"held\"><h2>Memory</h2>\n";
    std::string rows;
    for (const RankRecord& rank : record_.records) {
      int64_t most = 0;
      for (const MemoryPoint& point : MemoryOf(rank)) most = std::max(most, point.bytes);
      int64_t planned = 0;
      for (const PlanRecord& plan : rank.plans) planned = std::max(planned, plan.promised_bytes);
      rows += Row({fmt::format("worker {}", rank.rank), ShortBytes(most), ShortBytes(planned),
                   rank.limit_bytes > 0 ? ShortBytes(rank.limit_bytes) : "no limit"});
    }
    section += Table({"process", "held at most", "largest plan", "promised at most"}, rows);
    return section + "<div class=\"timeline\" id=\"memory\"></div>\n<div class=\"still\">" +
           MemoryPicture(record_) + "</div></section>\n";
  }

  // --- plans ---

  std::string Plans() const {
    std::string section = "<section id=\"plans\"><h2>Plans</h2>\n";
    if (record_.records.empty() || record_.records.front().plans.empty())
      return section + "<p>Everything was small enough to run without a plan.</p></section>\n";
    // Those of the first worker: the others run the same ones.
    const RankRecord& rank = record_.records.front();
    std::vector<const PlanRecord*> plans;
    for (const PlanRecord& plan : rank.plans) plans.push_back(&plan);
    std::ranges::stable_sort(plans, [](const auto* a, const auto* b) { return a->ns > b->ns; });
    const size_t all = plans.size() + static_cast<size_t>(rank.plans_left_out);
    if (plans.size() > kMostPlans) plans.resize(kMostPlans);
    section += fmt::format(
        "<p class=\"soft\">The {} of {} plans that took the longest. Operators stand below what they read; those with a thick "
        "frame are fused, with what is in them; dark ones took the time.</p>\n",
        plans.size(), all);
    for (const PlanRecord* plan : plans) section += PlanSection(*plan, plan == plans.front());
    return section + "</section>\n";
  }

  std::string PlanSection(const PlanRecord& plan, bool is_open) const {
    std::string place;
    for (const PlanNodeRecord& node : plan.nodes)
      if (place.empty() && !node.place.empty()) place = node.place;
    std::string section = fmt::format(
        "<details{}><summary>{} in {} run{}{}</summary>\n<p>", is_open ? " open" : "", ShortTime(plan.ns),
        plan.runs, plan.runs == 1 ? "" : "s", place.empty() ? "" : ", from " + EscapeHtml(place));
    section += fmt::format("{} operators, {} of memory promised", plan.nodes.size(),
                           ShortBytes(plan.promised_bytes));
    if (plan.expected_ns > 0)
      section +=
          fmt::format("; a run took {}, where the cost model expected {}",
                      ShortTime(plan.ns / std::max<int64_t>(plan.runs, 1)), ShortTime(plan.expected_ns));
    section += ".</p>\n";
    const std::string picture = PlanPicture(plan);
    if (!picture.empty()) section += "<div class=\"wide\">" + picture + "</div>\n";
    section += fmt::format("<details{}><summary>operators of this plan</summary>{}</details>\n",
                           picture.empty() ? " open" : "", NodeTable(plan));
    if (!plan.choices.empty())
      section += "<details><summary>what it was chosen from, with the rejected plans</summary><pre>" +
                 EscapeHtml(plan.choices) + "</pre></details>\n";
    return section + "</details>\n";
  }

  static std::string NodeTable(const PlanRecord& plan) {
    std::string rows;
    for (const PlanNodeRecord& node : plan.nodes)
      rows += Row({EscapeHtml(node.name), EscapeHtml(node.shape), EscapeHtml(node.place),
                   std::to_string(node.acts), Milliseconds(node.ns)});
    return Table({"operator", "result", "place", "count", "time ms"}, rows);
  }

  // --- the numbers of -stats ---

  std::string Statistics() const {
    std::string rows, fused_rows;
    auto operators = TotalOperators(record_.statistics);
    if (operators.size() > kMostOperators) operators.resize(kMostOperators);
    for (const auto& [name, sum] : operators)
      rows += Row({EscapeHtml(name), std::to_string(sum.acts), Milliseconds(sum.kernel_ns),
                   std::to_string(sum.rows), fmt::format("{:.3f}", static_cast<double>(sum.bytes_in) / 1e6)});
    std::string section =
        "<section id=\"statistics\"><h2>Statistics</h2>\n<p class=\"soft\">What <code>-stats</code> prints.</p>\n" +
        Table({"operator", "count", "time ms", "rows", "MB pulled"}, rows);
    for (const FusedOperatorStatistics& fused : TotalFused(record_.statistics))
      fused_rows += Row(
          {EscapeHtml(fused.label) + (fused.interpreted ? " (interpreted)" : ""), std::to_string(fused.calls),
           Milliseconds(fused.kernel_ns), fmt::format("{:.3f}", static_cast<double>(fused.bytes) / 1e6),
           fused.kernel_ns == 0 ? ""
                                : fmt::format("{:.2f}", static_cast<double>(fused.bytes) /
                                                            static_cast<double>(fused.kernel_ns))});
    if (!fused_rows.empty())
      section +=
          "<h3>Fused operators</h3>\n" + Table({"operator", "calls", "time ms", "MB", "GB/s"}, fused_rows);
    std::string workers;
    for (const SessionStatistics& rank : record_.statistics)
      workers +=
          Row({fmt::format("worker {}", rank.rank), ShortTime(rank.elapsed_ns), ShortBytes(rank.bytes_sent),
               ShortBytes(rank.bytes_received), ShortBytes(rank.bytes_shared),
               std::to_string(rank.messages_sent), ShortBytes(rank.peak_bytes)});
    section += "<h3>Workers</h3>\n" + Table({"worker", "time", "sent", "received", "through shared memory",
                                             "messages", "peak memory"},
                                            workers);
    return section + "</section>\n";
  }

  const RunRecord& record_;
  const LineTimes times_;
};

}  // namespace

std::string ToHtml(const RunRecord& record) { return Page(record).Make(); }

std::string WhatTookTheTime(const RunRecord& record) {
  return FirstSentence(record, TimesOf(record), [](const std::string& code) { return code; });
}

}  // namespace heddle::engine
