// SPDX-License-Identifier: Apache-2.0
#include "core/environment/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <mutex>

#include "core/text/double_text.h"
#include "core/text/quoted.h"
#include "core/text/utf8.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};

std::mutex logger_mutex;
// Made when the first event is written, never destroyed: threads may log while the process ends.
std::shared_ptr<spdlog::logger>* logger = nullptr;

std::shared_ptr<spdlog::logger> MakeLogger(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.standard_error) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (!options.file.empty())
    sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
        options.file, static_cast<size_t>(options.file_bytes), static_cast<size_t>(options.old_files)));
  auto made = std::make_shared<spdlog::logger>("heddle", sinks.begin(), sinks.end());
  made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  made->set_level(spdlog::level::trace);  // The level is ours to check.
  made->flush_on(spdlog::level::info);
  return made;
}

spdlog::level::level_enum LevelOfLibrary(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

std::shared_ptr<spdlog::logger> CurrentLogger() {
  const std::lock_guard lock(logger_mutex);
  if (logger == nullptr) logger = new std::shared_ptr<spdlog::logger>(MakeLogger(LogOptions{}));
  return *logger;
}

}  // namespace

std::string_view Name(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  return std::nullopt;
}

LogField::LogField(std::string_view name, double value) : name(name), text(FormatDouble(value)) {}

Status ConfigureLog(const LogOptions& options) {
  if (options.standard_error && options.file.empty()) {
    SetLogLevel(options.level);
    const std::lock_guard lock(logger_mutex);
    if (logger != nullptr) *logger = MakeLogger(options);
    return OkStatus();  // The first event makes it.
  }
  try {
    std::shared_ptr<spdlog::logger> made = MakeLogger(options);
    const std::lock_guard lock(logger_mutex);
    if (logger == nullptr) logger = new std::shared_ptr<spdlog::logger>;
    *logger = std::move(made);
    SetLogLevel(options.level);
  } catch (const spdlog::spdlog_ex& error) {
    return PermissionDenied("log file cannot be opened: {}", options.file).WithNote(error.what());
  }
  return OkStatus();
}

void SetLogLevel(LogLevel level) { internal::log_level.store(level, std::memory_order_relaxed); }

namespace internal {

std::atomic<LogLevel> log_level{LogLevel::kWarning};

void WriteLog(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::string line(event);
  for (const LogField& field : fields) {
    line.push_back(' ');
    line.append(field.name);
    line.push_back('=');
    if (field.quoted)
      AppendName(field.text, &line);
    else
      line.append(field.text);
  }
  line = EscapeForTerminal(line);  // names and texts of others may hold anything
  try {
    CurrentLogger()->log(LevelOfLibrary(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (const spdlog::spdlog_ex&) {
    // A full disk must not end a job; the library reports to standard error itself.
  }
}

}  // namespace internal
}  // namespace heddle
