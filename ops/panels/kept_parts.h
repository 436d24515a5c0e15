// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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

  /// After Finish(): where the values are, in their order.
  std::vector<KeptPart> TakeParts();

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

/// The values of all parts, those that lie behind each other read at once. Fails as RowPanels::Rows does.
Result<std::vector<Value>> ReadAll(std::span<const KeptPart> parts);

/// What one rank has for another one, or for itself, of an exchange between stages in panels (staged_run.h):
/// as many values for each panel of the rank that gets them. A register holds it as a handle, but it has no
/// rows of a value. Each part is taken once, by one thread; its memory, or place in a file, is free when all
/// parts for its panel are.
class PartsOfPanels : public RowPanels {
 public:
  /// Those of panel p are parts [p * of_each, (p + 1) * of_each).
  PartsOfPanels(std::vector<KeptPart> parts, size_t of_each) : parts_(std::move(parts)), of_each_(of_each) {}

  /// All for a panel of the rank that gets them.
  std::vector<KeptPart> TakeFor(size_t panel) const;
  /// One of all.
  Result<Value> Take(size_t i) const;

  Shape shape() const override { return {}; }
  bool IsFrame() const override { return false; }
  int64_t bytes() const override { return 0; }
  Result<Value> Rows(int64_t begin, int64_t end) const override;

 private:
  mutable std::vector<KeptPart> parts_;
  const size_t of_each_;
};
/// nullptr where a register holds anything else.
const PartsOfPanels* PartsIn(const Value& value);

/// Takes such parts one after the other as they come from another rank, and keeps them.
class PartsCollector {
 public:
  PartsCollector(PanelStore& store, size_t of_each) : store_(&store), of_each_(of_each) {}
  /// Fails as KeptParts::Add does.
  Status Add(Value value);
  /// All parts of some panels are there.
  Result<Value> Finish();

 private:
  Status FinishPanel();

  PanelStore* store_;
  size_t of_each_;
  std::unique_ptr<KeptParts> of_panel_;
  size_t added_ = 0;  // To `of_panel_`.
  std::vector<KeptPart> parts_;
};

/// The same cells in memory of their own, where `value` is rows of a larger matrix or others hold it, too.
Result<Value> WithMemoryOfItsOwn(Value value);

}  // namespace heddle::ops
