// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {

/// A value that was added to KeptParts, or rows that panels have.
struct KeptPart {
  Value in_memory;                          ///< Where `panels` is nullptr.
  std::shared_ptr<const RowPanels> panels;  ///< Has it as rows [begin, end).
  int64_t begin = 0;
  int64_t end = 0;

  /// The value. Fails as RowPanels::Rows does.
  Result<Value> Read() const;
};

/// Values one behind the other that are made now and read later, when memory may not have room for all of
/// them: matrices and frames are rows of one value of the store, scalars stay in memory. One thread at a
/// time.
class KeptParts {
 public:
  /// `least_panel_bytes`: as of PanelStore::Collect.
  KeptParts(PanelStore& store, int64_t least_panel_bytes)
      : store_(&store), least_panel_bytes_(least_panel_bytes) {}

  /// The next value. Fails as PanelStore::Collector::Add does.
  Status Add(Value value);
  /// The next value, which is kept already.
  void Add(KeptPart part) { parts_.push_back({std::move(part)}); }
  /// Nothing is added any more.
  Status Finish();

  /// After Finish().
  const KeptPart& part(size_t i) const { return parts_[i].part; }
  /// All values, those that lie behind each other read at once. After Finish().
  Result<std::vector<Value>> ReadAll() const;

 private:
  struct Added {
    KeptPart part;
    bool is_collected = false;  // Its rows are those of `collector_`.
  };
  PanelStore* store_;
  int64_t least_panel_bytes_;
  std::unique_ptr<PanelStore::Collector> collector_;
  Value first_;  // 0 rows of what was collected first.
  Value empty_;  // The last value without rows that was added.
  int64_t rows_ = 0;
  std::vector<Added> parts_;
};

/// The same cells in memory of their own, where `value` is rows of a larger matrix or others hold it, too.
Result<Value> WithMemoryOfItsOwn(Value value);

}  // namespace heddle::ops
