// SPDX-License-Identifier: Apache-2.0
// The inlets for libFuzzer, which looks for bytes that reach code no input reached before. deploy/fuzz builds
// and runs it; HEDDLE_FUZZ_INLET names the inlet.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "core/memory/memory_budget.h"
#include "ops/base/parallel.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/inlets.h"
#include "tests/fuzz/kept_inputs.h"
#include "tests/support/process.h"

// AddressSanitizer's own operator new ends the process when a block is larger than max_allocation_size_mb.
// Heddle bears a refused block, as it does where the heap is its own (core/memory/counted_heap.h).
void* operator new(size_t bytes) {
  if (void* const block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* block = nullptr;
  if (posix_memalign(&block, static_cast<size_t>(alignment), bytes) != 0) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most_bytes);

namespace heddle::fuzz {
namespace {

constexpr int64_t kMemory = int64_t{128} << 20;

const Inlet& NamedInlet() {
  static const Inlet* const kInlet = [] {
    const char* name = std::getenv("HEDDLE_FUZZ_INLET");
    for (const Inlet& inlet : Inlets())
      if (name != nullptr && inlet.name == name) return &inlet;
    fmt::print(stderr, "HEDDLE_FUZZ_INLET names no inlet: {}\n", name == nullptr ? "" : name);
    std::exit(2);
  }();
  return *kInlet;
}

void WriteSeeds(const std::string& folder) {
  for (const Inlet& inlet : Inlets()) {
    std::filesystem::create_directories(folder + "/" + inlet.name);
    std::vector<std::string> inputs = CorpusOf(inlet.name);
    inputs.insert(inputs.end(), inlet.seeds.begin(), inlet.seeds.end());
    for (size_t i = 0; i < inputs.size(); ++i)
      testing_support::WriteText(fmt::format("{}/{}/seed{}", folder, inlet.name, i), inputs[i]);
  }
}

}  // namespace
}  // namespace heddle::fuzz

/// With HEDDLE_FUZZ_SEEDS it writes the inputs that all inlets begin with there, a folder each, and ends.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* folder = std::getenv("HEDDLE_FUZZ_SEEDS")) {
    heddle::fuzz::WriteSeeds(folder);
    std::exit(0);
  }
  heddle::MemoryBudget::Process().SetLimit(heddle::fuzz::kMemory);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle::fuzz;
  static heddle::ops::Arena one_thread(1);  // What is reached must not depend on how threads share the work.
  std::string fault;
  one_thread.Execute([&] { fault = JudgeInlet(NamedInlet(), {reinterpret_cast<const char*>(data), size}); });
  if (fault.empty()) return 0;
  fmt::print(stderr, "{}: {}\n", NamedInlet().name, fault);
  std::abort();
}

/// Half of the changes are libFuzzer's own, half those of the inlets' tests, which know numbers and tokens.
/// Checksums are made right in most of both, else nothing behind them would be reached.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most_bytes, unsigned seed) {
  using namespace heddle::fuzz;
  Chooser choose(seed);
  const Inlet& inlet = NamedInlet();
  if (choose.Chance(50)) {
    size = LLVMFuzzerMutate(data, size, most_bytes);
  } else {
    const std::string bytes = Damaged({std::string(reinterpret_cast<const char*>(data), size)}, choose);
    size = std::min(bytes.size(), most_bytes);
    std::memcpy(data, bytes.data(), size);
  }
  if (inlet.repair && choose.Chance(70)) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    inlet.repair(&bytes);
    std::memcpy(data, bytes.data(), size);
  }
  return size;
}
