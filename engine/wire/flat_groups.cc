// SPDX-License-Identifier: Apache-2.0
#include "engine/wire/flat_groups.h"

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/values/column_groups_bytes.h"

namespace heddle::engine {
namespace {

// The matrix stays with its bytes: no other groups can have the address that is its key meanwhile.
struct FlatRows {
  Matrix matrix;
  std::shared_ptr<Buffer> bytes;
};

struct Entry {
  std::mutex making;
  std::weak_ptr<const FlatRows> rows;
};

using Key = std::tuple<const ColumnGroups*, int64_t, int64_t>;  // Groups, first row, rows.

class Entries {
 public:
  std::shared_ptr<Entry> Find(const Matrix& compressed) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const auto& known) {
      if (known.second.use_count() != 1) return false;
      const std::unique_lock making(known.second->making, std::try_to_lock);
      return making.owns_lock() && known.second->rows.expired();
    });
    std::shared_ptr<Entry>& entry =
        entries_[{&compressed.groups(), compressed.first_row(), compressed.rows()}];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    return entry;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
};

}  // namespace

Result<std::shared_ptr<const Buffer>> SharedFlatGroups(const Matrix& compressed) {
  static Entries entries;
  const std::shared_ptr<Entry> entry = entries.Find(compressed);
  const std::lock_guard lock(entry->making);
  std::shared_ptr<const FlatRows> rows = entry->rows.lock();
  if (rows == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes, FlattenGroups(compressed));
    rows = std::make_shared<const FlatRows>(FlatRows{compressed, std::move(bytes)});
    entry->rows = rows;
  }
  return std::shared_ptr<const Buffer>(rows, rows->bytes.get());
}

}  // namespace heddle::engine
