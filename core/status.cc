// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <cstdio>
#include <cstdlib>

#include "core/call_site.h"

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

Status::Status(StatusCode code, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, std::move(message), {}, {}})) {}

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

Status Status::At(const SourcePosition& position) const {
  if (ok() || rep_->position.IsKnown()) return *this;
  Rep rep = *rep_;
  rep.position = position;
  rep.position.call = nullptr;
  for (std::string& note : CallStackNotes(CallsAround(position))) rep.notes.push_back(std::move(note));
  Status result;
  result.rep_ = std::make_shared<const Rep>(std::move(rep));
  return result;
}

Status Status::WithNote(std::string note) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.notes.push_back(std::move(note));
  Status result;
  result.rep_ = std::make_shared<const Rep>(std::move(rep));
  return result;
}

Status Status::WithCode(StatusCode code) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.code = code;
  Status result;
  result.rep_ = std::make_shared<const Rep>(std::move(rep));
  return result;
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
