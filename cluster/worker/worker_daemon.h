// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/client/client.h"
#include "cluster/network/tls_files.h"
#include "cluster/placement/membership.h"
#include "cluster/worker/worker_device.h"
#include "core/status.h"
#include "engine/session/cancellation.h"

namespace heddle::cluster {

struct WorkerOptions {
  /// Where the master is, and the token by which this worker joins it, "" for none: one that has joined needs
  /// none. Asked again before every try: a restarted master may be elsewhere.
  std::function<Result<MasterAddress>()> find_master;
  std::string folder;        ///< Of the user's state; identities of workers are below it.
  std::string name;          ///< "": the first free one of "<host>-1", "<host>-2", ...
  int threads = 1;           ///< Of all its executors together.
  int64_t memory_bytes = 0;  ///< The same; 0: not known.
  int slots = 1;             ///< WorkerDescription::slots
  std::string
      peer_host;  ///< Address by which the executors of other machines reach ours, by TLS; "": loopback.
  bool core_dumps = false;                ///< Of its executors.
  bool shares_memory = true;              ///< Its executors do, with those of this machine.
  bool isolates = true;                   ///< The kernel keeps its executors in.
  WorkerDevice device;                    ///< That its executors may use.
  bool runs_as_owner = false;             ///< Its executors do; for workers of root.
  std::string spill_folder;               ///< Of its executors; "": that of temporary files.
  std::vector<std::string> data_roots;    ///< The only folders that jobs may use here; none: what they name.
  std::vector<std::string> closed_paths;  ///< Files that no job may use: those of tokens and keys.
  int64_t patience_ms = 600'000;          ///< How long it goes on without a master.
  /// Called whenever the loop that keeps the lease comes round, every few seconds, with what it is at; may be
  /// empty. A worker that hangs does not call it.
  std::function<void(const std::string& state)> ping;
  std::string metrics_listen;  ///< HOST:PORT of metrics and health (MetricsServer); "": none.
  TlsFiles metrics_tls;        ///< Certificate and key of that port; empty: plain HTTP.
  /// A token that lets see metrics beside those of the master (MasterTokens); "": none.
  std::string metrics_token;
  std::function<void(const std::string& address)> metrics_listening;  ///< Called with where they are.
};

/// A worker of the cluster, until `cancellation` ends it (kCancelled then is success), the master refuses it,
/// or no master answers for `patience_ms` (at the start: a few seconds). `connected` is called with the
/// worker's name at the first connection.
Status RunWorker(const WorkerOptions& options, engine::Cancellation* cancellation,
                 const std::function<void(const std::string& name, const std::string& address)>& connected);

}  // namespace heddle::cluster
