// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/access/audit_log.h"
#include "cluster/access/token_store.h"
#include "cluster/compiling/compile_process.h"
#include "cluster/master/job_store.h"
#include "cluster/master/master_core.h"
#include "cluster/network/tls_files.h"
#include "core/status.h"

namespace heddle::cluster {

struct MasterOptions {
  std::string folder;              ///< State: job store, lock, tokens, address. Made when missing.
  std::string listen;              ///< unix:/path, or host:port (port 0: any).
  TokenStore::GivenTokens tokens;  ///< None: those that it makes for itself, in the folder.
  std::string certificate;         ///< Files of TLS; an address that other machines reach needs them.
  std::string key;
  std::string client_authority;
  MasterCoreOptions core;
  JobStoreOptions store;
  CompileLimits compile;
  std::string metrics_listen;  ///< HOST:PORT of metrics and health (MetricsServer); "": none.
  TlsFiles metrics_tls;        ///< Certificate and key of that port; empty: plain HTTP.
  /// An option that is in force, for `heddle admin config`.
  struct Setting {
    std::string name;
    std::string value;
    bool is_given = false;  ///< On the command line; else it is the default.
    std::string help;
  };
  std::vector<Setting> settings;
  AuditLogOptions audit;
};

/// A running master: MasterCore behind gRPC (proto/master.proto), with its store, lock and timer.
class MasterServer {
 public:
  /// Listens when it returns; <folder>/address says where. kUsage for an open address without TLS,
  /// kUnavailable when another master holds the folder or the address cannot be bound.
  static Result<std::unique_ptr<MasterServer>> Start(const MasterOptions& options);
  /// Ends all calls. Jobs go on without it, and the next master on the folder finds them.
  virtual ~MasterServer() = default;
  virtual const std::string& address() const = 0;
  /// What it is at, "3 workers, 2 jobs run, 1 waits": asked where all calls pass, so that it answers only
  /// while those are answered. kUnavailable when its timer has not come round for a while.
  virtual Result<std::string> Look() = 0;
  /// Of metrics and health; "" without.
  virtual std::string metrics_address() const = 0;
};

/// The address of the master on `folder`, as clients use it.
std::string AddressFile(const std::string& folder);

}  // namespace heddle::cluster
