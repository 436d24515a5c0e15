// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ops/base/cpu.h"
#include "ops/region/region.h"

namespace heddle::codegen {

struct CodegenOptions {
  /// Instructions that code may use; nullopt: SelectedCpu() of the moment of each request.
  std::optional<ops::Cpu> cpu;
  /// Where compiled code is kept between runs. Empty: $XDG_CACHE_HOME/heddle/code or ~/.cache/heddle/code. A
  /// folder that cannot be written is no error.
  std::string cache_folder;
  bool use_disk_cache = true;
  int64_t disk_cache_bytes = int64_t{64} << 20;  ///< The least recently used files go first.
  size_t memory_cache_entries = 1024;            ///< The least recently used go first; code in use stays.
};

/// Counts of requests; every successful or failed request is one of the first four.
struct CodegenStatistics {
  int64_t compiled = 0;  ///< By LLVM.
  int64_t from_memory = 0;
  int64_t from_disk = 0;
  int64_t failed = 0;
  double compile_ms =
      0;  ///< Time of all requests that were not answered from memory, loading of LLVM included.
};

/// Compiles regions to machine code by LLVM, and keeps it in memory and on disk. Thread-safe; concurrent
/// requests for one region compile it once. LLVM is loaded by the first request that needs it.
///
/// A request fails where the module `libheddle_codegen.so` is absent or LLVM refuses; then interpret the
/// region instead (ops::InterpretedRegions). Failures are remembered.
class GeneratedCode : public ops::RegionSource {
 public:
  virtual CodegenStatistics statistics() const = 0;
};
std::unique_ptr<GeneratedCode> GeneratedRegions(const CodegenOptions& options = {});

enum class CodeText : uint8_t { kIr, kAssembly };

/// What is generated for the region, for people: optimised LLVM IR or assembly.
Result<std::string> ExplainRegion(const ops::Region& region, CodeText kind,
                                  std::optional<ops::Cpu> cpu = std::nullopt);

}  // namespace heddle::codegen
