// SPDX-License-Identifier: Apache-2.0
#include "bench/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

#include "core/environment/clock.h"
#include "engine/engine.h"
#include "engine/interactive/interactive_session.h"

namespace heddle::bench {
namespace {

// "== NAME ROWS...", statements that prepare, "--", statements that are measured. $rows stands for the
// number.
struct Case {
  std::string name;
  std::vector<int64_t> rows;
  std::string preparation;
  std::string measured;
};

std::vector<Case> ReadCases(const std::string& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  bool is_measured = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      std::istringstream words(line.substr(3));
      words >> cases.emplace_back().name;
      for (int64_t rows; words >> rows;) cases.back().rows.push_back(rows);
      is_measured = false;
    } else if (line == "--") {
      is_measured = true;
    } else if (!cases.empty()) {
      (is_measured ? cases.back().measured : cases.back().preparation) += line + "\n";
    }
  }
  return cases;
}

// A library, and the variables of a case that its functions are called with.
class Contender {
 public:
  Contender(const std::vector<std::string>& libraries, int threads) {
    engine::EngineOptions options;
    options.libraries = libraries;
    options.session.threads = threads;
    options.session.seed = 1;
    Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::Create(std::move(options));
    status_ = engine.status();
    if (status_.ok()) engine_ = *std::move(engine);
  }

  void Prepare(const Case& one, int64_t rows) {
    best_ns_.reset();
    if (!engine_) return;
    session_ = engine_->NewSession({}, {{"rows", std::to_string(rows)}});
    status_ = session_->Run(one.preparation, nullptr);
  }

  void Run(const Case& one) {
    if (!status_.ok()) return;
    const int64_t begin_ns = SystemClock().MonotonicNs();
    status_ = session_->Run(one.measured, nullptr);
    const int64_t ns = SystemClock().MonotonicNs() - begin_ns;
    if (status_.ok()) best_ns_ = std::min(best_ns_.value_or(std::numeric_limits<int64_t>::max()), ns);
  }

  std::optional<double> milliseconds() const {
    return status_.ok() && best_ns_ ? std::optional<double>(static_cast<double>(*best_ns_) * 1e-6)
                                    : std::nullopt;
  }
  const Status& status() const { return status_; }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::InteractiveSession> session_;
  Status status_;
  std::optional<int64_t> best_ns_;
};

void Print(const BenchOptions& options, const Case& one, int64_t rows, double ms,
           std::optional<double> other_ms) {
  if (options.json) {
    std::string line =
        fmt::format(R"({{"bench":"library","case":"{}","rows":{},"ms":{:.3f})", one.name, rows, ms);
    if (other_ms) line += fmt::format(R"(,"other_ms":{:.3f},"ratio":{:.2f})", *other_ms, *other_ms / ms);
    std::printf("%s}\n", line.c_str());
  } else {
    std::printf("%-28s %9ld %12.3f ms", one.name.c_str(), static_cast<long>(rows), ms);
    if (other_ms) std::printf(" %12.3f ms %8.2f", *other_ms, *other_ms / ms);
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace

int RunLibrary(const BenchOptions& options, const std::vector<std::string>& files) {
  bool all_ran = true;
  for (const std::string& file : files) {
    const std::vector<Case> cases = ReadCases(file);
    if (cases.empty()) {
      std::fprintf(stderr, "heddle-bench: %s: there is no case (== NAME ROWS...)\n", file.c_str());
      return 2;
    }
    for (const Case& one : cases) {
      if (one.name.find(options.only) == std::string::npos) continue;
      for (const int64_t rows : one.rows) {
        Contender own({}, options.threads);
        std::optional<Contender> other;
        if (!options.data.empty()) other.emplace(std::vector<std::string>{options.data}, options.threads);
        own.Prepare(one, rows);
        if (other) other->Prepare(one, rows);
        for (int round = 0; round < options.rounds; ++round) {
          own.Run(one);
          if (other) other->Run(one);
        }
        if (const std::optional<double> ms = own.milliseconds()) {
          Print(options, one, rows, *ms, other ? other->milliseconds() : std::nullopt);
        } else {
          std::fprintf(stderr, "heddle-bench: %s: %s\n", one.name.c_str(), own.status().ToString().c_str());
          all_ran = false;
        }
        if (other && !other->milliseconds())
          std::fprintf(stderr, "heddle-bench: %s, the other library: %s\n", one.name.c_str(),
                       other->status().ToString().c_str());
      }
    }
  }
  return all_ran ? 0 : 1;
}

}  // namespace heddle::bench
