// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "actor/message.h"

namespace heddle::cluster {

/// A message between ranks, and the value that it announces where that travels with it.
struct AnnouncedMessage {
  const actor::Message* message = nullptr;
  std::string small_value;  ///< As engine::SmallValues encodes it; "" for none.

  std::string_view bytes() const { return {reinterpret_cast<const char*>(message), sizeof(actor::Message)}; }
};

}  // namespace heddle::cluster
