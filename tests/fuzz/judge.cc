// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/judge.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "core/text/utf8.h"
#include "tests/fuzz/script_text.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kUnprintable = "unprintable error text";
constexpr int kExitBug = 70;
constexpr int kExitCancelled = 8;
constexpr int kExitMemory = 5;
constexpr int kExitCompile = 3;
// ok, script, usage, compile, data, memory or disk. 6 (unreachable) and 8 (cancelled) have no reason here.
constexpr int kLastExitOfAScript = 5;
constexpr std::ptrdiff_t kMostLines = 12;
/// Beside what --memory says: 15 % of it, and code and libraries.
constexpr int64_t kMostMemory = kMemoryPromise + kMemoryPromise * 15 / 100 + (int64_t{64} << 20);

// What --memory says covers the process, but not what a sanitizer keeps beside it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false;
#else
constexpr bool kCountsMemory = true;
#endif

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Warnings are told before; the message begins behind them.
Lines ErrorOf(const std::string& errors) {
  Lines lines = SplitLines(errors);
  const auto begin = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("error: ") != std::string::npos && line.find(": warning: ") == std::string::npos;
  });
  lines.erase(lines.begin(), begin);
  return lines;
}

// "case.dml:3:14: error: ...", or of a file that it sources.
bool HasPlace(const std::string& line) {
  const size_t error = line.find(": error: ");
  if (error == std::string::npos) return false;
  size_t at = error;
  for (int numbers = 0; numbers < 2; ++numbers) {
    const size_t end = at;
    while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9') --at;
    if (at == end || at == 0 || line[at - 1] != ':') return false;
    --at;
  }
  return at > 0;
}

// For people: the first line of the error, or what else is told.
std::string ErrorLine(const Watched& watched) {
  const Lines lines = ErrorOf(watched.errors);
  return FirstLine(lines.empty() ? watched.errors : lines[0]);
}

std::optional<Fault> JudgeText(const std::string& errors) {
  for (size_t i = 0; i < errors.size();) {
    const size_t length = Utf8Length(errors, i);
    const auto byte = static_cast<unsigned char>(errors[i]);
    if (length == 0 || (length == 1 && byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
      return Fault{kUnprintable, fmt::format("byte {:#04x} in {}", byte, FirstLine(errors))};
    i += length;
  }
  return std::nullopt;
}

std::optional<Fault> JudgeError(const Watched& watched) {
  if (std::optional<Fault> fault = JudgeText(watched.errors)) return fault;
  const Lines lines = ErrorOf(watched.errors);
  if (lines.empty()) return Fault{"silent failure", fmt::format("exit {} without an error", watched.code)};
  // Diagnostics of a script are each told in full; one message is not longer than this.
  std::ptrdiff_t count = 0;
  for (const std::string& line : lines) {
    if (HasPlace(line)) count = 0;
    if (++count > kMostLines) return Fault{"long error", lines[0]};
  }
  if (!HasPlace(lines[0])) return Fault{"error without a place", lines[0]};
  return std::nullopt;
}

std::map<std::string, std::string> FilesIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder)] = testing_support::ReadText(entry.path());
  return files;
}

Run RunIn(const FuzzCase& c, std::vector<std::string> words, const std::string& binary,
          const Limits& limits) {
  const testing_support::TemporaryFolder folder;
  WriteFiles(c, folder.path());
  words.insert(words.begin(), binary);
  Run run;
  run.watched = Watch(words, folder.path(), limits);
  run.files = FilesIn(folder.path());
  return run;
}

// Where two texts part, for people.
std::string Difference(const std::string& a, const std::string& b) {
  const Lines left = SplitLines(a), right = SplitLines(b);
  size_t i = 0;
  while (i < left.size() && i < right.size() && left[i] == right[i]) ++i;
  const auto line = [&](const Lines& lines) {
    return i < lines.size() ? lines[i].substr(0, 200) : "nothing\n";
  };
  return fmt::format("line {}: {}and {}", i + 1, line(left), line(right));
}

bool ReadsTheClock(const FuzzCase& c) {
  const Lines tokens = SplitTokens(c.files.at(kScriptName));
  return std::find(tokens.begin(), tokens.end(), "time") != tokens.end();
}

}  // namespace

