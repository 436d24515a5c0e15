// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/codegen.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "compiler/codegen/code_module.h"
#include "core/environment/clock.h"
#include "core/memory/counted_heap.h"
#include "core/recently_used.h"
#include "ops/io/object_cache.h"

namespace heddle::codegen {
namespace {

using Code = std::shared_ptr<const ops::RegionCode>;

/// One region for one level. `once` makes concurrent requests compile it once; `outcome` is written before it
/// is left.
struct Entry {
  std::once_flag once;
  std::optional<Result<Code>> outcome;
};

class Generated : public GeneratedCode {
 public:
  explicit Generated(const CodegenOptions& options)
      : options_(options),
        disk_(!options.use_disk_cache        ? std::string()
              : options.cache_folder.empty() ? ops::ObjectCache::FolderOf("code")
                                             : options.cache_folder,
              options.disk_cache_bytes),
        entries_(std::max<size_t>(options.memory_cache_entries, 1)) {}

  Result<Code> Compile(const ops::Region& region) override;

  CodegenStatistics statistics() const override {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  std::shared_ptr<Entry> EntryOf(const std::string& key);
  Result<Code> Make(const std::string& region_text, ops::Cpu cpu, bool* from_disk) const;

  const CodegenOptions options_;
  const ops::ObjectCache disk_;
  mutable std::mutex mutex_;
  RecentlyUsedMap<std::string, std::shared_ptr<Entry>> entries_;
  CodegenStatistics statistics_;
};

std::shared_ptr<Entry> Generated::EntryOf(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (const auto* const found = entries_.Find(key)) return *found;
  return entries_.Add(key, std::make_shared<Entry>());
}

Result<Code> Generated::Make(const std::string& region_text, ops::Cpu cpu, bool* from_disk) const {
  HEDDLE_ASSIGN_OR_RETURN(const CodeModule* const module, CodeModule::Open());
  const std::string key =
      fmt::format("abi {} {} {}\n{}", ops::kRegionAbi, Name(cpu), module->identity(), region_text);
  if (const std::optional<std::string> object = disk_.Find(key)) {
    Result<Code> code = module->Load(*object, cpu);
    *from_disk = code.ok();
    if (code.ok()) return code;
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string object, module->Compile(region_text, cpu, kHeddleObject));
  HEDDLE_ASSIGN_OR_RETURN(Code code, module->Load(object, cpu));
  disk_.Store(key, object);
  return code;
}

Result<Code> Generated::Compile(const ops::Region& region) {
  const HeapModeScope unlimited(HeapMode::kCounts);  // LLVM ends the process when it gets no memory.
  HEDDLE_RETURN_IF_ERROR(Verify(region));
  const ops::Cpu cpu = options_.cpu.value_or(ops::SelectedCpu());
  const std::string text = region.ToText();
  const std::shared_ptr<Entry> entry = EntryOf(fmt::format("{}\n{}", Name(cpu), text));
  bool is_new = false;
  std::call_once(entry->once, [&] {
    is_new = true;
    bool from_disk = false;
    const int64_t start_ns = SystemClock().MonotonicNs();
    entry->outcome = Make(text, cpu, &from_disk);
    const double took_ms = static_cast<double>(SystemClock().MonotonicNs() - start_ns) * 1e-6;
    const std::lock_guard lock(mutex_);
    statistics_.compile_ms += took_ms;
    ++(!entry->outcome->ok() ? statistics_.failed : from_disk ? statistics_.from_disk : statistics_.compiled);
  });
  if (!is_new) {
    const std::lock_guard lock(mutex_);
    ++(entry->outcome->ok() ? statistics_.from_memory : statistics_.failed);
  }
  return *entry->outcome;
}

}  // namespace

std::unique_ptr<GeneratedCode> GeneratedRegions(const CodegenOptions& options) {
  return std::make_unique<Generated>(options);
}

Result<std::string> ExplainRegion(const ops::Region& region, CodeText kind, std::optional<ops::Cpu> cpu) {
  const HeapModeScope unlimited(HeapMode::kCounts);
  HEDDLE_RETURN_IF_ERROR(Verify(region));
  HEDDLE_ASSIGN_OR_RETURN(const CodeModule* const module, CodeModule::Open());
  return module->Compile(region.ToText(), cpu.value_or(ops::SelectedCpu()),
                         kind == CodeText::kIr ? kHeddleIr : kHeddleAssembly);
}

}  // namespace heddle::codegen
