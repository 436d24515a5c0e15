// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/link/grpc_link.h"
#include "core/status.h"
#include "engine/machine/machine_constants.h"
#include "ops/base/machine_constants.h"

namespace heddle::cluster {

/// The rates of links between executors at such endpoints are kept under this key: they are those of the
/// machines, and of the ways between them.
std::string LinksKey(const std::vector<LinkPeer>& peers, bool shares_memory);

/// The rates that all ranks of a job plan by. Rank 0 takes those that were kept of the same machines, or
/// measures them and keeps them, and tells the others. All ranks call it once they are linked, before
/// anything else is decided. An error when the link ends meanwhile.
Result<ops::LinkRates> AgreeOnLinks(GrpcLink& link, int rank, const std::string& key,
                                    const engine::ConstantsCache& cache);

}  // namespace heddle::cluster
