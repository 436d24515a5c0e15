// SPDX-License-Identifier: Apache-2.0
// The exported side of compiler/codegen/module_abi.h.
#include <elf.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>

#include <cstring>

#include "compiler/codegen/module/compile_object.h"
#include "compiler/codegen/module/link_object.h"
#include "compiler/codegen/module_abi.h"

namespace heddle::codegen {
namespace {

HeddleBytes ToBytes(std::string_view text) {
  HeddleBytes bytes{new char[text.size() + 1], text.size()};
  std::memcpy(bytes.data, text.data(), text.size());
  bytes.data[text.size()] = '\0';
  return bytes;
}

int32_t Fail(const Status& status, HeddleBytes* error) {
  *error = ToBytes(status.message());
  return 1;
}

int32_t Compile(const char* region_text, int32_t cpu, HeddleProduct product, HeddleBytes* out,
                HeddleBytes* error) {
  const Result<ops::Region> region = ops::Region::Parse(region_text);
  if (!region.ok()) return Fail(region.status(), error);
  if (cpu < 0 || cpu > 1) return Fail(Internal("codegen: no level {}", cpu), error);
  const Result<std::string> product_bytes = CompileRegion(*region, cpu, product);
  if (!product_bytes.ok()) return Fail(product_bytes.status(), error);
  *out = ToBytes(*product_bytes);
  return 0;
}

int32_t Load(const char* object, size_t size, const HeddleSymbol* symbols, size_t symbol_count,
             void** entry_point, void** handle, HeddleBytes* error) {
  Result<std::unique_ptr<LinkedObject>> linked = LinkObject({object, size}, {symbols, symbol_count});
  if (!linked.ok()) return Fail(linked.status(), error);
  *entry_point = (*linked)->entry_point();
  *handle = (*linked).release();
  return 0;
}

void Release(void* handle) { delete static_cast<LinkedObject*>(handle); }

void FreeBytes(HeddleBytes* bytes) {
  delete[] bytes->data;
  *bytes = {nullptr, 0};
}

/// The linker's hash of the contents of this module, as hexadecimal digits; empty when there is none.
std::string BuildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* result) {
        bool is_this = false;
        const auto here = reinterpret_cast<ElfW(Addr)>(&FreeBytes);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const ElfW(Addr) start = object->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && here >= start && here < start + segment.p_memsz) is_this = true;
        }
        if (!is_this) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
          const char* const end = at + segment.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
            const char* const name = at + sizeof *note;
            const char* const bytes = name + (note->n_namesz + 3) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
              for (uint32_t k = 0; k < note->n_descsz; ++k)
                *static_cast<std::string*>(result) +=
                    fmt::format("{:02x}", static_cast<unsigned char>(bytes[k]));
              return 1;
            }
            at = bytes + (note->n_descsz + 3) / 4 * 4;
          }
        }
        return 1;
      },
      &id);
  return id;
}

const HeddleCodegenModule* TheModule() {
  static const std::string identity = fmt::format("LLVM {} build {}", LLVM_VERSION_STRING, BuildId());
  static const HeddleCodegenModule module = {identity.c_str(), Compile, Load, Release, FreeBytes};
  return &module;
}

}  // namespace
}  // namespace heddle::codegen

extern "C" __attribute__((visibility("default"))) const HeddleCodegenModule* HeddleOpenCodegen(int32_t abi) {
  return abi == heddle::codegen::kHeddleModuleAbi ? heddle::codegen::TheModule() : nullptr;
}
