// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/compression_records.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/memory/memory_budget.h"
#include "ops/base/cpu.h"

namespace heddle::ops {
namespace {

// Of the machine, all cores together; where the system does not say, that of a large processor.
int64_t LastLevelCacheBytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : int64_t{64} << 20;
}

std::string Counted(int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

}  // namespace

std::string AmountText(int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number < 1e6) return fmt::format("{:.1f} KB", number / 1e3);
  return number < 1e9 ? fmt::format("{:.1f} MB", number / 1e6) : fmt::format("{:.2f} GB", number / 1e9);
}

std::string GroupsText(const ColumnGroups& groups) {
  struct Sum {
    int64_t groups = 0, columns = 0, tuples = 0;
  };
  std::array<Sum, static_cast<size_t>(Encoding::kUncompressed) + 1> sums;
  for (const ColumnGroup& group : groups.groups) {
    Sum& sum = sums[static_cast<size_t>(group.encoding)];
    ++sum.groups;
    sum.columns += group.width();
    if (group.encoding != Encoding::kEmpty) sum.tuples += group.tuples();
  }
  std::string text;
  for (size_t encoding = 0; encoding < sums.size(); ++encoding) {
    const Sum& sum = sums[encoding];
    if (sum.groups == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} in {} {}", Counted(sum.columns, "column"), Counted(sum.groups, "group"),
                        Name(static_cast<Encoding>(encoding)));
    if (sum.tuples > 0) text += fmt::format(" ({})", Counted(sum.tuples, "tuple"));
  }
  return text;
}

bool IsReadInPanels(int64_t bytes) { return bytes > MemoryBudget::Process().limit() / 2; }

std::string WhyTooSmall(int64_t bytes, const Scalar* reads) {
  if (bytes <= SecondLevelCacheBytes()) return "it fits in the cache of a core";
  if (reads != nullptr && bytes <= LastLevelCacheBytes() && !IsReadInPanels(bytes))
    return "it fits in the last-level cache";
  return "";
}

std::string PlaceOf(const Node& node) {
  return fmt::format("line {} of {}", node.position.line, node.position.file);
}

std::string BytesText(const CompressionRecord& record) {
  if (record.groups.empty()) return fmt::format("as it is: {}", record.why_not);
  std::string text = fmt::format(
      "{} to {} ({:.1f} times smaller)", AmountText(record.plain_bytes), AmountText(record.bytes),
      static_cast<double>(record.plain_bytes) / static_cast<double>(std::max<int64_t>(record.bytes, 1)));
  if (record.ns > 0) text += fmt::format(" in {:.3f} s", static_cast<double>(record.ns) / 1e9);
  text += ": " + record.groups;
  if (!record.why_not.empty())
    text += fmt::format("; {} times as it is: {}", record.calls - record.stored, record.why_not);
  return text;
}

std::string ToText(const CompressionRecord& record) {
  return fmt::format("{}{}: {}", record.place,
                     record.calls > 1 ? fmt::format(", {} times", record.calls) : std::string(),
                     BytesText(record));
}

CompressionRecords& CompressionRecords::Process() {
  static auto* const records = new CompressionRecords;
  return *records;
}

void CompressionRecords::Add(const FusedRuntime* session, const CompressionRecord& record) {
  const std::lock_guard lock(mutex_);
  CompressionRecord& sum = sessions_[session][record.place];
  sum.place = record.place;
  ++sum.calls;
  sum.ns += record.ns;
  if (!record.why_not.empty()) {
    sum.why_not = record.why_not;
    return;
  }
  ++sum.stored;
  sum.plain_bytes += record.plain_bytes;
  sum.bytes += record.bytes;
  sum.groups = record.groups;
}

std::vector<CompressionRecord> CompressionRecords::Take(const FusedRuntime* session) {
  ByPlace taken;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = sessions_.find(session); found != sessions_.end()) {
      taken = std::move(found->second);
      sessions_.erase(found);
    }
  }
  std::vector<CompressionRecord> records;
  for (auto& [place, record] : taken) records.push_back(std::move(record));
  return records;
}

}  // namespace heddle::ops
