// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::cluster {

/// The whole life of `heddle executor`: reads its start and the rank table from `control_fd`, joins its
/// peers, runs the session, reports. Returns the exit code of the process: 0 when the outcome was reported
/// (whatever it is), 70 when it could not be. Ends the process at once when the launcher goes away.
int RunExecutor(int control_fd);

}  // namespace heddle::cluster
