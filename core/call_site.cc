// SPDX-License-Identifier: Apache-2.0
#include "core/call_site.h"

#include <fmt/core.h>

namespace heddle {

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
