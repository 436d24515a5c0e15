// SPDX-License-Identifier: Apache-2.0
#include "cluster/progress/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/call_site.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr double kNsOfSecond = 1e9;
constexpr int64_t kRateNs = 1'000'000'000;       // Rates are those of about so long.
constexpr int64_t kLeastSeenNs = 1'000'000'000;  // Nothing is foretold from less.
constexpr size_t kColumnsOfLine = 160;           // Where there is no terminal.

class StandardErrorOutput : public ProgressOutput {
 public:
  bool is_terminal() const override {
    const char* const terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  }
  int columns() const override {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  void Write(std::string_view text) override {
    while (!text.empty()) {
      const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // Nobody sees it.
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
};

// "12 s", "3 min 20 s", "2 h 5 min".
std::string Duration(int64_t ns) {
  const int64_t seconds = ns / 1'000'000'000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

std::string Gigabytes(int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e9); }

// "45 M", "1.2 k", "850"
std::string Count(double number) {
  if (number >= 9.995e9) return fmt::format("{:.0f} G", number / 1e9);
  if (number >= 9.995e6) return fmt::format("{:.0f} M", number / 1e6);
  if (number >= 9.995e3) return fmt::format("{:.0f} k", number / 1e3);
  return fmt::format("{:.0f}", number);
}

// "line 7 in kmeans": the line of the user's script, where a function of others was called.
std::string Where(const ProgressState& state) {
  std::string where = fmt::format("line {}", state.main_line > 0 ? state.main_line : state.line);
  if (state.function.empty()) return where;
  where += " in " + EscapeForTerminal(state.function);
  if (state.line > 0 && state.main_line != state.line) where += fmt::format(" line {}", state.line);
  return where;
}

// The outermost loop of more than one round; end() where nobody knows how many rounds it has.
auto OutermostOf(const std::vector<ProgressState::Loop>& loops) {
  const auto outermost = std::ranges::find_if(loops, [](const auto& loop) { return loop.rounds != 1; });
  return outermost != loops.end() && outermost->rounds == 0 ? loops.end() : outermost;
}

// Between 0 and 1: the rounds that are over of the loops, each within one round of the one around it.
std::optional<double> DoneOf(const std::vector<ProgressState::Loop>& loops) {
  const auto outermost = OutermostOf(loops);
  if (outermost == loops.end()) return std::nullopt;
  double done = 0, round = 1;
  for (auto loop = outermost; loop != loops.end() && loop->rounds > 0; ++loop) {
    const auto rounds = static_cast<double>(loop->rounds);
    done += round * std::min(static_cast<double>(loop->round), rounds) / rounds;
    round /= rounds;
  }
  return std::min(done, 1.0);
}

std::string Bar(double done) {
  constexpr int kWidth = 20;
  const int full = std::clamp(static_cast<int>(done * kWidth), 0, kWidth);
  return fmt::format("[{}{}] {:3.0f} %", std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(kWidth - full), '.'), done * 100);
}

}  // namespace

std::string ToJson(const Progress& progress) {
  const ProgressState& state = progress.state;
  nlohmann::json json = {{"file", state.file},
                         {"line", state.line},
                         {"function", state.function},
                         {"main_line", state.main_line},
                         {"rows", state.rows},
                         {"plan", state.plan},
                         {"cost", state.plan_cost_ns},
                         {"done", state.plan_done_ns},
                         {"used", progress.used_bytes},
                         {"limit", progress.limit_bytes},
                         {"loops", nlohmann::json::array()}};
  for (const ProgressState::Loop& loop : state.loops)
    json["loops"].push_back({loop.line, loop.number, loop.round, loop.rounds});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Progress> ParseProgress(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto number = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : int64_t{0};
  };
  const auto word = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Progress progress;
  progress.used_bytes = number("used");
  progress.limit_bytes = number("limit");
  ProgressState& state = progress.state;
  state.file = word("file");
  state.function = word("function");
  state.line = static_cast<int32_t>(number("line"));
  state.main_line = static_cast<int32_t>(number("main_line"));
  state.rows = number("rows");
  state.plan = static_cast<uint64_t>(number("plan"));
  state.plan_cost_ns = number("cost");
  state.plan_done_ns = number("done");
  const auto loops = json.find("loops");
  if (loops == json.end() || !loops->is_array()) return progress;
  for (const nlohmann::json& loop : *loops) {
    constexpr size_t kNumbers = 4;
    const bool is_loop =
        loop.is_array() && loop.size() == kNumbers &&
        std::ranges::all_of(loop, [](const auto& entry) { return entry.is_number_integer(); });
    if (!is_loop) continue;
    state.loops.push_back({.line = loop[0].get<int32_t>(),
                           .number = loop[1].get<uint64_t>(),
                           .round = loop[2].get<uint64_t>(),
                           .rounds = loop[3].get<uint64_t>()});
  }
  return progress;
}

RemainingTime::Estimate RemainingTime::Look(const ProgressState& state, int64_t now_ns) {
  const std::optional<double> done = DoneOf(state.loops);
  const auto outermost = OutermostOf(state.loops);
  if (const uint64_t loop = outermost == state.loops.end() ? 0 : outermost->number; loop != loop_) {
    loop_ = loop;
    loop_since_ns_ = now_ns;
    loop_begin_ = done.value_or(0);
  }
  if (state.plan != plan_) {
    plan_ = state.plan;
    plan_since_ns_ = now_ns;
  }
  Estimate estimate{.done = done};
  if (done) {
    const double gained = *done - loop_begin_;
    const auto seen_ns = static_cast<double>(now_ns - loop_since_ns_);
    if (gained > 0 && now_ns - loop_since_ns_ >= kLeastSeenNs)
      estimate.left_ns = static_cast<int64_t>(seen_ns / gained * (1 - *done));
    return estimate;
  }
  // Of one plan the cost model says how its operators share out the time, and before any of them is through
  // how much it is. In a loop more plans follow.
  if (!state.loops.empty() || plan_ == 0 || state.plan_cost_ns <= 0) return estimate;
  const auto cost = static_cast<double>(state.plan_cost_ns);
  const double of_plan = std::min(static_cast<double>(state.plan_done_ns) / cost, 1.0);
  const auto seen_ns = static_cast<double>(now_ns - plan_since_ns_);
  if (of_plan >= 1) return estimate;
  estimate.done = of_plan;
  if (of_plan > 0 && now_ns - plan_since_ns_ >= kLeastSeenNs)
    estimate.left_ns = static_cast<int64_t>(seen_ns / of_plan * (1 - of_plan));
  else if (cost > seen_ns)
    estimate.left_ns = static_cast<int64_t>(cost - seen_ns);
  return estimate;
}

ProgressState MostSeenStatement::Look(ProgressState state) {
  const bool is_same_run_of_loop = !seen_.empty() && !seen_.back().loops.empty() && !state.loops.empty() &&
                                   seen_.back().loops.front().number == state.loops.front().number;
  if (!is_same_run_of_loop || seen_.back().loops == state.loops) seen_.clear();
  seen_.push_back(state);
  if (seen_.size() > kMostLooks) seen_.pop_front();
  const auto is_at = [](const ProgressState& a, const ProgressState& b) {
    return a.line == b.line && a.main_line == b.main_line && a.function == b.function && a.file == b.file;
  };
  std::ptrdiff_t most = 0;
  for (auto look = seen_.rbegin(); look != seen_.rend(); ++look) {
    const std::ptrdiff_t times =
        std::ranges::count_if(seen_, [&](const ProgressState& other) { return is_at(*look, other); });
    if (times <= most) continue;
    most = times;
    state.file = look->file;
    state.line = look->line;
    state.main_line = look->main_line;
    state.function = look->function;
  }
  return state;
}

ProgressOutput& StandardError() {
  static StandardErrorOutput output;
  return output;
}

ProgressLine::ProgressLine(Clock& clock, ProgressOutput& output,
                           std::function<std::optional<Progress>()> look)
    : clock_(clock),
      output_(output),
      look_(std::move(look)),
      begin_ns_(clock.MonotonicNs()),
      last_line_ns_(begin_ns_),
      last_rows_ns_(begin_ns_) {}

void ProgressLine::Tick() {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.MonotonicNs();
  const bool is_terminal = output_.is_terminal();
  std::optional<Progress> progress = look_();
  if (!progress || progress->state.line == 0) return Erase();
  progress->state = statement_.Look(std::move(progress->state));
  const size_t columns =
      is_terminal ? static_cast<size_t>(std::max(output_.columns(), 2)) - 1 : kColumnsOfLine;
  const std::string text = Text(*progress, now_ns, columns);
  if (is_terminal) {
    if (now_ns - begin_ns_ < kSilenceNs) return;
    output_.Write("\r" + text + "\x1b[K");
    is_shown_ = true;
  } else if (now_ns - last_line_ns_ >= kPauseNs) {
    output_.Write("heddle: " + text + "\n");
    last_line_ns_ = now_ns;
  }
}

std::string ProgressLine::Text(const Progress& progress, int64_t now_ns, size_t columns) {
  const ProgressState& state = progress.state;
  if (now_ns - last_rows_ns_ >= kRateNs) {
    rows_per_s_ = static_cast<double>(state.rows - last_rows_) * kNsOfSecond /
                  static_cast<double>(now_ns - last_rows_ns_);
    last_rows_ = state.rows;
    last_rows_ns_ = now_ns;
  }
  const RemainingTime::Estimate estimate = remaining_.Look(state, now_ns);

  // What is left out first where there is no room has the largest number.
  struct Part {
    std::string text;
    int rank;
  };
  std::vector<Part> parts = {{Duration(now_ns - begin_ns_), 0}, {Where(state), 1}};
  if (!state.loops.empty()) {
    const ProgressState::Loop& loop = state.loops.back();
    parts.push_back({loop.rounds > 0
                         ? fmt::format("round {} of {}", std::min(loop.round + 1, loop.rounds), loop.rounds)
                         : fmt::format("round {}", loop.round + 1),
                     3});
  }
  if (estimate.done) parts.push_back({Bar(*estimate.done), 5});
  if (state.rows > 0) parts.push_back({Count(static_cast<double>(state.rows)) + " rows", 7});
  if (rows_per_s_ > 0) parts.push_back({Count(rows_per_s_) + " rows/s", 6});
  parts.push_back({progress.limit_bytes > 0 ? fmt::format("{} of {} GB", Gigabytes(progress.used_bytes),
                                                          Gigabytes(progress.limit_bytes))
                                            : fmt::format("{} GB", Gigabytes(progress.used_bytes)),
                   4});
  if (estimate.left_ns) parts.push_back({"about " + Duration(*estimate.left_ns) + " left", 2});
  const auto joined = [&] {
    std::string text;
    for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
    return text;
  };
  std::string text = joined();
  while (text.size() > columns && parts.size() > 1) {
    parts.erase(std::ranges::max_element(parts, {}, &Part::rank));
    text = joined();
  }
  return text.substr(0, columns);
}

void ProgressLine::Erase() {
  if (!is_shown_) return;
  output_.Write("\r\x1b[K");
  is_shown_ = false;
}

void ProgressLine::Hide() {
  const std::lock_guard lock(mutex_);
  Erase();
}

void ProgressLine::TryHide() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) Erase();
}

}  // namespace heddle::cluster
