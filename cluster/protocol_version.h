// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::cluster {

/// Of all messages between client, master, worker and executor; peers must agree exactly.
constexpr int kProtocolVersion = 2;

}  // namespace heddle::cluster
