// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/storage.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>

namespace heddle::ops::hdf5 {
namespace {

struct DriverFile {
  H5FD_t base;
  Storage* storage;
  haddr_t allocated;
};

DriverFile* Of(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* Of(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

H5FD_t* OpenFile(const char* name, unsigned, hid_t access, haddr_t) {
  if (std::strcmp(name, kNameOfFile) != 0) return nullptr;
  auto* const file = new DriverFile{};
  file->storage = *static_cast<Storage* const*>(H5Pget_driver_info(access));
  return &file->base;
}

herr_t CloseFile(H5FD_t* file) {
  if (Of(file)->storage->input == nullptr) Of(file)->storage->end = Of(file)->allocated;
  delete Of(file);
  return 0;
}

int CompareFiles(const H5FD_t* a, const H5FD_t* b) {
  return Of(a)->storage == Of(b)->storage ? 0 : Of(a)->storage < Of(b)->storage ? -1 : 1;
}

herr_t QueryFile(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t EndOfAllocated(const H5FD_t* file, H5FD_mem_t) { return Of(file)->allocated; }

herr_t SetEndOfAllocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  Of(file)->allocated = end;
  return 0;
}

haddr_t EndOfFile(const H5FD_t* file, H5FD_mem_t) {
  const Storage& storage = *Of(file)->storage;
  if (storage.input != nullptr) return static_cast<haddr_t>(storage.input->size);
  haddr_t end = 0;
  for (const auto& [place, bytes] : storage.written) end = std::max<haddr_t>(end, place + bytes.size());
  return end;
}

herr_t ReadFile(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t begin, size_t size, void* out) {
  Storage& storage = *Of(file)->storage;
  if (storage.input == nullptr) {
    CopyWritten(storage, begin, size, static_cast<char*>(out));
    return 0;
  }
  const auto whole = static_cast<haddr_t>(storage.input->size);
  if (begin > whole || size > whole - begin) return -1;
  storage.failure =
      storage.input->read(static_cast<int64_t>(begin), static_cast<int64_t>(size), static_cast<char*>(out));
  return storage.failure.ok() ? 0 : -1;
}

herr_t WriteFile(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t begin, size_t size, const void* bytes) {
  Storage& storage = *Of(file)->storage;
  if (storage.input != nullptr) return -1;
  storage.written.emplace_back(begin, std::string(static_cast<const char*>(bytes), size));
  return 0;
}

void* CopyInfo(const void* info) { return new Storage*(*static_cast<Storage* const*>(info)); }

herr_t FreeInfo(void* info) {
  delete static_cast<Storage**>(info);
  return 0;
}

hid_t Driver() {
  static const hid_t driver = [] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are returned, not printed
    H5FD_class_t kind{};
#if H5_VERSION_GE(1, 13, 0)
    kind.version = H5FD_CLASS_VERSION;
    kind.value = static_cast<H5FD_class_value_t>(600);
#endif
    kind.name = kNameOfFile;
    kind.maxaddr = HADDR_MAX >> 1;
    kind.fc_degree = H5F_CLOSE_STRONG;
    kind.fapl_size = sizeof(Storage*);
    kind.fapl_copy = CopyInfo;
    kind.fapl_free = FreeInfo;
    kind.open = OpenFile;
    kind.close = CloseFile;
    kind.cmp = CompareFiles;
    kind.query = QueryFile;
    kind.get_eoa = EndOfAllocated;
    kind.set_eoa = SetEndOfAllocated;
    kind.get_eof = EndOfFile;
    kind.read = ReadFile;
    kind.write = WriteFile;
    return H5FDregister(&kind);
  }();
  return driver;
}

}  // namespace

void CopyWritten(const Storage& storage, haddr_t begin, size_t size, char* out) {
  std::memset(out, 0, size);
  for (const auto& [place, bytes] : storage.written) {
    const haddr_t from = std::max(begin, place), to = std::min<haddr_t>(begin + size, place + bytes.size());
    if (from < to) std::memcpy(out + (from - begin), bytes.data() + (from - place), to - from);
  }
}

Result<Handle> AccessOf(Storage* storage) {
  const hid_t driver = Driver();
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (driver < 0 || !access.ok() || H5Pset_driver(access.id(), driver, &storage) < 0)
    return Internal("HDF5 takes no driver: {}", Cause());
  return access;
}

}  // namespace heddle::ops::hdf5
