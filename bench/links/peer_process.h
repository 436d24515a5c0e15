// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "cluster/executor/line_channel.h"

// Benchmarks of several processes: one measures, and tells the others line by line what to do.
namespace heddle::bench {

/// Ends the process: a benchmark cannot go on.
[[noreturn]] void Stop(const std::string& why);

/// Keeps this process on the processor of its rank, where the machine has several.
void Pin(int rank);

/// Another process of this program, which runs `heddle-bench WORD` with the channel as its input.
class PeerProcess {
 public:
  explicit PeerProcess(std::string word);
  /// Says "end" and waits for the process.
  ~PeerProcess();
  PeerProcess(PeerProcess&&) = default;

  void Tell(const std::string& line);
  std::string Answer();
  std::string Ask(const std::string& line) {
    Tell(line);
    return Answer();
  }

 private:
  pid_t pid_ = 0;
  std::unique_ptr<cluster::LineChannel> channel_;
};

}  // namespace heddle::bench
