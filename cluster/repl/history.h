// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace heddle::cluster {

/// What was entered, in a file: a line for each entry, whose line ends are "\n" there. Only its owner can
/// read it. Sessions that run at the same time add their entries one by one.
class History {
 public:
  /// $XDG_STATE_HOME/heddle/history, else ~/.heddle_history; "" where neither is known.
  static std::string DefaultPath();

  /// "": what is entered is forgotten. A file that cannot be read or written is no reason to complain.
  explicit History(std::string path);

  /// The entries of the file, the oldest first, at most the last kMost.
  const std::vector<std::string>& entries() const { return entries_; }
  /// Adds an entry, unless it is the same as the last.
  void Add(const std::string& entry);

  static constexpr size_t kMost = 5000;

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace heddle::cluster
