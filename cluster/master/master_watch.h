// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>

#include "cluster/access/access_control.h"
#include "cluster/master/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Serves one Jobs.Watch: the job's output from an offset on and its changes of state, until it is finished
/// or, without `follow`, until all that there is has been sent. It tells nothing from when the token in
/// `authorization` no longer lets its holder in. Owns itself. `hub` and `access` outlive the server.
grpc::ServerWriteReactor<WatchEvent>* ServeWatch(MasterHub* hub, const AccessControl* access,
                                                 std::string authorization, const WatchRequest& request);

}  // namespace heddle::cluster
