// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/base/machine_constants.h"

// Constants of the cost model on their way: from job to job in the user's cache, from rank to rank in the
// header of a job. They choose among plans that give the same bytes, so that losing them costs time and
// nothing else.
namespace heddle::engine {

/// On one line, every bit of every number.
std::string EncodeConstants(const ops::MachineConstants& constants);
/// nullopt for what is no line of EncodeConstants, or no plausible constants.
std::optional<ops::MachineConstants> DecodeConstants(std::string_view line);

/// The same for the rates of links alone.
std::string EncodeLinks(const ops::LinkRates& links);
std::optional<ops::LinkRates> DecodeLinks(std::string_view line);

/// What measured constants hold for: version and kind of this build, model of the processor, number of
/// threads.
std::string MachineKey(int threads);

/// Constants that were measured, one small file a key. Safe for concurrent processes: files appear whole, by
/// renaming. A file that is damaged, of another key or of another user is as good as absent. No operation
/// reports an error.
class ConstantsCache {
 public:
  /// `folder` is made when something is stored; "" for no cache.
  explicit ConstantsCache(std::string folder = DefaultFolder()) : folder_(std::move(folder)) {}
  /// $XDG_CACHE_HOME/heddle/machine or ~/.cache/heddle/machine; "" when neither variable is set.
  static std::string DefaultFolder();

  std::optional<ops::MachineConstants> Find(const std::string& key) const;
  void Store(const std::string& key, const ops::MachineConstants& constants) const;
  std::optional<ops::LinkRates> FindLinks(const std::string& key) const;
  void StoreLinks(const std::string& key, const ops::LinkRates& links) const;
  /// Makes the folder where it is missing. False when nothing can be stored.
  bool IsUsable() const;
  std::string PathOf(const std::string& key) const;

 private:
  std::optional<std::string> FindLine(const std::string& key) const;
  void StoreLine(const std::string& key, const std::string& line) const;

  std::string folder_;
};

}  // namespace heddle::engine
