// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include "cluster/access/access_control.h"
#include "cluster/master/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Serves one Workers.Connect: the worker's news go to the core, the core's orders to the worker. Owns
/// itself. The caller is a worker that has joined, or shows a token by which it may: then it joins. `hub` and
/// `access` outlive the server.
grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* ServeWorker(MasterHub* hub, const AccessControl* access,
                                                               Caller caller,
                                                               grpc::CallbackServerContext* context);

}  // namespace heddle::cluster
