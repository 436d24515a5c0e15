// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/parse_chaos.h"

#include <charconv>
#include <set>

#include "compiler/parse/diagnostics.h"
#include "core/environment/random.h"
#include "core/text/time_text.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kDefaultKillMs = 2'000;
constexpr double kDefaultDrop = 0.01;
constexpr int64_t kDefaultPauseMs = 500;
constexpr int64_t kDefaultCheckpointMs = 1'000;
constexpr int64_t kLongestMs = 3'600'000;
constexpr double kMostDrop = 0.5;
constexpr int64_t kSeeds = 1'000'000;  // Random ones are short, to be typed again.

Status ReadTime(std::string_view name, std::string_view value, int64_t* ms) {
  const std::optional<int64_t> time = ParseTime(value, kLongestMs);
  if (!time) return Usage("--chaos: {} takes a time of up to 1h, such as 500ms or 2s, not '{}'", name, value);
  *ms = *time;
  return OkStatus();
}

Status ReadShare(std::string_view name, std::string_view value, double* share) {
  double percent = -1;
  const bool has_sign = value.ends_with('%');
  const char* const end = value.data() + value.size() - (has_sign ? 1 : 0);
  const auto [stop, error] = std::from_chars(value.data(), end, percent);
  if (!has_sign || error != std::errc() || stop != end || !(percent >= 0 && percent <= kMostDrop * 100))
    return Usage("--chaos: {} takes a share from 0% to 50%, not '{}'", name, value);
  *share = percent / 100;
  return OkStatus();
}

Status ReadSeed(std::string_view name, std::string_view value, uint64_t* seed) {
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, *seed);
  if (error != std::errc() || stop != end)
    return Usage("--chaos: {} takes a whole number, not '{}'", name, value);
  return OkStatus();
}

Status ReadPart(std::string_view name, std::string_view value, Chaos* chaos) {
  if (name == "kill") return ReadTime(name, value, &chaos->kill_ms);
  if (name == "pause") return ReadTime(name, value, &chaos->pause_ms);
  if (name == "checkpoint") return ReadTime(name, value, &chaos->checkpoint_ms);
  if (name == "drop") return ReadShare(name, value, &chaos->drop);
  if (name == "seed") return ReadSeed(name, value, &chaos->seed);
  const std::string nearest = compiler::SuggestName(name, {"kill", "drop", "pause", "checkpoint", "seed"});
  return Usage("--chaos does not know '{}'{}", name,
               nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest))
      .WithNote(
          "it takes kill=TIME, drop=SHARE, pause=TIME, checkpoint=TIME and seed=N, with commas between them");
}

}  // namespace

Result<Chaos> ParseChaos(std::string_view text) {
  Chaos chaos;
  chaos.seed = SystemRandom().Below(kSeeds);
  std::set<std::string_view> seen;
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view part = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    if (equals == std::string_view::npos)
      return Usage("--chaos takes NAME=VALUE with commas between them, not '{}'", part);
    if (!seen.insert(name).second) return Usage("--chaos: {} is given twice", name);
    HEDDLE_RETURN_IF_ERROR(ReadPart(name, part.substr(equals + 1), &chaos));
  }
  seen.erase("seed");
  if (seen.empty()) {
    chaos.kill_ms = kDefaultKillMs;
    chaos.drop = kDefaultDrop;
    chaos.pause_ms = kDefaultPauseMs;
    chaos.checkpoint_ms = kDefaultCheckpointMs;
  }
  return chaos;
}

}  // namespace heddle::cluster
