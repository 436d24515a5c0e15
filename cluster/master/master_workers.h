// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include "cluster/master/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Serves one Workers.Connect: the worker's news go to the core, the core's orders to the worker. Owns
/// itself. `hub` outlives the server.
grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* ServeWorker(MasterHub* hub,
                                                               grpc::CallbackServerContext* context);

}  // namespace heddle::cluster
