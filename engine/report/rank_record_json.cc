// SPDX-License-Identifier: Apache-2.0
#include "engine/report/rank_record_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace heddle::engine {
namespace {

using Json = nlohmann::json;

// Fields that are missing or of another type are zero or empty.
int64_t Number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}
std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}
template <typename Take>
void ForEach(const Json& json, const char* name, const Take& take) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& entry : *found) take(entry);
}

constexpr size_t kNumbersOfEvent = 6;

Json ToJson(const RecordedThread& thread) {
  // The numbers of all events one behind the other: there are many.
  Json numbers = Json::array();
  for (const RecordedEvent& event : thread.events)
    for (const int64_t number : {event.begin_ns, event.duration_ns, event.rows, event.bytes,
                                 event.memory_bytes, static_cast<int64_t>(event.site)})
      numbers.push_back(number);
  return {{"name", thread.name}, {"dropped", thread.dropped}, {"events", std::move(numbers)}};
}

RecordedThread ParseThread(const Json& json, size_t sites) {
  RecordedThread thread{.name = Text(json, "name"), .dropped = Number(json, "dropped")};
  std::vector<int64_t> numbers;
  ForEach(json, "events", [&](const Json& number) {
    numbers.push_back(number.is_number_integer() ? number.get<int64_t>() : 0);
  });
  for (size_t at = 0; at + kNumbersOfEvent <= numbers.size(); at += kNumbersOfEvent) {
    const auto site = static_cast<uint64_t>(numbers[at + 5]);
    if (site >= sites) continue;
    thread.events.push_back({.begin_ns = numbers[at],
                             .duration_ns = numbers[at + 1],
                             .rows = numbers[at + 2],
                             .bytes = numbers[at + 3],
                             .memory_bytes = numbers[at + 4],
                             .site = static_cast<uint32_t>(site)});
  }
  return thread;
}

Json ToJson(const PlanRecord& plan) {
  Json nodes = Json::array();
  for (const PlanNodeRecord& node : plan.nodes)
    nodes.push_back({{"name", node.name},
                     {"shape", node.shape},
                     {"place", node.place},
                     {"body", node.body},
                     {"inputs", node.inputs},
                     {"acts", node.acts},
                     {"ns", node.ns},
                     {"rows", node.rows}});
  return {{"key", plan.key},
          {"runs", plan.runs},
          {"ns", plan.ns},
          {"expected_ns", plan.expected_ns},
          {"promised_bytes", plan.promised_bytes},
          {"choices", plan.choices},
          {"nodes", std::move(nodes)}};
}

PlanRecord ParsePlan(const Json& json) {
  PlanRecord plan;
  plan.key = static_cast<uint64_t>(Number(json, "key"));
  plan.runs = Number(json, "runs");
  plan.ns = Number(json, "ns");
  plan.expected_ns = Number(json, "expected_ns");
  plan.promised_bytes = Number(json, "promised_bytes");
  plan.choices = Text(json, "choices");
  ForEach(json, "nodes", [&](const Json& entry) {
    PlanNodeRecord& node = plan.nodes.emplace_back();
    node.name = Text(entry, "name");
    node.shape = Text(entry, "shape");
    node.place = Text(entry, "place");
    node.body = Text(entry, "body");
    node.acts = Number(entry, "acts");
    node.ns = Number(entry, "ns");
    node.rows = Number(entry, "rows");
    const auto own = static_cast<int32_t>(plan.nodes.size()) - 1;
    // Of what comes before it alone: whoever draws the plan goes along them.
    ForEach(entry, "inputs", [&](const Json& input) {
      const int64_t number = input.is_number_integer() ? input.get<int64_t>() : -1;
      if (number >= 0 && number < own) node.inputs.push_back(static_cast<int32_t>(number));
    });
  });
  return plan;
}

RecordedSite ParseSite(const Json& json) {
  RecordedSite site;
  for (const RecordedKind kind : {RecordedKind::kOperator, RecordedKind::kCopy, RecordedKind::kPlanning,
                                  RecordedKind::kCall, RecordedKind::kLoop})
    if (Name(kind) == Text(json, "kind")) site.kind = kind;
  site.name = Text(json, "name");
  site.stream = Text(json, "stream");
  site.file = Text(json, "file");
  site.line = static_cast<int32_t>(Number(json, "line"));
  site.column = static_cast<int32_t>(Number(json, "column"));
  return site;
}

}  // namespace

std::string ToJson(const RankRecord& record) {
  Json json = {{"rank", record.rank},
               {"begin_ns", record.begin_ns},
               {"limit_bytes", record.limit_bytes},
               {"plans_left_out", record.plans_left_out},
               {"sites", Json::array()},
               {"threads", Json::array()},
               {"plans", Json::array()}};
  for (const RecordedSite& site : record.sites)
    json["sites"].push_back({{"kind", Name(site.kind)},
                             {"name", site.name},
                             {"stream", site.stream},
                             {"file", site.file},
                             {"line", site.line},
                             {"column", site.column}});
  for (const RecordedThread& thread : record.threads) json["threads"].push_back(ToJson(thread));
  for (const PlanRecord& plan : record.plans) json["plans"].push_back(ToJson(plan));
  // Names of scripts may be any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

// Leaves the longer half, in their order. False when there is nothing to halve.
bool DropShorterHalf(RecordedThread* thread) {
  const size_t kept = thread->events.size() / 2;
  if (kept == 0) return false;
  std::vector<int64_t> durations;
  for (const RecordedEvent& event : thread->events) durations.push_back(event.duration_ns);
  std::ranges::nth_element(durations, durations.begin() + static_cast<std::ptrdiff_t>(kept - 1),
                           std::ranges::greater());
  const int64_t least_ns = durations[kept - 1];
  size_t longer = 0;
  for (const RecordedEvent& event : thread->events) longer += event.duration_ns > least_ns ? 1 : 0;
  size_t equal = kept - longer;  // of those that take as long as the shortest that stays
  const size_t before = thread->events.size();
  std::erase_if(thread->events, [&](const RecordedEvent& event) {
    if (event.duration_ns != least_ns) return event.duration_ns < least_ns;
    return equal == 0 || equal-- == 0;
  });
  thread->dropped += static_cast<int64_t>(before - thread->events.size());
  return true;
}

bool DropShortestPlan(RankRecord* record) {
  if (record->plans.empty()) return false;
  record->plans.erase(std::ranges::min_element(record->plans, {}, &PlanRecord::ns));
  ++record->plans_left_out;
  return true;
}

}  // namespace

std::string ToJson(RankRecord record, int64_t most_bytes) {
  for (;;) {
    std::string json = ToJson(record);
    if (static_cast<int64_t>(json.size()) <= most_bytes) return json;
    bool is_less = false;
    for (RecordedThread& thread : record.threads) is_less |= DropShorterHalf(&thread);
    if (!is_less && !DropShortestPlan(&record)) return "";
  }
}

Result<RankRecord> ParseRankRecord(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("the record of a run is not a JSON object");
  RankRecord record;
  record.rank = static_cast<int>(Number(json, "rank"));
  record.begin_ns = Number(json, "begin_ns");
  record.limit_bytes = Number(json, "limit_bytes");
  record.plans_left_out = Number(json, "plans_left_out");
  ForEach(json, "sites", [&](const Json& site) { record.sites.push_back(ParseSite(site)); });
  ForEach(json, "threads",
          [&](const Json& thread) { record.threads.push_back(ParseThread(thread, record.sites.size())); });
  ForEach(json, "plans", [&](const Json& plan) { record.plans.push_back(ParsePlan(plan)); });
  return record;
}

}  // namespace heddle::engine
