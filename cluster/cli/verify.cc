// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/process/interrupt.h"
#include "core/environment/child_process.h"
#include "core/environment/clock.h"
#include "ops/base/cpu.h"
#include "ops/io/checksums/sha256.h"
#include "ops/io/files/changed_files.h"

namespace heddle::cluster::cli {
namespace {

// A way of running the script, as words of a command line.
struct Way {
  std::string name;
  std::vector<std::string> words;
};

std::vector<Way> Ways() {
  std::vector<Way> ways = {
      {"run, 1 thread", {"run", "--threads", "1"}},
      {"run, all threads", {"run"}},
      {"run, 3 threads", {"run", "--threads", "3"}},
      {"run, nothing fused", {"run", "--fusion", "off"}},
      {"run, all fused", {"run", "--fusion", "all"}},
      {"run, fused without redundancy", {"run", "--fusion", "no-redundancy"}},
      {"run, fused at random", {"run", "--fusion-seed", "1"}},
      {"run, AVX2", {"run", "--cpu", "avx2"}},
      {"sim, 2 workers", {"sim", "--workers", "2", "--min-distributed-bytes", "0"}},
      {"sim, 3 workers, nothing fused",
       {"sim", "--workers", "3", "--min-distributed-bytes", "0", "--fusion", "off", "--threads", "1"}},
      {"sim, 5 workers, fused at random",
       {"sim", "--workers", "5", "--min-distributed-bytes", "0", "--fusion-seed", "2", "--threads", "2"}},
  };
  if (ops::SelectedCpu() == ops::Cpu::kAvx512) {
    ways.insert(ways.begin() + 8, {"run, AVX-512", {"run", "--cpu", "avx512"}});
    ways.push_back({"sim, AVX2 beside AVX-512",
                    {"sim", "--workers", "2", "--min-distributed-bytes", "0", "--cpu", "avx2,avx512"}});
  }
  return ways;
}

// What one way has made: of each output its content's hash. "" is all that it printed.
struct Outcome {
  int exit_code = 0;
  std::string printed;
  std::string outcome;  // With --json: how the run ended, as an object.
  std::map<std::string, std::string> hashes;
  double seconds = 0;

