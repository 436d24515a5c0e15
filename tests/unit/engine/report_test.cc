// SPDX-License-Identifier: Apache-2.0
#include "engine/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/engine.h"
#include "engine/report/html.h"
#include "engine/report/line_times.h"
#include "engine/report/plan_picture.h"
#include "engine/report/rank_record_json.h"

namespace heddle::engine {
namespace {

RunRecord RecordOf(const std::string& text, const std::string& name = "script.dml") {
  EngineOptions options;
  options.session.threads = 2;
  options.session.recorded_events = kRecordedEvents;
  const Result<std::unique_ptr<Engine>> engine = Engine::Create(std::move(options));
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  const Result<RunResults> results = (*engine)->Run({.text = text, .name = name});
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_NE(results->record, nullptr);
  return *results->record;
}

// What is wrong with the tags of a page: the first one that is not closed, or closes nothing.
std::string WrongTag(const std::string& page) {
  static const std::set<std::string> kEmpty = {"meta", "!doctype", "br", "rect", "path", "polyline", "line"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    size_t end = at + 1;
    for (char quote = 0; end < page.size() && (quote != 0 || page[end] != '>'); ++end)
      if (page[end] == '"') quote = quote == 0 ? '"' : 0;
    if (end >= page.size()) return "a tag without an end at " + page.substr(at, 40);
    std::string tag = page.substr(at + 1, end - at - 1);
    const bool closes = tag.starts_with("/");
    std::string name = closes ? tag.substr(1) : tag.substr(0, tag.find_first_of(" \n/"));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    at = end + 1;
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!kEmpty.contains(name) && !tag.ends_with("/")) {
      open.push_back(name);
      // What is in them is no HTML.
      if (name == "script" || name == "style") at = page.find("</" + name, at);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

constexpr const char* kScript =
    "X = rand(rows=2000, cols=200, seed=1)\n"
    "f = function(matrix[double] A) return (matrix[double] B) {\n"
    "  n = 0\n"
    "  while (n < 3) {\n"
    "    A = A %*% A / max(A)\n"
    "    n = n + 1; if (n < 0) A = f(A)\n"
    "  }\n"
    "  B = A\n"
    "}\n"
    "for (i in 1:10) {\n"
    "  Y = t(X) %*% X\n"
    "  Z = f(Y + i)\n"
    "}\n"
    "print(sum(Z) + sum(exp(X) * X))\n";

TEST(ReportTest, IsAWellFormedPageOfBoundedSize) {
  const std::string page = ToHtml(RecordOf(kScript));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_EQ(WrongTag(page), "");
  EXPECT_EQ(page.find("http://"), page.find("http://www.w3.org")) << "nothing comes from elsewhere";
  RunRecord empty;
  empty.script = "empty.dml";
  const std::string least = ToHtml(empty);
  EXPECT_EQ(WrongTag(least), "");
  EXPECT_LE(least.size(), 120u * 1024);
  EXPECT_GE(least.size(), 50u * 1024) << "the library of charts is inside";
}

TEST(ReportTest, TheCheckOfPagesFindsWhatIsWrong) {
  EXPECT_EQ(WrongTag("<p>a<b>c</b></p>"), "");
  EXPECT_NE(WrongTag("<p>a<b>c</p></b>"), "");
  EXPECT_NE(WrongTag("<p>a"), "");
  EXPECT_NE(WrongTag("a</p>"), "");
}

// Each time is that of a place, so which line comes first is no matter of chance.
RunRecord MadeUp() {
  RunRecord record;
  record.script = "a.dml";
  record.sources["a.dml"] = "X = rand(rows=10, cols=10)  # data\n\nA = t(X) %*% X;\nm = lm(X=X, y=y)\n";
  record.sources["heddle:lm.dml"] = "one\nB = solve(A, b)\n";
  SessionStatistics rank;
  rank.elapsed_ns = 3'100'000'000;
  rank.planning_ns = 10'000'000;
  const auto add = [&](const std::string& name, const std::string& file, int line, int64_t ns,
                       const std::vector<CallSite>& calls = {}) {
    PlaceStatistics& place = rank.PlaceOf(name, {.file = file, .line = line, .column = 1}, calls);
    ++place.acts;
    place.ns += ns;
  };
  add("rand", "a.dml", 1, 100'000'000);
  add("t%*%", "a.dml", 3, 2'852'000'000);
  const CallSite call{.function = "lm", .position = {.file = "a.dml", .line = 4, .column = 1}};
  add("solve", "heddle:lm.dml", 2, 90'000'000, {call});
  record.statistics.push_back(rank);
  return record;
}

TEST(ReportTest, TheFirstSentenceSaysWhatTookTheTime) {
  RunRecord record = MadeUp();
  EXPECT_EQ(WhatTookTheTime(record), "92 % of the 3.1 s went into t(X) %*% X at line 3.");
  EXPECT_NE(ToHtml(record).find(
                "<p class=\"lead\">92 % of the 3.1 s went into <code>t(X) %*% X</code> at line 3.</p>"),
            std::string::npos);
  // A call, and what in it.
  for (auto& [key, place] : record.statistics[0].places)
    if (place.name == "solve") place.ns = 20'000'000'000;
  record.statistics[0].elapsed_ns = 23'000'000'000;
  EXPECT_EQ(WhatTookTheTime(record),
            "87 % of the 23 s went into lm(X=X, y=y) at line 4. Of that, 100 % was solve(A, b) at line 2 of "
            "heddle:lm.dml.");
  record.statistics[0].planning_ns = 100'000'000'000;
  EXPECT_EQ(WhatTookTheTime(record), "81 % of the 23 s went into making plans.");
  EXPECT_EQ(WhatTookTheTime(RunRecord()), "The run took 0 s.");
}

TEST(ReportTest, NoLineMayStandOut) {
  RunRecord record = MadeUp();
  for (auto& [key, place] : record.statistics[0].places) place.ns = 400'000'000;
  EXPECT_EQ(WhatTookTheTime(record),
            "No line took most of the 3.1 s: the first is rand(rows=10, cols=10) at line 1 with 13 %.");
}

TEST(ReportTest, TimesOfLinesIncludeTheirCallsOnce) {
  RunRecord record = MadeUp();
  // A recursion: the line of the call is on the way twice.
  const CallSite call{.function = "lm", .position = {.file = "a.dml", .line = 4, .column = 1}};
  PlaceStatistics& place =
      record.statistics[0].PlaceOf("sum", {.file = "heddle:lm.dml", .line = 1, .column = 1}, {call, call});
  place.ns = 1'000;
  const LineTimes times = TimesOf(record);
  EXPECT_EQ(times.files.at("a.dml").at(4).total_ns, 90'001'000);
  EXPECT_EQ(times.files.at("a.dml").at(4).own_ns, 0);
  EXPECT_EQ(times.files.at("heddle:lm.dml").at(1).own_ns, 1'000);
}

TEST(ReportTest, NumbersAreThoseOfStats) {
  const RunRecord record = RecordOf(kScript);
  const std::string page = ToHtml(record);
  const std::string stats = ToText(record.statistics, 1000);
  int compared = 0;
  for (const auto& [name, sum] : TotalOperators(record.statistics)) {
    const std::string ms = fmt::format("{:.3f}", static_cast<double>(sum.kernel_ns) / 1e6);
    EXPECT_NE(
        page.find(fmt::format("<td class=\"name\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td>",
                              EscapeHtml(name), sum.acts, ms)),
        std::string::npos)
        << name;
    EXPECT_NE(stats.find(fmt::format("{:<24}{:>10}{:>14}", name, sum.acts, ms)), std::string::npos) << name;
    ++compared;
  }
  EXPECT_GT(compared, 5);
  // Places add up to the operators that they are of.
  int64_t at_places = 0, all = 0;
  for (const auto& [key, place] : record.statistics[0].places)
    if (!place.name.empty()) at_places += place.ns;
  for (const auto& [name, sum] : record.statistics[0].operators) all += sum.kernel_ns;
  EXPECT_EQ(at_places, record.statistics[0].operators_ns);
  EXPECT_EQ(all, record.statistics[0].operators_ns);
}

TEST(ReportTest, LinesOfTheScriptHaveTheirTimes) {
  const RunRecord record = RecordOf(kScript);
  const LineTimes times = TimesOf(record);
  const auto& lines = times.files.at("script.dml");
  EXPECT_GT(lines.at(11).own_ns, 0) << "t(X) %*% X";
  EXPECT_GT(lines.at(12).total_ns, lines.at(12).own_ns) << "the call has the time of its function";
  EXPECT_GT(lines.at(5).own_ns, 0);
  EXPECT_GE(lines.at(12).total_ns, lines.at(5).total_ns) << "where all of it comes from";
  int64_t own = 0;
  for (const auto& [line, time] : lines) own += time.own_ns;
  EXPECT_LE(own + times.planning_ns, times.all_ns);
  EXPECT_GT(static_cast<double>(own + times.planning_ns),
            0.7 * static_cast<double>(record.statistics[0].elapsed_ns))
      << "nearly all of the time has a place";
}

// As many calls as are open at once, each with steps of its own: what is recorded does not grow with them.
TEST(ReportTest, ARecursionIsOneCallHoweverDeepItIs) {
  const RunRecord record = RecordOf(
      "f = function(int n) return (double r) {\n"
      "  if (n > 0) { r = f(n - 1) + as.scalar(matrix(1, 1, 1)) } else { r = 0 }\n"
      "}\n"
      "print(f(400))\n");
  const SessionStatistics& rank = record.statistics[0];
  EXPECT_LT(rank.places.size(), 30u);
  for (const auto& [key, place] : rank.places) EXPECT_LE(place.calls.size(), 2u) << key;
  int64_t calls = 0;
  for (const RecordedThread& thread : record.records[0].threads)
    for (const RecordedEvent& event : thread.events)
      calls += record.records[0].sites[event.site].kind == RecordedKind::kCall ? 1 : 0;
  EXPECT_EQ(calls, 401) << "each of them is an event";
  const LineTimes times = TimesOf(record);
  EXPECT_LE(times.files.at("script.dml").at(4).total_ns, times.all_ns);
  EXPECT_GT(times.files.at("script.dml").at(2).total_ns, 0);
}

// Several of them are measured at once.
TEST(ReportTest, ShortStepsAreCountedOneByOneAndTheirTimeOnce) {
  const RunRecord record = RecordOf(
      "i = 0\n"
      "s = 0\n"
      "while (i < 10000) {\n"
      "  if (i %% 2 == 0) {\n"
      "    s = s + i\n"
      "  }\n"
      "  i = i + 1\n"
      "}\n"
      "print(s)\n");
  const SessionStatistics& rank = record.statistics[0];
  std::map<int32_t, PlaceStatistics> steps;
  int64_t ns = 0;
  for (const auto& [key, place] : rank.places) {
    ns += place.ns;
    if (!place.name.empty()) continue;
    steps[place.line].acts += place.acts;
    steps[place.line].ns += place.ns;
  }
  EXPECT_EQ(steps.at(5).acts, 5'000);
  EXPECT_EQ(steps.at(7).acts, 10'000);
  EXPECT_GE(steps.at(3).acts, 10'000);
  for (const int32_t line : {3, 4, 5, 7}) EXPECT_GT(steps.at(line).ns, 0) << line;
  EXPECT_LE(ns + rank.planning_ns, rank.elapsed_ns);
}

TEST(ReportTest, WhatComesFromAScriptIsEscaped) {
  const std::string text =
      "s = \"</script><b>bold</b><script>alert(1)</script>\"\n"
      "f = function(matrix[double] A) return (matrix[double] B) {\n  B = A %*% A  # <img src=x onerror=alert(2)> & \"'\n}\n"
      "X = rand(rows=300, cols=300, seed=1)\nfor (i in 1:3) X = f(X)\nprint(s + sum(X))\n";
  const std::string page = ToHtml(RecordOf(text, "</script><b>name</b>\"'.dml"));
  EXPECT_EQ(WrongTag(page), "");
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;b&gt;bold&lt;/b&gt;"), std::string::npos) << "it is shown";
  // Three scripts of the page's own, and the one with the data.
  size_t scripts = 0;
  for (size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 3u);
}

TEST(ReportTest, BytesThatAreNoUtf8AreShownByTheirNumbers) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'\x01\x80"), "a&lt;b&gt;&amp;&quot;&#39;\\x01\\x80");
  EXPECT_EQ(EscapeForScript("{\"a\":\"</script>&\"}"), "{\"a\":\"\\u003c/script\\u003e\\u0026\"}");
}

TEST(ReportTest, TimesAndBytesAreShort) {
  EXPECT_EQ(ShortTime(0), "0 s");
  EXPECT_EQ(ShortTime(1'500), "1.5 us");
  EXPECT_EQ(ShortTime(12'345'678), "12 ms");
  EXPECT_EQ(ShortTime(999'900'000), "1.0 s");
  EXPECT_EQ(ShortTime(125'000'000'000), "2 min 5 s");
  EXPECT_EQ(ShortBytes(850), "850 bytes");
  EXPECT_EQ(ShortBytes(1'200'000'000), "1.2 GB");
  EXPECT_EQ(Percent(0.0005), "under 0.1 %");
  EXPECT_EQ(Percent(0.015), "1.5 %");
  EXPECT_EQ(Percent(0.92), "92 %");
}

TEST(ReportTest, PlansArePicturesFromTopToBottom) {
  PlanRecord plan;
  plan.nodes = {{.name = "X", .shape = "10x10"},
                {.name = "cell sum",
                 .shape = "scalar",
                 .place = "a.dml:1:1",
                 .body = "%1 = exp(<0>)\nsum(%1)",
                 .inputs = {0},
                 .acts = 2,
                 .ns = 500},
                {.name = "+", .shape = "10x10", .inputs = {0, 1}, .acts = 1, .ns = 100}};
  const std::string picture = PlanPicture(plan);
  EXPECT_EQ(WrongTag(picture), "");
  EXPECT_NE(picture.find("class=\"op fused h4\""), std::string::npos) << picture;
  EXPECT_NE(picture.find("exp(&lt;0&gt;)"), std::string::npos);
  // Each box is below those that it reads.
  std::vector<double> tops;
  for (size_t at = picture.find("<rect"); at != std::string::npos; at = picture.find("<rect", at + 1))
    tops.push_back(std::stod(picture.substr(picture.find("y=\"", at) + 3)));
  ASSERT_EQ(tops.size(), 3u);
  EXPECT_LT(tops[0], tops[1]);
  EXPECT_LT(tops[1], tops[2]);
  plan.nodes[0].name = "</text><b>\"x\"";
  plan.nodes[0].place = "a&b\".dml:1:1";
  const std::string hostile = PlanPicture(plan);
  EXPECT_EQ(WrongTag(hostile), "");
  EXPECT_EQ(hostile.find("<b>"), std::string::npos);
  EXPECT_NE(hostile.find("a&amp;b&quot;.dml:1:1"), std::string::npos);
  plan.nodes.resize(kMostInPicture + 1);
  EXPECT_EQ(PlanPicture(plan), "") << "too large";
  EXPECT_EQ(PlanPicture(PlanRecord()), "");
}

TEST(ReportTest, RecordsOfRanksTravelAsJson) {
  const RunRecord record = RecordOf(kScript);
  const RankRecord& rank = record.records[0];
  const Result<RankRecord> parsed = ParseRankRecord(ToJson(rank));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(ToJson(*parsed), ToJson(rank));
  ASSERT_EQ(parsed->threads.size(), rank.threads.size());
  EXPECT_EQ(parsed->threads[0].events, rank.threads[0].events);
  EXPECT_EQ(parsed->sites, rank.sites);
  EXPECT_EQ(ParseRankRecord("[1]").status().message(), "the record of a run is not a JSON object");
  // What a worker that is not ours might send.
  const Result<RankRecord> hostile = ParseRankRecord(
      R"({"sites":[1],"threads":[{"events":[1,2,3,4,5,99]}],"plans":[{"nodes":[{"inputs":[0,5,-1,"x"]}]}]})");
  ASSERT_TRUE(hostile.ok());
  EXPECT_TRUE(hostile->threads[0].events.empty());
  EXPECT_TRUE(hostile->plans[0].nodes[0].inputs.empty());
}

// What is left out are short events and cheap plans, and it is told.
TEST(ReportTest, ARecordThatHasToBeShorterKeepsItsLongestEvents) {
  RankRecord record = RecordOf(kScript).records.front();
  record.threads.resize(1);
  std::vector<RecordedEvent>& events = record.threads[0].events;
  events.clear();
  for (int64_t i = 0; i < 1000; ++i)
    events.push_back({.begin_ns = i, .duration_ns = i % 7 == 0 ? 1'000'000 : 10, .site = 0});
  record.threads[0].dropped = 5;
  const std::string whole = ToJson(record);
  EXPECT_EQ(ToJson(record, static_cast<int64_t>(whole.size())), whole);
  const auto most = static_cast<int64_t>(whole.size()) - 1;
  const std::string shorter = ToJson(record, most);
  EXPECT_LE(static_cast<int64_t>(shorter.size()), most);
  const RankRecord less = *ParseRankRecord(shorter);
  ASSERT_EQ(less.threads[0].events.size(), 500u);
  EXPECT_EQ(less.threads[0].dropped, 505);
  size_t longest = 0;
  for (const RecordedEvent& event : less.threads[0].events) longest += event.duration_ns > 10 ? 1 : 0;
  EXPECT_EQ(longest, 143u);
  EXPECT_TRUE(std::ranges::is_sorted(less.threads[0].events, {}, &RecordedEvent::begin_ns));
  EXPECT_EQ(less.plans.size(), record.plans.size());

  RankRecord bare = record;
  bare.threads[0].events.clear();
  bare.plans.clear();
  const int64_t least = static_cast<int64_t>(ToJson(bare).size()) + 40;
  const std::string least_text = ToJson(record, least);
  ASSERT_FALSE(least_text.empty());
  const RankRecord left = *ParseRankRecord(least_text);
  EXPECT_EQ(left.plans_left_out, record.plans_left_out + static_cast<int64_t>(record.plans.size()) -
                                     static_cast<int64_t>(left.plans.size()));
  EXPECT_EQ(ToJson(record, 10), "");
}

TEST(ReportTest, OperatorsForWhichOthersWaitedAreTold) {
  RunRecord record = RecordOf(kScript);
  EXPECT_EQ(ToHtml(record).find("id=\"skew\""), std::string::npos) << "there is one rank only";
  record.ranks = 2;
  record.statistics.resize(1);
  record.statistics[0].elapsed_ns = 10'000'000;
  record.statistics[0].places.clear();
  record.statistics[0].places["a"] = {.name = "matmul", .file = "script.dml", .line = 7, .ns = 1'000'000};
  record.statistics[0].places["b"] = {.name = "even<b>", .file = "script.dml", .line = 8, .ns = 500'000};
  record.statistics[0].places["c"] = {.name = "", .file = "script.dml", .line = 9, .ns = 9'000'000};
  record.statistics.push_back(record.statistics[0]);
  record.statistics[1].rank = 1;
  record.statistics[1].places["a"].ns = 3'000'000;
  const std::string page = ToHtml(record);
  EXPECT_EQ(WrongTag(page), "");
  EXPECT_NE(
      page.find("Operators took 3.5 ms on worker 1, which had the most to do, 1.5 ms on the one that had the "
                "least and 2.5 ms on average."),
      std::string::npos)
      << page.substr(page.find("id=\"skew\""), 400);
  EXPECT_NE(page.find("<td class=\"name\">matmul</td><td class=\"r\">1.0 ms</td><td class=\"r\">2.0 ms</td>"
                      "<td class=\"r\">3.0 ms</td><td class=\"r\">1.50</td><td class=\"r\">1</td>"),
            std::string::npos)
      << page.substr(page.find("id=\"skew\""), 1400);
  const std::string skew =
      page.substr(page.find("id=\"skew\""), page.find("id=\"plans\"") - page.find("id=\"skew\""));
  EXPECT_EQ(skew.find("even"), std::string::npos) << "nobody waited for it";
}

TEST(ReportTest, EarlierAttemptsOfAJobAreTold) {
  RunRecord record = RecordOf(kScript);
  record.restarts = {{1, 2'500, "attempt 1 ended: <worker> was lost"}};
  const std::string page = ToHtml(record);
  EXPECT_EQ(WrongTag(page), "");
  EXPECT_NE(
      page.find(
          "<td class=\"r\">1</td><td class=\"r\">2.5 s</td><td>attempt 1 ended: &lt;worker&gt; was lost"),
      std::string::npos)
      << page.substr(page.find("id=\"attempts\""), 600);
}

TEST(ReportTest, StatisticsTravelWithTheirPlaces) {
  const RunRecord record = RecordOf(kScript);
  const Result<SessionStatistics> parsed = ParseStatistics(ToJson(record.statistics[0]));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->places, record.statistics[0].places);
  EXPECT_EQ(parsed->operators_ns, record.statistics[0].operators_ns);
}

TEST(ReportTest, WithoutARecordNothingIsNoted) {
  const Result<std::unique_ptr<Engine>> engine = Engine::Create();
  ASSERT_TRUE(engine.ok());
  const Result<RunResults> results = (*engine)->Run({.text = kScript});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->record, nullptr);
  EXPECT_TRUE(results->statistics.places.empty());
  EXPECT_EQ(results->statistics.operators_ns, 0);
}

TEST(TraceTest, AnyTextIsJson) {
  RunRecord record;
  record.script = "a\"b\n.dml";
  record.error = "not \x80 well";
  RankRecord& rank = record.records.emplace_back();
  rank.sites = {{.name = "\"<\\", .stream = "compute", .file = "a\"b\n.dml", .line = 3},
                {.kind = RecordedKind::kCopy, .name = "x\x01"}};
  rank.threads = {{.name = "main \"1\"",
                   .events = {{.begin_ns = 1'500, .duration_ns = 2'250, .rows = 7, .site = 0},
                              {.begin_ns = 4'000, .duration_ns = 1, .bytes = 8, .site = 1}}}};
  const nlohmann::json trace = nlohmann::json::parse(ToTrace(record), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  const nlohmann::json& events = trace["traceEvents"];
  ASSERT_GE(events.size(), 5u);
  EXPECT_EQ(events[1]["args"]["name"], "main \"1\"");
  EXPECT_EQ(events[2]["name"], "\"<\\");
  EXPECT_EQ(events[2]["ts"], 1.5);
  EXPECT_EQ(events[2]["dur"], 2.25);
  EXPECT_EQ(events[2]["args"],
            (nlohmann::json{{"place", "a\"b\n.dml:3"}, {"stream", "compute"}, {"rows", 7}}));
  EXPECT_EQ(events[3]["ph"], "b");
  EXPECT_EQ(events[3]["args"], (nlohmann::json{{"bytes", 8}}));
  EXPECT_EQ(events[4]["ph"], "e");
  EXPECT_EQ(events[4]["id"], events[3]["id"]);
}

TEST(TraceTest, HasCallsLoopsPlansAndOperatorsInsideOfEachOther) {
  const RunRecord record = RecordOf(kScript);
  const nlohmann::json trace = nlohmann::json::parse(ToTrace(record), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace["otherData"]["dropped_events"], 0);
  EXPECT_EQ(trace["otherData"]["script"], "script.dml");
  std::set<std::string> kinds, names;
  double loop_begin = 0, loop_end = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      kinds.insert(event["cat"]);
      names.insert(event["name"]);
      EXPECT_GE(event["ts"].get<double>(), 0);
      EXPECT_GE(event["dur"].get<double>(), 0);
      if (event["name"] == "for") {
        loop_begin = event["ts"];
        loop_end = loop_begin + event["dur"].get<double>();
        EXPECT_EQ(event["args"]["rounds"], 10);
      }
    }
  EXPECT_EQ(kinds, (std::set<std::string>{"call", "loop", "operator", "planning"}));
  EXPECT_TRUE(names.contains("f"));
  EXPECT_TRUE(names.contains("while"));
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["name"] == "f") {
      EXPECT_GE(event["ts"].get<double>(), loop_begin);
      EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), loop_end + 1);
    }
}

}  // namespace
}  // namespace heddle::engine