std::string Fault::Signature() const {
  if (kind == kUnprintable) return kind;  // Whatever the bytes are.
  std::string signature = kind + ": ";
  for (const std::string& token : SplitTokens(FirstLine(detail)))
    signature += IsNumberToken(token) ? "N" : token[0] == '\'' || token[0] == '"' ? "'...'" : token;
  return signature.substr(0, 160);
}

std::optional<Fault> JudgeAlone(const Run& run) {
  const Watched& watched = run.watched;
  const std::string error = ErrorLine(watched);
  if (kCountsMemory && (watched.end == Watched::End::kTooLarge || watched.peak_bytes > kMostMemory))
    return Fault{"memory", fmt::format("{} MB, {} promised; {}", watched.peak_bytes >> 20,
                                       kMemoryPromise >> 20, error)};
  if (watched.end == Watched::End::kStoodStill) return Fault{"stands still", error};
  if (watched.end == Watched::End::kKilled) return Fault{"does not end at Ctrl-C", error};
  // Compiling is not interrupted gently, and need not be: it takes no time.
  if (watched.end == Watched::End::kInterrupted && watched.signal == SIGINT)
    return Fault{"compiles for ever", error};
  if (watched.signal != 0) return Fault{fmt::format("signal {}", watched.signal), error};
  if (watched.code == kExitBug) return Fault{"exit 70", error};
  if (watched.end == Watched::End::kInterrupted && watched.code == kExitCancelled) return std::nullopt;
  if (watched.code > kLastExitOfAScript) return Fault{fmt::format("exit {}", watched.code), error};
  for (const auto& [name, bytes] : run.files)
    if (name.find(".heddle") != std::string::npos) return Fault{"file left behind", name};
  return watched.code == 0 ? JudgeText(watched.errors) : JudgeError(watched);
}

std::optional<Fault> JudgeTogether(const FuzzCase& c, const Run& first, const Run& second) {
  const Watched &a = first.watched, &b = second.watched;
  const auto out_of_bounds = [](const Watched& watched) {
    return watched.end != Watched::End::kItself || watched.code == kExitMemory;
  };
  // Plans differ in what they hold at a time and how long they take.
  if (c.agreement == Agreement::kNothing || out_of_bounds(a) || out_of_bounds(b)) return std::nullopt;
  if (c.agreement == Agreement::kCompile) {
    if (b.code == 0 || a.code == b.code) return std::nullopt;
    return Fault{"check differs",
                 fmt::format("run ends with {}, check with {}: {}", a.code, b.code, ErrorLine(b))};
  }
  if (ReadsTheClock(c)) return std::nullopt;
  if (a.code != b.code)
    return Fault{"exit codes differ",
                 fmt::format("{} and {}: {}{}", a.code, b.code, ErrorLine(a), ErrorLine(b))};
  if (a.code != 0) return std::nullopt;
  if (a.output != b.output) return Fault{"bytes differ", Difference(a.output, b.output)};
  for (const auto& [name, bytes] : first.files) {
    const auto found = second.files.find(name);
    if (found == second.files.end()) return Fault{"files differ", name + " is written by one run only"};
    if (found->second != bytes) return Fault{"files differ", name + " " + Difference(bytes, found->second)};
  }
  return std::nullopt;
}

Judgement RunAndJudge(const FuzzCase& c, const std::string& binary, const Limits& limits) {
  Judgement judgement;
  const Run first = RunIn(c, FirstRun(c), binary, limits);
  judgement.fault = JudgeAlone(first);
  judgement.succeeded = first.watched.end == Watched::End::kItself && first.watched.code == 0;
  // What runs for ever does so in every way.
  if (judgement.fault || c.second_run.empty() || first.watched.end != Watched::End::kItself) return judgement;
  const Run second = RunIn(c, SecondRun(c), binary, limits);
  judgement.fault = JudgeAlone(second);
  if (!judgement.fault) judgement.fault = JudgeTogether(c, first, second);
  if (judgement.fault) judgement.fault->detail += fmt::format(" (heddle {})", fmt::join(c.second_run, " "));
  return judgement;
}

}  // namespace heddle::fuzz
