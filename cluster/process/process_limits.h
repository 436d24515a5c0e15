// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What a daemon asks of the system when it starts.
namespace heddle::cluster {

/// As many descriptors as the system allows: the usual limit is one for programs that wait with select(),
/// which none here does.
void RaiseDescriptorLimit();

/// No more private memory than `most` from now on: allocations beyond it fail (RLIMIT_DATA).
void LimitData(int64_t most);

/// No core dumps from now on, and no other process of this user may look into this one: it holds tokens, keys
/// and other people's data.
void ForbidCoreDumps();

}  // namespace heddle::cluster
