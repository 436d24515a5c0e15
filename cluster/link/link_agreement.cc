// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/link_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/environment/log.h"
#include "core/hash.h"

namespace heddle::cluster {

std::string LinksKey(const std::vector<LinkPeer>& peers, bool shares_memory) {
  std::vector<std::string> hosts;
  for (const LinkPeer& peer : peers) {
    // The names of sockets differ, but for what stands before their random ends: the kind of way.
    const bool is_here = peer.endpoint.starts_with("unix");
    hosts.push_back(peer.endpoint.substr(0, peer.endpoint.rfind(is_here ? '-' : ':')));
  }
  std::ranges::sort(hosts);
  uint64_t hash = 1;
  for (const std::string& host : hosts) hash = FoldHash(hash, host);
  return fmt::format("{}, links of {} workers at hosts {:016x}, {} shared memory",
                     engine::MachineKey(/*threads=*/1), peers.size(), hash,
                     shares_memory ? "with" : "without");
}

Result<ops::LinkRates> AgreeOnLinks(GrpcLink& link, int rank, const std::string& key,
                                    const engine::ConstantsCache& cache) {
  if (rank != 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string line, link.Receive());
    const std::optional<ops::LinkRates> links = engine::DecodeLinks(line);
    if (!links) return Internal("worker 0 tells no rates of links: {}", line);
    return *links;
  }
  const std::optional<ops::LinkRates> kept = cache.FindLinks(key);
  const ops::LinkRates links = kept ? *kept : link.MeasureLinks();
  if (!kept && links.measured) cache.StoreLinks(key, links);
  HEDDLE_LOG(kDebug, "links between workers", {"rates", ops::ToText(links)}, {"kept", kept.has_value()});
  link.Broadcast(engine::EncodeLinks(links));
  return links;
}

}  // namespace heddle::cluster
