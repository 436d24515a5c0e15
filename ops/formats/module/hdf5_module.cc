// SPDX-License-Identifier: Apache-2.0
// The one file that knows HDF5. The library is used by one thread at a time (`library_mutex`) and sees files
// through a driver of ours: reads go to the file that Heddle has opened, writes stay in memory. Cells that
// are written never come here: the library is asked where they belong.
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "ops/formats/libraries/format_module.h"

namespace heddle::ops {
namespace {

std::mutex library_mutex;

constexpr char kDefaultName[] = "systemdsh5";  // as in SystemDS

// A number of the library that is given back.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// What a driver reads from or writes to; outlives the file of the library.
struct Storage {
  const ModuleInput* input = nullptr;  // nullptr: it is written
  Status failure;                      // of a read
  haddr_t end = 0;                     // of a file that is written, as allocated
  std::vector<std::pair<haddr_t, std::string>> written;
};

struct DriverFile {
  H5FD_t base;
  Storage* storage;
  haddr_t allocated;
};

DriverFile* Of(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* Of(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

constexpr char kNameOfFile[] = "heddle";

H5FD_t* OpenFile(const char* name, unsigned, hid_t access, haddr_t) {
  // A link into another file leads nowhere.
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

// What has been written to [begin, begin + size), zeros elsewhere.
void CopyWritten(const Storage& storage, haddr_t begin, size_t size, char* out) {
  std::memset(out, 0, size);
  for (const auto& [place, bytes] : storage.written) {
    const haddr_t from = std::max(begin, place), to = std::min<haddr_t>(begin + size, place + bytes.size());
    if (from < to) std::memcpy(out + (from - begin), bytes.data() + (from - place), to - from);
  }
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

// What the library says went wrong, the innermost cause.
std::string Cause() {
  std::string cause;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto* const text = static_cast<std::string*>(out);
        if (text->empty() && error->desc != nullptr) *text = error->desc;
        return 0;
      },
      &cause);
  return cause.empty() ? "nothing more is known" : cause;
}

Result<Handle> AccessOf(Storage* storage) {
  const hid_t driver = Driver();
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (driver < 0 || !access.ok() || H5Pset_driver(access.id(), driver, &storage) < 0)
    return Internal("HDF5 takes no driver: {}", Cause());
  return access;
}

std::string_view ClassName(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING: return "texts";
    case H5T_COMPOUND: return "records of several fields";
    case H5T_REFERENCE: return "references";
    case H5T_VLEN: return "lists of different lengths";
    case H5T_ARRAY: return "arrays";
    case H5T_TIME: return "times";
    case H5T_BITFIELD: return "bits";
    default: return "opaque bytes";
  }
}

bool IsNumeric(H5T_class_t kind) { return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM; }

H5T_class_t ClassOf(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  return H5Tget_class(type.id());
}

class OpenArray : public Hdf5Array {
 public:
  explicit OpenArray(const ModuleInput& input) : input_(input) { storage_.input = &input_; }
  ~OpenArray() override {
    const std::lock_guard lock(library_mutex);
    dataset_ = Handle();
    file_ = Handle();
  }

  Status Open(const std::string& dataset) {
    const std::lock_guard lock(library_mutex);
    HEDDLE_ASSIGN_OR_RETURN(const Handle access, AccessOf(&storage_));
    file_ = Handle(H5Fopen(kNameOfFile, H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (!file_.ok()) return Fault("it is damaged or cut short");
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, Choose(dataset));
    dataset_ = Handle(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset_.ok()) return Fault(fmt::format("dataset '{}' cannot be opened", name));
    return Look(name);
  }

  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t rows_of_chunk() const override { return rows_of_chunk_; }

  Status Read(int64_t begin, int64_t end, double* out) override {
    const std::lock_guard lock(library_mutex);
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    if (!space.ok()) return Fault("its cells cannot be read");
    hsize_t cells = 1;
    if (!sizes_.empty()) {
      std::vector<hsize_t> from(sizes_.size(), 0), count(sizes_.begin(), sizes_.end());
      from[0] = static_cast<hsize_t>(begin);
      count[0] = static_cast<hsize_t>(end - begin);
      for (const hsize_t size : count) cells *= size;
      if (cells == 0) return OkStatus();
      if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr) < 0)
        return Fault("its cells cannot be read");
    }
    const Handle memory(H5Screate_simple(1, &cells, nullptr), H5Sclose);
    if (H5Dread(dataset_.id(), H5T_NATIVE_DOUBLE, memory.id(), space.id(), H5P_DEFAULT, out) < 0)
      return Fault("its cells cannot be read");
    return OkStatus();
  }

 private:
  Status Fault(const std::string& what) {
    if (!storage_.failure.ok()) return storage_.failure;
    return DataLoss("cannot read '{}': {}", input_.path, what).WithNote("HDF5 says: " + Cause());
  }

  // Datasets of numbers, by name.
  std::vector<std::string> FindDatasets() {
    std::vector<std::string> names;
    H5Lvisit(
        file_.id(), H5_INDEX_NAME, H5_ITER_INC,
        [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
          if (link->type != H5L_TYPE_HARD) return 0;
          const Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
          if (object.ok() && H5Iget_type(object.id()) == H5I_DATASET && IsNumeric(ClassOf(object.id())))
            static_cast<std::vector<std::string>*>(out)->emplace_back(name);
          return 0;
        },
        &names);
    return names;
  }

  Result<std::string> Choose(const std::string& dataset) {
    // Part by part, because the library takes no missing group on the way for an answer.
    const auto exists = [&](const std::string& path) {
      for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (!part.empty() && part != "/" && H5Lexists(file_.id(), part.c_str(), H5P_DEFAULT) <= 0)
          return false;
        if (end == std::string::npos) return true;
      }
    };
    const std::string wanted = dataset.empty() ? kDefaultName : dataset;
    if (exists(wanted)) return wanted;
    const std::vector<std::string> names = FindDatasets();
    if (dataset.empty() && names.size() == 1) return names[0];
    std::string list;
    for (const std::string& name : names) {
      if (list.size() > 300) {
        list += ", ...";
        break;
      }
      list += (list.empty() ? "" : ", ") + name;
    }
    if (names.empty()) return DataLoss("cannot read '{}': it holds no dataset of numbers", input_.path);
    if (dataset.empty())
      return DataLoss("cannot read '{}': it holds {} datasets", input_.path, names.size())
          .WithNote("dataset= says which: " + list);
    return DataLoss("cannot read '{}': it has no dataset '{}'", input_.path, dataset)
        .WithNote("it has: " + list);
  }

