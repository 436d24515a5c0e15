// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace heddle {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
std::string_view Name(LogLevel level);  ///< "debug", "info", "warning", "error", "off"
std::optional<LogLevel> ParseLogLevel(std::string_view name);

/// One "name=value" of an event.
struct LogField {
  LogField(std::string_view name, std::string_view value) : name(name), text(value), quoted(true) {}
  LogField(std::string_view name, const char* value) : LogField(name, std::string_view(value)) {}
  LogField(std::string_view name, const std::string& value) : LogField(name, std::string_view(value)) {}
  LogField(std::string_view name, bool value) : name(name), text(value ? "true" : "false") {}
  LogField(std::string_view name, double value);
  LogField(std::string_view name, std::integral auto value) : name(name), text(std::to_string(value)) {}
  LogField(std::string_view name, const Status& value) : LogField(name, std::string_view(value.ToString())) {}

  std::string_view name;
  std::string text;
  bool quoted = false;
};

struct LogOptions {
  LogLevel level = LogLevel::kWarning;
  bool standard_error = true;
  std::string file;  ///< Also here, if not empty; the folder must exist.
  int64_t file_bytes =
      int64_t{10} << 20;  ///< A file that would grow past this is renamed to file.1 and so on,
  int old_files = 3;      ///< of which so many are kept.
};

/// Where events go from now on. Without a call: warnings and errors to standard error. kPermissionDenied when
/// the file cannot be opened (then nothing has changed). Call it before there are other threads.
Status ConfigureLog(const LogOptions& options);
/// Any thread.
void SetLogLevel(LogLevel level);

namespace internal {
extern std::atomic<LogLevel> log_level;
void WriteLog(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);
}  // namespace internal

inline bool IsLogged(LogLevel level) { return level >= internal::log_level.load(std::memory_order_relaxed); }

}  // namespace heddle

/// HEDDLE_LOG(kInfo, "worker joined", {"worker", id}, {"memory_bytes", bytes}): an event with fields.
/// Thread-safe. The fields are evaluated only if the level is logged. Never inside kernels.
#define HEDDLE_LOG(level, event, ...)                                                  \
  (::heddle::IsLogged(::heddle::LogLevel::level)                                       \
       ? ::heddle::internal::WriteLog(::heddle::LogLevel::level, event, {__VA_ARGS__}) \
       : void())
