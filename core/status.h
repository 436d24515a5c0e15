// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/source_position.h"

namespace heddle {

/// gRPC's codes, so that a failure crosses machines unchanged. What a user's exit code becomes is in
/// ExitCode().
enum class StatusCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,    ///< The script is wrong and that is known before anything runs (exit 3).
  kDeadlineExceeded = 4,   ///< A job was not finished in the time that its user gave it (exit 6).
  kNotFound = 5,           ///< An input does not exist (exit 4).
  kPermissionDenied = 7,   ///< (exit 6)
  kResourceExhausted = 8,  ///< Memory or disk (exit 5).
  kFailedPrecondition =
      9,                ///< A fault of the script that shows while it runs: shapes, bounds, values (exit 1).
  kAborted = 10,        ///< stop() or a failed assert() of the script (exit 1).
  kUnimplemented = 12,  ///< Part of DML that Heddle does not run yet; always says which (exit 3).
  kInternal = 13,       ///< Our bug (exit 70).
  kUnavailable = 14,    ///< A peer, worker or master cannot be reached (exit 6).
  kDataLoss = 15,       ///< An input file is malformed (exit 4).
  kUsage = 17,          ///< Wrong command line (exit 2).
};

const char* StatusCodeName(StatusCode code);

/// The outcome of something that may fail. Ok is one null pointer. Value type, cheap to copy.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  /// What happened, without the place: fixed words first, values last.
  const std::string& message() const;
  const SourcePosition& position() const;
  /// Further lines for the user: why, and what to do next.
  const std::vector<std::string>& notes() const;
  /// Names of which the user has to choose one, where that would mend it; a note lists them as well.
  const std::vector<std::string>& choices() const;
  /// True when every rank of the job comes to this failure by itself, at the same step of the script: it
  /// follows from what all of them have alike (program, scalars, sizes, what rank 0 has told all). False for
  /// what may have happened on this rank alone (memory, files, links, kernels): the others must be told.
  /// It does not travel with the status: on which ranks a failure is that was received, the receiver knows.
  bool is_on_every_rank() const { return rep_ != nullptr && rep_->is_on_every_rank; }

  /// Adds the place unless one is known already (the innermost place wins), and a note for each call that it
  /// was put in place of.
  Status At(const SourcePosition& position) const;
  Status WithNote(std::string note) const;
  Status WithCode(StatusCode code) const;
  Status WithChoices(std::vector<std::string> names) const;
  Status OnEveryRank() const;  ///< Says that is_on_every_rank().
  Status OnThisRank() const;   ///< Says that it is not, whatever was said before.

  /// "file:line:column: message" followed by one line per note; at most 12 lines.
  std::string ToString() const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    SourcePosition position;
    std::vector<std::string> notes;
    std::vector<std::string> choices;
    bool is_on_every_rank = false;
  };
  /// A copy that `change` has changed; ok stays ok.
  template <typename Change>
  Status Changed(const Change& change) const;

  std::shared_ptr<const Rep> rep_;
};

/// The process exit code of a failure: 0 ok, 1 script fault, 2 usage, 3 compile, 4 data, 5 memory or disk,
/// 6 unreachable, 8 cancelled, 70 bug.
int ExitCode(const Status& status);

inline Status OkStatus() { return Status(); }

#define HEDDLE_STATUS_FACTORY(Name)                                                       \
  template <typename... Args>                                                             \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {                       \
    return Status(StatusCode::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
  }
HEDDLE_STATUS_FACTORY(Cancelled)
HEDDLE_STATUS_FACTORY(InvalidArgument)
HEDDLE_STATUS_FACTORY(NotFound)
HEDDLE_STATUS_FACTORY(PermissionDenied)
HEDDLE_STATUS_FACTORY(ResourceExhausted)
HEDDLE_STATUS_FACTORY(FailedPrecondition)
HEDDLE_STATUS_FACTORY(Aborted)
HEDDLE_STATUS_FACTORY(Unimplemented)
HEDDLE_STATUS_FACTORY(Internal)
HEDDLE_STATUS_FACTORY(Unavailable)
HEDDLE_STATUS_FACTORY(DataLoss)
HEDDLE_STATUS_FACTORY(Usage)
#undef HEDDLE_STATUS_FACTORY

/// A value, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const char* why);

}  // namespace heddle

/// Our bug if it does not hold: stops the process and names itself.
#define HEDDLE_CHECK(condition, why) \
  ((condition) ? void() : ::heddle::CheckFailed(__FILE__, __LINE__, #condition, why))

#ifdef NDEBUG
#define HEDDLE_DEBUG_CHECK(condition, why) void()
#else
#define HEDDLE_DEBUG_CHECK(condition, why) HEDDLE_CHECK(condition, why)
#endif

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)

#define HEDDLE_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                    \
    if (::heddle::Status status_of_expression = (expression); !status_of_expression.ok()) \
      return status_of_expression;                                                        \
  } while (false)

#define HEDDLE_ASSIGN_OR_RETURN(target, expression) \
  HEDDLE_ASSIGN_OR_RETURN_IMPL(HEDDLE_CONCAT(result_, __LINE__), target, expression)
#define HEDDLE_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  target = *std::move(result)