  Status Look(const std::string& name) {
    const H5T_class_t kind = ClassOf(dataset_.id());
    if (!IsNumeric(kind))
      return DataLoss("cannot read '{}': dataset '{}' holds {}, not numbers", input_.path, name,
                      ClassName(kind));
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    const int indexes = H5Sget_simple_extent_ndims(space.id());
    if (indexes < 0) return Fault(fmt::format("the sizes of dataset '{}' are not known", name));
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL)
      return DataLoss("cannot read '{}': dataset '{}' is empty", input_.path, name);
    std::vector<hsize_t> sizes(static_cast<size_t>(indexes));
    if (indexes > 0) H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
    for (const hsize_t size : sizes)
      sizes_.push_back(static_cast<int64_t>(std::min<hsize_t>(size, INT64_MAX)));
    const Handle made(H5Dget_create_plist(dataset_.id()), H5Pclose);
    const H5D_layout_t layout = H5Pget_layout(made.id());
    if (layout == H5D_VIRTUAL || H5Pget_external_count(made.id()) > 0)
      return DataLoss("cannot read '{}': the cells of dataset '{}' are in other files", input_.path, name)
          .WithNote("h5repack, or h5py, copies them into one");
    if (layout == H5D_CHUNKED && indexes > 0) {
      std::vector<hsize_t> chunk(sizes.size());
      if (H5Pget_chunk(made.id(), indexes, chunk.data()) > 0)
        rows_of_chunk_ = static_cast<int64_t>(std::min<hsize_t>(chunk[0], sizes[0]));
    }
    return OkStatus();
  }

  const ModuleInput input_;
  Storage storage_;
  Handle file_;
  Handle dataset_;
  std::vector<int64_t> sizes_;
  int64_t rows_of_chunk_ = 1;
};

Result<std::unique_ptr<Hdf5Array>> OpenHdf5(const ModuleInput& input, const std::string& dataset) {
  auto array = std::make_unique<OpenArray>(input);
  HEDDLE_RETURN_IF_ERROR(array->Open(dataset));
  return std::unique_ptr<Hdf5Array>(std::move(array));
}

Result<Hdf5Image> MakeImage(int64_t rows, int64_t columns, const std::string& dataset) {
  const std::lock_guard lock(library_mutex);
  const std::string name = dataset.empty() ? kDefaultName : dataset;
  Storage storage;
  const hsize_t sizes[] = {static_cast<hsize_t>(rows), static_cast<hsize_t>(columns)};
  const haddr_t bytes = sizes[0] * sizes[1] * sizeof(double);
  haddr_t begin = HADDR_UNDEF;
  {
    HEDDLE_ASSIGN_OR_RETURN(const Handle access, AccessOf(&storage));
    const Handle file(H5Fcreate(kNameOfFile, H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose);
    const Handle space(H5Screate_simple(2, sizes, nullptr), H5Sclose);
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    const Handle made(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    // The cells get their place at once, nobody fills it, and no time is noted.
    if (!file.ok() || !space.ok() || H5Pset_create_intermediate_group(links.id(), 1) < 0 ||
        H5Pset_layout(made.id(), H5D_CONTIGUOUS) < 0 ||
        H5Pset_alloc_time(made.id(), H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(made.id(), H5D_FILL_TIME_NEVER) < 0 || H5Pset_obj_track_times(made.id(), 0) < 0)
      return Internal("HDF5 makes no file: {}", Cause());
    const Handle array(
        H5Dcreate2(file.id(), name.c_str(), H5T_IEEE_F64LE, space.id(), links.id(), made.id(), H5P_DEFAULT),
        H5Dclose);
    if (!array.ok())
      return FailedPrecondition("write: dataset='{}' is no name that HDF5 takes", name)
          .WithNote("HDF5 says: " + Cause());
    if (bytes > 0) begin = H5Dget_offset(array.id());
  }
  Hdf5Image image;
  const bool has_cells = begin != HADDR_UNDEF;
  const haddr_t end = has_cells ? begin + bytes : storage.end;
  image.before.resize(has_cells ? begin : storage.end);
  CopyWritten(storage, 0, image.before.size(), image.before.data());
  image.behind.resize(storage.end - end);
  CopyWritten(storage, end, image.behind.size(), image.behind.data());
  return image;
}

constexpr Hdf5Module kModule = {.open = OpenHdf5, .make_image = MakeImage};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenHdf5(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
