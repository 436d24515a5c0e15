// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include "cluster/master/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Serves one Jobs.Watch: the job's output from an offset on and its changes of state, until it is finished
/// or, without `follow`, until all that there is has been sent. Owns itself. `hub` outlives the server.
grpc::ServerWriteReactor<WatchEvent>* ServeWatch(MasterHub* hub, const WatchRequest& request);

}  // namespace heddle::cluster
