// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/chaos.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace heddle::cluster {
namespace {

constexpr size_t kMostReportedKills = 8;

// As --chaos takes it: 500ms, 2s.
std::string TimeText(int64_t ms) {
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

double Seconds(int64_t ms) { return static_cast<double>(ms) / 1e3; }

std::string Counted(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

std::string Chaos::ToText() const {
  std::string text;
  if (kill_ms > 0) text += fmt::format("kill={},", TimeText(kill_ms));
  if (drop > 0) text += fmt::format("drop={:g}%,", drop * 100);
  if (pause_ms > 0) text += fmt::format("pause={},", TimeText(pause_ms));
  if (checkpoint_ms > 0) text += fmt::format("checkpoint={},", TimeText(checkpoint_ms));
  return text + fmt::format("seed={}", seed);
}

std::string ChaosReport::ToText() const {
  std::string text = fmt::format("chaos {}: {}\n", chaos.ToText(), Counted(attempts, "attempt", "attempts"));
  if (chaos.kill_ms > 0) {
    text += fmt::format("  killed    {}", Counted(static_cast<int64_t>(kills.size()), "worker", "workers"));
    for (size_t i = 0; i < kills.size() && i < kMostReportedKills; ++i)
      text += fmt::format("{} {} at {:.1f} s of attempt {}", i == 0 ? ":" : ",", kills[i].rank,
                          Seconds(kills[i].at_ms), kills[i].attempt);
    text += kills.size() > kMostReportedKills ? ", ...\n" : "\n";
  }
  if (chaos.pause_ms > 0)
    text += fmt::format("  paused    {}, {:.1f} s in all\n", Counted(pauses, "time", "times"),
                        Seconds(paused_ms));
  if (chaos.drop > 0)
    text += fmt::format("  lost      {} of {} between workers, each with its connection\n", lost_messages,
                        Counted(messages, "message", "messages"));
  text += fmt::format("  repeated  {}; {} of output and {} of earlier attempts\n",
                      attempts == 1 ? "nothing" : Counted(attempts - 1, "attempt", "attempts"),
                      Counted(repeated_bytes, "byte", "bytes"), Counted(restored_files, "file", "files"));
  if (chaos.checkpoint_ms > 0)
    text += fmt::format("  resumed   {} from a checkpoint\n", Counted(resumed, "attempt", "attempts"));
  if (rarer_from_attempt > 0)
    text += fmt::format(
        "  rarer     attempts ended faster than the run takes: from attempt {} on faults were rarer, {:g} times in "
        "the last\n",
        rarer_from_attempt, rarer_by);
  return text;
}

std::string ChaosReport::ToJson() const {
  nlohmann::ordered_json json;
  json["chaos"] = chaos.ToText();
  json["attempts"] = attempts;
  json["kills"] = nlohmann::ordered_json::array();
  for (const Kill& kill : kills)
    json["kills"].push_back({{"attempt", kill.attempt}, {"worker", kill.rank}, {"at_ms", kill.at_ms}});
  json["pauses"] = pauses;
  json["paused_ms"] = paused_ms;
  json["messages"] = messages;
  json["lost_messages"] = lost_messages;
  json["repeated_output_bytes"] = repeated_bytes;
  json["restored_files"] = restored_files;
  json["resumed_attempts"] = resumed;
  json["rarer_from_attempt"] = rarer_from_attempt;
  json["rarer_by"] = rarer_by;
  return json.dump();
}

}  // namespace heddle::cluster
