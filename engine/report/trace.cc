// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "engine/report/charts.h"
#include "engine/report/report.h"

namespace heddle::engine {
namespace {

using Json = nlohmann::ordered_json;

std::string Microseconds(int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3); }

std::string TextOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Of `arguments` what all events of a site have; the others are added to it.
std::string ArgumentsOf(const RecordedSite& site) {
  Json arguments = Json::object();
  if (site.line > 0) arguments["place"] = site.file + ":" + std::to_string(site.line);
  if (!site.stream.empty()) arguments["stream"] = site.stream;
  std::string text = TextOf(arguments);
  text.pop_back();
  return text;
}

// There are up to some hundred thousand events, so their text is written as it is and not made of JSON
// values.
class TraceMaker {
 public:
  explicit TraceMaker(const RunRecord& record) : record_(record), begin_ns_(BeginOf(record)) {}

  std::string Make() {
    int64_t dropped = 0;
    for (const RankRecord& rank : record_.records) {
      AddName("process_name", rank.rank, 0, "worker " + std::to_string(rank.rank));
      for (size_t i = 0; i < rank.threads.size(); ++i) {
        dropped += rank.threads[i].dropped;
        AddThread(rank, i + 1);
      }
      AddMemory(rank);
    }
    Json json;
    json["displayTimeUnit"] = "ms";
    json["otherData"] = {{"script", record_.script},
                         {"ranks", record_.ranks},
                         {"threads", record_.threads},
                         {"fusion", record_.fusion},
                         {"dropped_events", dropped}};
    if (!record_.error.empty()) json["otherData"]["error"] = record_.error;
    std::string text = TextOf(json);
    text.pop_back();
    return text + ",\"traceEvents\":[" + events_ + "]}\n";
  }

 private:
  void Add(std::string_view event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event;
  }

  // A name for a process, or for one of its threads.
  void AddName(const char* kind, int rank, size_t thread, const std::string& name) {
    Add(TextOf(
        Json{{"name", kind}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}}));
  }

  void AddThread(const RankRecord& rank, size_t number) {
    const RecordedThread& thread = rank.threads[number - 1];
    AddName("thread_name", rank.rank, number, thread.name);
    std::vector<std::string> heads, arguments;
    for (const RecordedSite& site : rank.sites) {
      heads.push_back(fmt::format("{{\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{}", TextOf(site.name),
                                  Name(site.kind), rank.rank, number));
      arguments.push_back(ArgumentsOf(site));
    }
    for (const RecordedEvent& event : thread.events) {
      const RecordedSite& site = rank.sites[event.site];
      const std::string& head = heads[event.site];
      std::string own = arguments[event.site];
      const auto add = [&](const char* name, int64_t value) {
        if (value > 0) own += fmt::format("{}\"{}\":{}", own == "{" ? "" : ",", name, value);
      };
      add(site.kind == RecordedKind::kLoop ? "rounds" : "rows", event.rows);
      add("bytes", event.bytes);
      const std::string begin = Microseconds(event.begin_ns - begin_ns_);
      if (site.kind != RecordedKind::kCopy) {
        Add(fmt::format("{},\"ph\":\"X\",\"ts\":{},\"dur\":{},\"args\":{}}}}}", head, begin,
                        Microseconds(event.duration_ns), own));
        continue;
      }
      // Several are on their way at once, and none is inside of another.
      Add(fmt::format("{},\"id\":{},\"ph\":\"b\",\"ts\":{},\"args\":{}}}}}", head, ++copies_, begin, own));
      Add(fmt::format("{},\"id\":{},\"ph\":\"e\",\"ts\":{},\"args\":{{}}}}", head, copies_,
                      Microseconds(event.begin_ns + event.duration_ns - begin_ns_)));
    }
  }

  void AddMemory(const RankRecord& rank) {
    for (const MemoryPoint& point : MemoryOf(rank))
      Add(fmt::format(
          "{{\"name\":\"memory\",\"ph\":\"C\",\"pid\":{},\"tid\":0,\"ts\":{},\"args\":{{\"bytes\":{}}}}}",
          rank.rank, Microseconds(point.at_ns - begin_ns_), point.bytes));
  }

  const RunRecord& record_;
  const int64_t begin_ns_;
  int64_t copies_ = 0;
  std::string events_;
};

}  // namespace

std::string ToTrace(const RunRecord& record) { return TraceMaker(record).Make(); }

}  // namespace heddle::engine
