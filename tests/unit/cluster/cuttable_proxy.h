// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace heddle::cluster {

/// A TCP proxy on loopback whose connections a test can cut.
class CuttableProxy {
 public:
  explicit CuttableProxy(const std::string& target);  ///< host:port on loopback
  ~CuttableProxy();

  const std::string& endpoint() const { return endpoint_; }
  /// Resets all connections; new ones are served.
  void Cut();
  /// Resets all connections, and every new one at once.
  void Refuse();

 private:
  struct Pair {
    int caller;
    int target;
  };
  void Serve();
  bool Accept();
  void CloseAll();

  int target_port_;
  std::string endpoint_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::mutex mutex_;
  bool cut_ = false;
  bool refuse_ = false;
  bool ended_ = false;
  std::vector<Pair> pairs_;  // of the thread
  std::thread thread_;
};

}  // namespace heddle::cluster