  std::string Hash() const {
    std::string all = std::to_string(exit_code);
    for (const auto& [name, hash] : hashes) all += "\n" + name + " " + hash;
    return Hex(all);
  }
  static std::string Hex(std::string_view bytes) {
    std::string text;
    for (const uint8_t byte : ops::Sha256({bytes})) text += fmt::format("{:02x}", byte);
    return text;
  }
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Options whose output differs from run to run: times, plans.
bool IsOfOneRun(const Option& option) { return option.name == "stats" || option.name == "explain"; }

std::vector<Option> Options() {
  std::vector<Option> options = RunOptions();
  std::erase_if(options, IsOfOneRun);
  return options;
}

// The words of `verify` as `run` and `sim` take them: those of the way, then those of the user, which win.
std::vector<std::string> WordsOf(const Way& way, const Arguments& arguments) {
  std::vector<std::string> words = {"heddle"};
  words.insert(words.end(), way.words.begin(), way.words.end());
  words.push_back("--quiet");  // what tells how far a run has come is no output of the script
  if (!arguments.Has("seed")) words.insert(words.end(), {"--seed", "1"});
  std::vector<std::string> last;
  for (const Option& option : Options()) {
    if (!arguments.Has(option.name)) continue;
    if (option.kind == Option::Kind::kRest) {
      last.push_back("-" + std::string(option.name));
      for (const std::string& value : arguments.rest(option.name)) last.push_back(value);
    } else if (option.kind == Option::Kind::kFlag) {
      words.push_back("--" + std::string(option.name));
    } else {
      for (const std::string& value : arguments.rest(option.name))
        words.insert(words.end(), {"--" + std::string(option.name), value});
    }
  }
  for (const std::string& script : arguments.positional()) words.push_back(script);
  words.insert(words.end(), last.begin(), last.end());
  return words;
}

Result<Descriptor> MakeFile() {
  Descriptor file = AboveThoseOfChild(Descriptor(memfd_create("heddle-verify", MFD_CLOEXEC)));
  if (!file.ok()) return ResourceExhausted("there is no descriptor for the output of the script");
  return file;
}

// The path by which another process of this user opens a file of this one.
std::string PathOf(const Descriptor& file) { return fmt::format("/proc/{}/fd/{}", getpid(), file.get()); }

// Waits for a child. A cancellation asks it to end: it is no part of what Ctrl-C at the terminal reaches, and
// goes on where a signal comes for this process alone.
int WaitFor(pid_t child, engine::Cancellation& cancellation) {
  cancellation.Listen([child](const Status&) { kill(child, SIGTERM); });
  siginfo_t ended = {};
  // The number stays that of the child until it is not listened any more.
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  cancellation.Listen(nullptr);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

// The last line of what a run with --json has printed: no output of the script. A process that was killed has
// none.
void TakeOutcome(Outcome* outcome) {
  std::string& printed = outcome->printed;
  const size_t end = printed.ends_with('\n') ? printed.size() - 1 : printed.size();
  const size_t before = end == 0 ? std::string::npos : printed.rfind('\n', end - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string line = printed.substr(begin, end - begin);
  if (!nlohmann::json::accept(line) || !line.starts_with("{\"code\":")) {
    outcome->outcome =
        OutcomeJson(Internal("the script's process ended with exit code {}", outcome->exit_code));
    return;
  }
  outcome->outcome = line;
  printed.resize(begin);
}

Result<Outcome> RunWay(const Way& way, const Arguments& arguments, engine::Cancellation& cancellation) {
  HEDDLE_ASSIGN_OR_RETURN(const Descriptor changed, MakeFile());
  HEDDLE_ASSIGN_OR_RETURN(const Descriptor log, MakeFile());
  setenv(ops::kChangedFilesVariable, PathOf(changed).c_str(), /*overwrite=*/1);
  Clock& clock = SystemClock();
  const int64_t begin = clock.MonotonicNs();
  const Result<pid_t> child = StartChild({.child = "the script",
                                          .program = "/proc/self/exe",
                                          .arguments = WordsOf(way, arguments),
                                          .log = log.get(),
                                          .hears_interrupts = false});
  unsetenv(ops::kChangedFilesVariable);
  HEDDLE_RETURN_IF_ERROR(child.status());
  const int exit_code = WaitFor(*child, cancellation);
  HEDDLE_RETURN_IF_ERROR(cancellation.why());
  Outcome outcome;
  outcome.seconds = static_cast<double>(clock.MonotonicNs() - begin) * 1e-9;
  outcome.exit_code = exit_code;
  outcome.printed = Contents(PathOf(log));
  if (arguments.Has("json")) TakeOutcome(&outcome);
  outcome.hashes[""] = Outcome::Hex(outcome.printed);
  std::istringstream paths(Contents(PathOf(changed)));
  for (std::string path; std::getline(paths, path);) outcome.hashes[path] = Outcome::Hex(Contents(path));
  return outcome;
}

// "what it prints and the file w.csv": the outputs whose content differs.
std::string Differences(const Outcome& a, const Outcome& b) {
  if (a.exit_code != b.exit_code) return fmt::format("the exit code ({} and {})", a.exit_code, b.exit_code);
  std::set<std::string> names;
  for (const Outcome* outcome : {&a, &b})
    for (const auto& [name, hash] : outcome->hashes) names.insert(name);
  std::vector<std::string> different;
  for (const std::string& name : names) {
    const auto left = a.hashes.find(name), right = b.hashes.find(name);
    if (left != a.hashes.end() && right != b.hashes.end() && left->second == right->second) continue;
    different.push_back(name.empty() ? "what it prints" : name);
  }
  return fmt::format("{}", fmt::join(different, ", "));
}

int Run(const Arguments& arguments) {
  const Result<engine::Script> script = ReadScript(arguments);
  if (!script.ok()) return ReportOutcome(arguments, script.status());
  if (!arguments.positional().empty() && arguments.positional()[0] == "-")
    return ReportOutcome(arguments, Usage("verify runs the script several times: give a file, or -e CODE"));
  const bool as_json = arguments.Has("json");
  nlohmann::ordered_json ways_json = nlohmann::ordered_json::array();
  std::vector<std::string> differences;
  Outcome first;
  int ways = 0;
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  for (const Way& way : Ways()) {
    const Result<Outcome> outcome = RunWay(way, arguments, cancellation);
    if (!outcome.ok()) return ReportOutcome(arguments, outcome.status());
    if (ways++ == 0) {
      first = *outcome;
      if (first.exit_code != 0) {
        std::fputs(as_json ? (first.outcome + "\n").c_str() : first.printed.c_str(), stderr);
        return first.exit_code;
      }
    }
    const bool is_same = outcome->Hash() == first.Hash();
    if (!is_same) differences.push_back(fmt::format("{}: {}", way.name, Differences(first, *outcome)));
    if (as_json) {
      ways_json.push_back(
          {{"way", way.name}, {"hash", outcome->Hash()}, {"same", is_same}, {"seconds", outcome->seconds}});
    } else {
      PrintOutput(fmt::format("  {:<34} {}  {:7.2f} s{}\n", way.name, outcome->Hash().substr(0, 16),
                              outcome->seconds, is_same ? "" : "  DIFFERENT"));
    }
  }
  std::vector<std::string> files;
  for (const auto& [name, hash] : first.hashes)
    if (!name.empty()) files.push_back(name);
  if (as_json) {
    PrintOutput(
        nlohmann::ordered_json{{"same", differences.empty()}, {"files", files}, {"ways", ways_json}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n");
  } else if (differences.empty()) {
    PrintOutput(fmt::format("{} ways, the same bytes: what it prints{}{}\n", ways, files.empty() ? "" : ", ",
                            fmt::join(files, ", ")));
  }
  if (differences.empty()) return 0;
  Status status = FailedPrecondition("{} of {} ways differ from the first one", differences.size(), ways);
  for (const std::string& difference : differences) status = status.WithNote(difference);
  return as_json ? ExitCode(status)
                 : Report(status.WithNote(
                       "times, dates and numbers that are drawn anew differ by themselves; all "
                       "else is a fault of Heddle"));
}

}  // namespace

const Verb kVerifyVerb = {"verify",
                          "run a script in many ways and compare all that it prints and writes",
                          "verify [OPTIONS] SCRIPT.dml|-e CODE [-args V... | -nvargs K=V...]",
                          Options(),
                          "heddle verify train.dml -nvargs X=data.csv model=w.csv",
                          Run,
                          /*takes_words=*/true};

}  // namespace heddle::cluster::cli
