// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// What libheddle_codegen.so offers: the only door between Heddle and LLVM. A C interface, because the two
// sides are loaded apart and share no C++ objects. All functions may be called by any thread.
extern "C" {

/// Text or bytes made by the module; `free_bytes` gives them back.
struct HeddleBytes {
  char* data;
  size_t size;
};

/// What becomes of a region.
enum HeddleProduct : int32_t { kHeddleObject = 0, kHeddleIr = 1, kHeddleAssembly = 2 };

/// A function of the program that generated code calls.
struct HeddleSymbol {
  const char* name;
  const void* address;
};

struct HeddleCodegenModule {
  /// Version of LLVM and hash of the contents of the module: part of the key of whatever it made.
  const char* identity;
  /// The region in its text form, for a level of ops/base/cpu.h (0 AVX2, 1 AVX-512). 0 on success, else
  /// *error says why.
  int32_t (*compile)(const char* region_text, int32_t cpu, HeddleProduct product, HeddleBytes* out,
                     HeddleBytes* error);
  /// Puts an object of `compile` into memory, executable and not writable. 0 on success. The code lives until
  /// `release(*handle)`.
  int32_t (*load)(const char* object, size_t size, const HeddleSymbol* symbols, size_t symbol_count,
                  void** entry_point, void** handle, HeddleBytes* error);
  void (*release)(void* handle);
  void (*free_bytes)(HeddleBytes* bytes);
};

/// The one exported function. `abi` is kHeddleModuleAbi of the caller; nullptr when the module was made for
/// another.
const HeddleCodegenModule* HeddleOpenCodegen(int32_t abi);
}

namespace heddle::codegen {
constexpr int32_t kHeddleModuleAbi = 1;  ///< Change it with anything above.
}
