// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <cstdio>
#include <cstdlib>

#include "core/call_site.h"
#include "core/text/message_lines.h"

namespace heddle {

std::string SourcePosition::ToString() const {
  if (!IsKnown()) return file;
  return fmt::format("{}:{}:{}", file, line, column);
}

const char* StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kDeadlineExceeded: return "deadline exceeded";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kPermissionDenied: return "permission denied";
    case StatusCode::kResourceExhausted: return "resource exhausted";
    case StatusCode::kFailedPrecondition: return "failed precondition";
    case StatusCode::kAborted: return "aborted";
    case StatusCode::kUnimplemented: return "unimplemented";
    case StatusCode::kInternal: return "internal";
    case StatusCode::kUnavailable: return "unavailable";
    case StatusCode::kDataLoss: return "data loss";
    case StatusCode::kUsage: return "usage";
  }
  return "unknown";
}

// What stop() says is the script's own text, whatever its length.
Status::Status(StatusCode code, std::string message)
    : rep_(std::make_shared<const Rep>(
          Rep{code,
              code == StatusCode::kAborted ? std::move(message) : WithShortLines(std::move(message)),
              {},
              {},
              {},
              false})) {}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

const SourcePosition& Status::position() const {
  static const SourcePosition kNowhere;
  return rep_ ? rep_->position : kNowhere;
}

const std::vector<std::string>& Status::notes() const {
  static const std::vector<std::string> kNone;
  return rep_ ? rep_->notes : kNone;
}

const std::vector<std::string>& Status::choices() const {
  static const std::vector<std::string> kNone;
  return rep_ ? rep_->choices : kNone;
}

template <typename Change>
Status Status::Changed(const Change& change) const {
  if (ok()) return *this;
  const auto rep = std::make_shared<Rep>(*rep_);
  change(*rep);
  Status result;
  result.rep_ = rep;
  return result;
}

Status Status::At(const SourcePosition& position) const {
  if (ok() || rep_->position.IsKnown()) return *this;
  const Status placed = Changed([&](Rep& rep) {
    rep.position = position;
    rep.position.call = nullptr;
  });
  return position.call == nullptr ? placed : InCalls(placed, CallsAround(position));
}

Status Status::WithNote(std::string note) const {
  return Changed([&](Rep& rep) { rep.notes.push_back(WithShortLines(std::move(note))); });
}

Status Status::WithCode(StatusCode code) const {
  return Changed([&](Rep& rep) { rep.code = code; });
}

Status Status::WithChoices(std::vector<std::string> names) const {
  return Changed([&](Rep& rep) { rep.choices = std::move(names); });
}

Status Status::OnEveryRank() const {
  if (is_on_every_rank()) return *this;
  return Changed([](Rep& rep) { rep.is_on_every_rank = true; });
}

Status Status::OnThisRank() const {
  if (!is_on_every_rank()) return *this;
  return Changed([](Rep& rep) { rep.is_on_every_rank = false; });
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  constexpr size_t kMostNotes = 11;
  std::string text =
      rep_->position.IsKnown() ? rep_->position.ToString() + ": " + rep_->message : rep_->message;
  // The last one tells of the user's own script.
  for (size_t i = 0; i < rep_->notes.size(); ++i)
    if (i + 1 < kMostNotes || i + 1 == rep_->notes.size()) text += "\n" + rep_->notes[i];
  return text;
}

int ExitCode(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk: return 0;
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAborted: return 1;
    case StatusCode::kUsage: return 2;
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnimplemented: return 3;
    case StatusCode::kNotFound:
    case StatusCode::kDataLoss: return 4;
    case StatusCode::kResourceExhausted: return 5;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kPermissionDenied: return 6;
    case StatusCode::kCancelled: return 8;
    case StatusCode::kInternal: return 70;
  }
  return 70;
}

void CheckFailed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "heddle: internal error at %s:%d: %s does not hold (%s). This is a bug in Heddle.\n",
               file, line, condition, why);
  std::fflush(stderr);
  std::abort();
}

}  // namespace heddle
