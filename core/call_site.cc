// SPDX-License-Identifier: Apache-2.0
#include "core/call_site.h"

#include <fmt/core.h>

namespace heddle {

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

}  // namespace heddle
