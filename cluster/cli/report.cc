// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text/utf8.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::cluster::cli {
namespace {

std::atomic<int> output_errno =
    0;  // of the first write that failed; output comes from a session's threads too

}  // namespace

int Report(const Status& status) {
  if (status.ok()) return 0;
  std::string text = status.ToString();
  if (status.position().IsKnown())
    text = fmt::format("{}: error: {}", status.position().ToString(),
                       text.substr(status.position().ToString().size() + 2));
  else if (text.find(": error: ") == std::string::npos)  // the compiler's diagnostics bring their own places
    text = "heddle: error: " + text;
  text = EscapeForTerminal(text) + '\n';
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  return ExitCode(status);
}

int ReportOutcome(const Arguments& arguments, const Status& status) {
  if (!arguments.Has("json")) return Report(status);
  std::fputs((OutcomeJson(status) + "\n").c_str(), stderr);
  return ExitCode(status);
}

void EndProcess(const Arguments& arguments, const Status& status) {
  ops::AbandonReplacements();
  // A line that is being printed is let through, but not waited for if nobody reads it.
  constexpr int kMostTries = 100;
  bool is_at_rest = false;
  for (int i = 0; i < kMostTries && !is_at_rest; ++i) {
    is_at_rest = ftrylockfile(stdout) == 0;
    if (!is_at_rest) usleep(1000);
  }
  const std::string text =
      arguments.Has("json") ? OutcomeJson(status) : fmt::format("heddle: error: {}", status.ToString());
  (void)!write(STDERR_FILENO, (text + "\n").data(), text.size() + 1);
  _exit(ExitCode(status));
}

void Warn(std::string_view text) {
  std::fputs(fmt::format("heddle: warning: {}\n", EscapeForTerminal(text)).c_str(), stderr);
}

bool PrintOutput(std::string_view text) {
  // A signal ends the wait for a slow reader; what it asks for is not said by an error of the output.
  const auto was_interrupted = [] {
    if (errno != EINTR) return false;
    std::clearerr(stdout);
    return true;
  };
  do {
    text.remove_prefix(std::fwrite(text.data(), 1, text.size(), stdout));
  } while (!text.empty() && was_interrupted());
  bool is_out = text.empty();
  while (is_out && std::fflush(stdout) != 0) is_out = was_interrupted();
  if (is_out) return true;
  int none = 0;
  output_errno.compare_exchange_strong(none, errno);
  return false;
}

Status OutputStatus() {
  const int number = output_errno;
  return number == 0 ? OkStatus()
                     : ResourceExhausted("cannot write to standard output: {}", strerror(number));
}

std::string OutcomeJson(const Status& status) {
  nlohmann::ordered_json json;
  json["code"] = ExitCode(status);
  json["kind"] = StatusCodeName(status.code());
  if (!status.ok()) {
    json["message"] = EscapeInvalidUtf8(status.message());
    if (status.position().IsKnown()) {
      json["file"] = EscapeInvalidUtf8(status.position().file);
      json["line"] = status.position().line;
      json["column"] = status.position().column;
    }
    for (const std::string& note : status.notes()) json["notes"].push_back(EscapeInvalidUtf8(note));
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace heddle::cluster::cli
