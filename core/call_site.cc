// SPDX-License-Identifier: Apache-2.0
#include "core/call_site.h"

#include <fmt/core.h>

#include <utility>

namespace heddle {
namespace {

// Checks of arguments that functions of the library share. An error tells where a function makes the check,
// not how the check is made.
constexpr std::string_view kChecks = "heddle:checks/";

}  // namespace

bool SourcePosition::operator==(const SourcePosition& other) const {
  if (file != other.file || line != other.line || column != other.column) return false;
  if (call == other.call) return true;
  return CallsAround(*this) == CallsAround(other);
}

std::vector<CallSite> CallsAround(const SourcePosition& position) {
  std::vector<CallSite> calls;
  for (const CallSite* call = position.call.get(); call != nullptr; call = call->position.call.get()) {
    calls.push_back(*call);
    calls.back().position.call = nullptr;
  }
  return calls;
}

void AppendCall(const std::string& function, const SourcePosition& position, std::vector<CallSite>* calls) {
  calls->push_back({function, position});
  calls->back().position.call = nullptr;
  const std::vector<CallSite> around = CallsAround(position);
  calls->insert(calls->end(), around.begin(), around.end());
}

std::vector<std::string> CallStackNotes(std::span<const CallSite> calls, size_t most) {
  std::vector<std::string> notes;
  const size_t left_out = calls.size() > most ? calls.size() - most + 1 : 0;
  const size_t first_left_out = most - 2;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (left_out > 0 && i == first_left_out) {
      notes.push_back(fmt::format("... {} more calls ...", left_out));
      i += left_out;
    }
    notes.push_back(fmt::format("in {}, called at {}", calls[i].function, calls[i].position.ToString()));
  }
  return notes;
}

Status InCalls(const Status& status, std::span<const CallSite> calls) {
  if (status.ok()) return status;
  Status shown = status;
  if (IsInLibrary(status.position())) {
    SourcePosition position = status.position();
    std::string way;
    while (!calls.empty() && IsInLibrary(position)) {
      if (!position.file.starts_with(kChecks))
        way += fmt::format("{}{}() at {}", way.empty() ? "in " : ", called by ", calls.front().function,
                           position.ToString());
      position = calls.front().position;
      calls = calls.subspan(1);
    }
    position.call = nullptr;
    // A place that is known stays, so the failure is made anew.
    shown = Status(status.code(), status.message()).At(position).WithChoices(status.choices());
    for (const std::string& note : status.notes()) shown = shown.WithNote(note);
    if (!way.empty()) shown = shown.WithNote(std::move(way));
    if (status.is_on_every_rank()) shown = shown.OnEveryRank();
  }
  for (std::string& note : CallStackNotes(calls)) shown = shown.WithNote(std::move(note));
  return shown;
}

}  // namespace heddle
