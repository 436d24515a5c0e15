// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/environment/clock.h"

namespace heddle::cluster {

/// The clock of what is only allowed until a moment: unlike SystemClock() it also runs while the machine is
/// suspended, as the clock of whoever allowed it does. The same for all processes of a machine.
Clock& LeaseClock();

}  // namespace heddle::cluster
