// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/report/charts.h"
#include "engine/report/report.h"

namespace heddle::engine {
namespace {

using Json = nlohmann::ordered_json;

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

// A name for a process, or for one of its threads.
Json NameOf(const char* kind, int rank, size_t thread, const std::string& name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json ArgumentsOf(const RecordedSite& site, const RecordedEvent& event) {
  Json arguments = Json::object();
  if (site.line > 0) arguments["place"] = site.file + ":" + std::to_string(site.line);
  if (!site.stream.empty()) arguments["stream"] = site.stream;
  if (event.rows > 0) arguments[site.kind == RecordedKind::kLoop ? "rounds" : "rows"] = event.rows;
  if (event.bytes > 0) arguments["bytes"] = event.bytes;
  return arguments;
}

class TraceMaker {
 public:
  explicit TraceMaker(const RunRecord& record) : record_(record), begin_ns_(BeginOf(record)) {}

  std::string Make() {
    Json json;
    json["displayTimeUnit"] = "ms";
    int64_t dropped = 0;
    for (const RankRecord& rank : record_.records) {
      events_.push_back(NameOf("process_name", rank.rank, 0, "worker " + std::to_string(rank.rank)));
      for (size_t i = 0; i < rank.threads.size(); ++i) {
        dropped += rank.threads[i].dropped;
        Add(rank, i + 1);
      }
      AddMemory(rank);
    }
    json["otherData"] = {{"script", record_.script},
                         {"ranks", record_.ranks},
                         {"threads", record_.threads},
                         {"fusion", record_.fusion},
                         {"dropped_events", dropped}};
    if (!record_.error.empty()) json["otherData"]["error"] = record_.error;
    json["traceEvents"] = std::move(events_);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  void Add(const RankRecord& rank, size_t number) {
    const RecordedThread& thread = rank.threads[number - 1];
    events_.push_back(NameOf("thread_name", rank.rank, number, thread.name));
    for (const RecordedEvent& event : thread.events) {
      const RecordedSite& site = rank.sites[event.site];
      Json json = {{"name", site.name}, {"cat", Name(site.kind)}, {"pid", rank.rank}, {"tid", number}};
      if (site.kind == RecordedKind::kCopy) {
        // Several are on their way at once, and none is inside of another.
        json["id"] = ++copies_;
        AddPart(json, "b", event.begin_ns, ArgumentsOf(site, event));
        AddPart(json, "e", event.begin_ns + event.duration_ns, Json::object());
        continue;
      }
      json["ph"] = "X";
      json["ts"] = Microseconds(event.begin_ns - begin_ns_);
      json["dur"] = Microseconds(event.duration_ns);
      json["args"] = ArgumentsOf(site, event);
      events_.push_back(std::move(json));
    }
  }

  void AddPart(Json json, const char* phase, int64_t at_ns, Json arguments) {
    json["ph"] = phase;
    json["ts"] = Microseconds(at_ns - begin_ns_);
    json["args"] = std::move(arguments);
    events_.push_back(std::move(json));
  }

  void AddMemory(const RankRecord& rank) {
    for (const MemoryPoint& point : MemoryOf(rank))
      events_.push_back({{"name", "memory"},
                         {"ph", "C"},
                         {"pid", rank.rank},
                         {"tid", 0},
                         {"ts", Microseconds(point.at_ns - begin_ns_)},
                         {"args", {{"bytes", point.bytes}}}});
  }

  const RunRecord& record_;
  const int64_t begin_ns_;
  int64_t copies_ = 0;
  Json events_ = Json::array();
};

}  // namespace

std::string ToTrace(const RunRecord& record) { return TraceMaker(record).Make(); }

}  // namespace heddle::engine
