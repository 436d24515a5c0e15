// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Serves Jobs.Submit: compiles the script (outside the hub's lock) and queues the job. What is wrong with
/// the script goes into reply->status, in the words of `heddle check`.
void ServeSubmit(MasterHub* hub, const SubmitRequest& request, SubmitReply* reply);

}  // namespace heddle::cluster
