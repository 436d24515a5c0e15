// SPDX-License-Identifier: Apache-2.0
// The one file that knows HDF5. The library is used by one thread at a time (`library_mutex`) and sees files
// through a driver of ours: reads go to the file that Heddle has opened, writes stay in memory. Cells that
// are written never come here: the library is asked where they belong.
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/values/sizes.h"
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
    default: return "opaque bytes";
  }
}

// Whether cells of this type can be read: numbers, and bit fields of a byte, which are booleans.
bool IsReadable(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM ||
         (kind == H5T_BITFIELD && H5Tget_size(type) == 1);
}

// What a type holds that is none of those.
std::string TextOf(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_BITFIELD) return fmt::format("bit fields of {} bytes", H5Tget_size(type));
  const auto has_field = [&](const char* name) { return H5Tget_member_index(type, name) >= 0; };
  if (kind == H5T_COMPOUND && H5Tget_nmembers(type) == 2 &&
      ((has_field("real") && has_field("imag")) || (has_field("r") && has_field("i"))))
    return "complex numbers";
  return std::string(ClassName(kind));
}

Handle OpenAttribute(hid_t object, const char* name) {
  if (object < 0 || H5Aexists(object, name) <= 0) return Handle();
  return Handle(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
}

bool HasAttribute(hid_t object, const char* name) { return object >= 0 && H5Aexists(object, name) > 0; }

// The numbers of an attribute; none where there is no such attribute, or where it holds too many to be one of
// the marks that are looked for here.
std::vector<int64_t> NumbersOfAttribute(hid_t object, const char* name) {
  constexpr hssize_t kMost = 64;
  const Handle attribute = OpenAttribute(object, name);
  if (!attribute.ok()) return {};
  const Handle space(H5Aget_space(attribute.id()), H5Sclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const hssize_t count = space.ok() ? H5Sget_simple_extent_npoints(space.id()) : 0;
  if (!type.ok() || count < 1 || count > kMost || H5Tget_class(type.id()) != H5T_INTEGER) return {};
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  if (H5Aread(attribute.id(), H5T_NATIVE_INT64, numbers.data()) < 0) return {};
  return numbers;
}

bool IsMarked(hid_t object, const char* name) {
  const std::vector<int64_t> numbers = NumbersOfAttribute(object, name);
  return numbers.size() == 1 && numbers[0] != 0;
}

// A text in an attribute or a dataset; "" where it is none, or long.
template <typename GetType, typename GetSpace, typename ReadText>
std::string TextIn(const GetType& get_type, const GetSpace& get_space, const ReadText& read) {
  constexpr size_t kMost = 256;
  const Handle type(get_type(), H5Tclose);
  const Handle space(get_space(), H5Sclose);
  if (!type.ok() || !space.ok() || H5Tget_class(type.id()) != H5T_STRING ||
      H5Sget_simple_extent_npoints(space.id()) != 1)
    return "";
  if (H5Tis_variable_str(type.id()) > 0) {
    char* text = nullptr;
    if (read(type.id(), &text) < 0 || text == nullptr) return "";
    std::string found(text, strnlen(text, kMost));
    H5free_memory(text);
    return found;
  }
  const size_t size = H5Tget_size(type.id());
  if (size == 0 || size > kMost) return "";
  std::string text(size, '\0');
  if (read(type.id(), text.data()) < 0) return "";
  text.resize(strnlen(text.data(), size));
  return text;
}

std::string TextOfAttribute(hid_t object, const char* name) {
  const Handle attribute = OpenAttribute(object, name);
  if (!attribute.ok()) return "";
  return TextIn([&] { return H5Aget_type(attribute.id()); }, [&] { return H5Aget_space(attribute.id()); },
                [&](hid_t type, void* out) { return H5Aread(attribute.id(), type, out); });
}

std::string TextOfDataset(hid_t group, const char* name) {
  if (H5Lexists(group, name, H5P_DEFAULT) <= 0) return "";
  const Handle dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return "";
  return TextIn(
      [&] { return H5Dget_type(dataset.id()); }, [&] { return H5Dget_space(dataset.id()); },
      [&](hid_t type, void* out) { return H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out); });
}

// The sizes of a dataset, in the order of the file; nothing where they are not known.
std::optional<std::vector<int64_t>> SizesOf(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int indexes = space.ok() ? H5Sget_simple_extent_ndims(space.id()) : -1;
  if (indexes < 0) return std::nullopt;
  std::vector<hsize_t> sizes(static_cast<size_t>(indexes));
  if (indexes > 0) H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
  std::vector<int64_t> whole;
  for (const hsize_t size : sizes) whole.push_back(static_cast<int64_t>(std::min<hsize_t>(size, INT64_MAX)));
  return whole;
}

// A dataset that is a list: with one index, or a column of a matrix.
class List {
 public:
  List() = default;
  // Not ok() where there is no such list of numbers.
  List(hid_t group, const char* name) {
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0) return;
    dataset_ = Handle(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose);
    if (!dataset_.ok()) return;
    const Handle type(H5Dget_type(dataset_.id()), H5Tclose);
    const std::optional<std::vector<int64_t>> sizes = SizesOf(dataset_.id());
    is_list_ = sizes && type.ok() && IsReadable(type.id()) && H5Tget_class(type.id()) != H5T_BITFIELD &&
               (sizes->size() == 1 || (sizes->size() == 2 && (*sizes)[1] == 1));
    if (!is_list_) return;
    indexes_ = sizes->size();
    length_ = (*sizes)[0];
  }
  bool ok() const { return is_list_; }
  int64_t length() const { return length_; }

  template <typename T>
  bool Read(int64_t begin, int64_t end, T* out) const {
    if (begin < 0 || begin > end || end > length_) return false;
    if (begin == end) return true;
    const hsize_t from[] = {static_cast<hsize_t>(begin), 0}, count[] = {static_cast<hsize_t>(end - begin), 1};
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose),
        memory(H5Screate_simple(1, count, nullptr), H5Sclose);
    return indexes_ <= 2 &&
           H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from, nullptr, count, nullptr) >= 0 &&
           H5Dread(dataset_.id(), std::is_same_v<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64,
                   memory.id(), space.id(), H5P_DEFAULT, out) >= 0;
  }

 private:
  Handle dataset_;
  bool is_list_ = false;
  size_t indexes_ = 0;
  int64_t length_ = 0;
};

// A group that is a sparse matrix: those of MATLAB 7.3 (attribute MATLAB_sparse, the number of its rows) and
// of Octave are compressed by columns, those of AnnData (attribute encoding-type) by columns or rows.
struct SparseGroup {
  const char* writer = "";  // Of a tool that keeps its dense matrices column by column.
  const char *ends = "", *indexes = "";
  bool by_columns = true;
  int64_t rows = 0;
  int64_t columns = kUnknown;  // kUnknown: as many as `ends` tells.
};

std::optional<SparseGroup> FindSparse(hid_t group) {
  if (const std::vector<int64_t> rows = NumbersOfAttribute(group, "MATLAB_sparse"); rows.size() == 1)
    return SparseGroup{.writer = "MATLAB", .ends = "jc", .indexes = "ir", .rows = rows[0]};
  const std::string encoding = TextOfAttribute(group, "encoding-type");
  if (encoding == "csr_matrix" || encoding == "csc_matrix") {
    const std::vector<int64_t> shape = NumbersOfAttribute(group, "shape");
    if (shape.size() == 2)
      return SparseGroup{.ends = "indptr",
                         .indexes = "indices",
                         .by_columns = encoding == "csc_matrix",
                         .rows = shape[0],
                         .columns = shape[1]};
  }
  const auto one_number = [&](const char* name) {
    int64_t number = kUnknown;
    const Handle dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose);
    const std::optional<std::vector<int64_t>> sizes = dataset.ok() ? SizesOf(dataset.id()) : std::nullopt;
    if (sizes && sizes->empty())
      H5Dread(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &number);
    return number;
  };
  for (const char* name : {"cidx", "ridx", "nr", "nc"})
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0) return std::nullopt;
  return SparseGroup{.writer = "Octave",
                     .ends = "cidx",
                     .indexes = "ridx",
                     .rows = one_number("nr"),
                     .columns = one_number("nc")};
}

// What a name in a file leads to, as far as a matrix is looked for.
enum class Kind : uint8_t {
  kOther,   // A group of other things, or cells that are no numbers.
  kDense,   // A dataset.
  kSparse,  // A group that is a sparse matrix.
  kValue    // A group of Octave, whose dataset or group "value" is one of these.
};

constexpr char kOctaveMark[] = "OCTAVE_NEW_FORMAT", kOctaveValue[] = "value";

Kind KindOf(hid_t object) {
  const H5I_type_t what = H5Iget_type(object);
  if (what == H5I_DATASET) {
    const Handle type(H5Dget_type(object), H5Tclose);
    const std::string kind = TextOfAttribute(object, "MATLAB_class");
    // MATLAB keeps texts as numbers of characters.
    return type.ok() && IsReadable(type.id()) && kind != "char" && kind != "cell" ? Kind::kDense
                                                                                  : Kind::kOther;
  }
  if (what != H5I_GROUP) return Kind::kOther;
  if (FindSparse(object)) return Kind::kSparse;
  if (!HasAttribute(object, kOctaveMark) || H5Lexists(object, kOctaveValue, H5P_DEFAULT) <= 0)
    return Kind::kOther;
  // Octave keeps texts as numbers, too; a "value" that is a group may be a struct or a list of anything.
  const std::string type = TextOfDataset(object, "type");
  if (type.find("string") != std::string::npos) return Kind::kOther;
  const Handle value(H5Oopen(object, kOctaveValue, H5P_DEFAULT), H5Oclose);
  const Kind kind = value.ok() ? KindOf(value.id()) : Kind::kOther;
  return kind == Kind::kDense || kind == Kind::kSparse ? Kind::kValue : Kind::kOther;
}

// What a cell of a dense array means.
struct Cells {
  bool are_bits = false;          // Booleans, one in a byte.
  std::optional<double> missing;  // The number that stands for a missing value.
};

// R's missing integers and logical values: rhdf5 marks what may hold them, where the least number of the type
// is one; others have them as a member NA of an enumeration.
Cells MeaningOf(hid_t dataset) {
  Cells cells;
  const Handle type(H5Dget_type(dataset), H5Tclose);
  switch (H5Tget_class(type.id())) {
    case H5T_BITFIELD: cells.are_bits = true; break;
    case H5T_INTEGER:
      if (HasAttribute(dataset, "rhdf5-NA.OK") && H5Tget_sign(type.id()) == H5T_SGN_2)
        cells.missing = -std::ldexp(1.0, static_cast<int>(8 * H5Tget_size(type.id())) - 1);
      break;
    case H5T_ENUM: {
      const int member = H5Tget_member_index(type.id(), "NA");
      const Handle integer(H5Tget_super(type.id()), H5Tclose);
      std::vector<char> value(std::max(sizeof(double), H5Tget_size(type.id())));
      if (member >= 0 && integer.ok() &&
          H5Tget_member_value(type.id(), static_cast<unsigned>(member), value.data()) >= 0 &&
          H5Tconvert(integer.id(), H5T_NATIVE_DOUBLE, 1, value.data(), nullptr, H5P_DEFAULT) >= 0)
        std::memcpy(&cells.missing.emplace(), value.data(), sizeof(double));
      break;
    }
    default: break;
  }
  return cells;
}

// Reading is the same for all kinds up to what is open in the end.
class OpenArray : public StoredArray {
 public:
  explicit OpenArray(const ModuleInput& input) : input_(input) { storage_.input = &input_; }
  ~OpenArray() override {
    const std::lock_guard lock(library_mutex);
    dataset_ = Handle();
    indexes_ = List();
    values_ = List();
    file_ = Handle();
  }

  Status Open(const ArrayChoice& choice) {
    const std::lock_guard lock(library_mutex);
    HEDDLE_ASSIGN_OR_RETURN(const Handle access, AccessOf(&storage_));
    file_ = Handle(H5Fopen(kNameOfFile, H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (!file_.ok()) return Fault("it is damaged or cut short");
    transposed_ = choice.transposed;
    HEDDLE_ASSIGN_OR_RETURN(std::string name, Choose(choice.dataset));
    // A group of Octave holds its value beside the name of its type.
    Handle object(H5Oopen(file_.id(), name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.ok() && KindOf(object.id()) == Kind::kValue) {
      name.append("/").append(kOctaveValue);
      object = Handle(H5Oopen(file_.id(), name.c_str(), H5P_DEFAULT), H5Oclose);
    }
    if (object.ok() && KindOf(object.id()) == Kind::kSparse)
      return LookAtSparse(name, object.id(), *FindSparse(object.id()));
    if (object.ok() && H5Iget_type(object.id()) == H5I_GROUP && HasAttribute(object.id(), kOctaveMark))
      return DataLoss("cannot read '{}': variable '{}' of Octave is a {}, not a matrix of real numbers",
                      input_.path, name, TextOfDataset(object.id(), "type"));
    dataset_ = Handle(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset_.ok()) return Fault(fmt::format("dataset '{}' cannot be opened", name));
    return LookAtDense(name);
  }

  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t rows_of_chunk() const override { return rows_of_chunk_; }
  int64_t bytes_of_read() const override { return bytes_of_read_; }
  int64_t stored() const override { return stored_; }
  const std::string& column_major_writer() const override { return writer_; }

  Status Read(int64_t begin, int64_t end, double* out) override {
    const std::lock_guard lock(library_mutex);
    hsize_t cells = 1;
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    if (!space.ok()) return Fault(kUnreadable);
    if (!sizes_.empty()) {
      const size_t axis = transposed_ ? sizes_.size() - 1 : 0;
      std::vector<hsize_t> from(sizes_.size(), 0), count(sizes_.begin(), sizes_.end());
      if (transposed_) std::reverse(count.begin(), count.end());
      from[axis] = static_cast<hsize_t>(begin);
      count[axis] = static_cast<hsize_t>(end - begin);
      for (const hsize_t size : count) cells *= size;
      if (cells == 0) return OkStatus();
      if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr) < 0)
        return Fault(kUnreadable);
    }
    std::vector<double> in_order_of_file(transposed_ && sizes_.size() > 1 ? cells : 0);
    HEDDLE_RETURN_IF_ERROR(
        ReadCells(space.id(), cells, in_order_of_file.empty() ? out : in_order_of_file.data()));
    if (!in_order_of_file.empty()) Turn(in_order_of_file.data(), end - begin, out);
    return OkStatus();
  }

  Status ReadStored(int64_t begin, int64_t end, StoredCell* out) override {
    const std::lock_guard lock(library_mutex);
    std::vector<int64_t> minors(static_cast<size_t>(end - begin));
    std::vector<double> values(minors.size());
    if (!indexes_.Read(begin, end, minors.data()) || !values_.Read(begin, end, values.data()))
      return Fault(kUnreadable);
    auto major = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin() - 1;
    for (int64_t k = begin; k < end; ++k) {
      while (ends_[static_cast<size_t>(major) + 1] <= k) ++major;
      StoredCell& cell = out[k - begin];
      cell = {.row = major,
              .column = minors[static_cast<size_t>(k - begin)],
              .value = values[static_cast<size_t>(k - begin)]};
      if (majors_are_columns_) std::swap(cell.row, cell.column);
    }
    return OkStatus();
  }

 private:
  static constexpr char kUnreadable[] = "its cells cannot be read";

  // The library of an older version meets a newer one's structures.
  static std::string AdviceOfVersion(std::string_view cause) {
    if (cause.find("version number") == std::string_view::npos) return "";
    const bool beyond_2 = cause.find("layout") != std::string_view::npos || H5_VERS_MINOR >= 12;
    return fmt::format(
        "HDF5 {} or later wrote it, this Heddle has HDF5 {}.{}.{}; write it for older ones: in h5py "
        "File(NAME, \"w\", libver=(\"earliest\", \"v110\")), in C H5Pset_libver_bounds",
        beyond_2 ? "2.0" : "1.12", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  }

  Status Fault(const std::string& what) { return Fault(what, Cause()); }
  Status Fault(const std::string& what, const std::string& cause) {
    if (!storage_.failure.ok()) return storage_.failure;
    const Status fault = DataLoss("cannot read '{}': {}", input_.path, what).WithNote("HDF5 says: " + cause);
    const std::string advice = AdviceOfVersion(cause);
    return advice.empty() ? fault : fault.WithNote(advice);
  }

  // What a walk through the file finds.
  struct Found {
    std::vector<std::string> names;  // Of matrices.
    std::string inside;              // Names that begin so are parts of what was found, or nobody's to see.
    std::string unreadable, cause;   // A dataset that this library cannot open, and why.
  };

  // Matrices by name: datasets of numbers, and groups that are one.
  Found FindDatasets() {
    Found found;
    H5Lvisit(
        file_.id(), H5_INDEX_NAME, H5_ITER_INC,
        [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
          auto& all = *static_cast<Found*>(out);
          const std::string_view text = name;
          if (link->type != H5L_TYPE_HARD || (!all.inside.empty() && text.starts_with(all.inside))) return 0;
          const Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
          if (!object.ok()) {
            if (all.cause.empty()) {
              all.cause = Cause();
              all.unreadable = name;
            }
            return 0;
          }
          const Kind kind = KindOf(object.id());
          if (kind != Kind::kOther) all.names.emplace_back(name);
          // MATLAB keeps what its cells and objects hold in such groups.
          const bool hides =
              text == "#refs#" || text == "#subsystem#" || HasAttribute(object.id(), kOctaveMark);
          if (kind == Kind::kSparse || kind == Kind::kValue || hides) all.inside = std::string(text) + "/";
          return 0;
        },
        &found);
    return found;
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
    const Found found = FindDatasets();
    const std::vector<std::string>& names = found.names;
    if (dataset.empty() && names.size() == 1) return names[0];
    std::string list;
    for (const std::string& name : names) {
      if (list.size() > 300) {
        list += ", ...";
        break;
      }
      list += (list.empty() ? "" : ", ") + name;
    }
    if (names.empty() && !found.cause.empty())
      return Fault(fmt::format("dataset '{}' cannot be opened", found.unreadable), found.cause);
    if (names.empty()) return DataLoss("cannot read '{}': it holds no dataset of numbers", input_.path);
    if (dataset.empty())
      return DataLoss("cannot read '{}': it holds {} datasets", input_.path, names.size())
          .WithNote("dataset= says which: " + list);
    return DataLoss("cannot read '{}': it has no dataset '{}'", input_.path, dataset)
        .WithNote("it has: " + list);
  }

  Status LookAtDense(const std::string& name) {
    const Handle type(H5Dget_type(dataset_.id()), H5Tclose);
    const std::string matlab_class = TextOfAttribute(dataset_.id(), "MATLAB_class");
    const bool is_text = matlab_class == "char";
    if (!type.ok() || !IsReadable(type.id()) || is_text)
      return DataLoss("cannot read '{}': dataset '{}' holds {}, not numbers", input_.path, name,
                      is_text ? "texts" : TextOf(type.id()));
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    const std::optional<std::vector<int64_t>> sizes = SizesOf(dataset_.id());
    if (!sizes) return Fault(fmt::format("the sizes of dataset '{}' are not known", name));
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL)
      return DataLoss("cannot read '{}': dataset '{}' is empty", input_.path, name);
    const size_t slash = name.rfind('/');
    const Handle parent(slash == std::string::npos || slash == 0
                            ? -1
                            : H5Oopen(file_.id(), name.substr(0, slash).c_str(), H5P_DEFAULT),
                        H5Oclose);
    const bool is_octave = HasAttribute(parent.id(), kOctaveMark);
    if (IsMarked(dataset_.id(), "MATLAB_empty") || IsMarked(dataset_.id(), "OCTAVE_EMPTY_MATRIX") ||
        (is_octave && IsMarked(parent.id(), "OCTAVE_EMPTY_MATRIX")))
      return LookAtEmpty(name);
    sizes_ = *sizes;
    cells_ = MeaningOf(dataset_.id());
    if (sizes_.size() > 1 && !transposed_)
      writer_ = !matlab_class.empty()                        ? "MATLAB"
                : is_octave                                  ? "Octave"
                : HasAttribute(dataset_.id(), "rhdf5-NA.OK") ? "R"
                                                             : "";
    const Handle made(H5Dget_create_plist(dataset_.id()), H5Pclose);
    const H5D_layout_t layout = H5Pget_layout(made.id());
    if (layout == H5D_VIRTUAL || H5Pget_external_count(made.id()) > 0)
      return DataLoss("cannot read '{}': the cells of dataset '{}' are in other files", input_.path, name)
          .WithNote("h5repack, or h5py, copies them into one");
    const size_t axis = transposed_ && !sizes_.empty() ? sizes_.size() - 1 : 0;
    if (layout == H5D_CHUNKED && !sizes_.empty()) {
      std::vector<hsize_t> chunk(sizes_.size());
      if (H5Pget_chunk(made.id(), static_cast<int>(chunk.size()), chunk.data()) > 0) {
        rows_of_chunk_ =
            static_cast<int64_t>(std::min<hsize_t>(chunk[axis], static_cast<hsize_t>(sizes_[axis])));
        // As it is stored and as it is unpacked.
        int64_t bytes = 2 * static_cast<int64_t>(H5Tget_size(type.id()));
        for (const hsize_t length : chunk) bytes = SaturatingProduct(bytes, static_cast<int64_t>(length));
        bytes_of_read_ = SaturatingSum(bytes_of_read_, bytes);
      }
    }
    if (!transposed_) return OkStatus();
    std::reverse(sizes_.begin(), sizes_.end());
    if (layout != H5D_CHUNKED && sizes_.size() > 1) {
      // Rows of what is read lie apart in the file: enough of them at once, so that few bytes are read twice.
      constexpr int64_t kCells = 1 << 20;
      int64_t width = 1;
      for (size_t i = 1; i < sizes_.size(); ++i) width = SaturatingProduct(width, sizes_[i]);
      rows_of_chunk_ =
          std::clamp<int64_t>(kCells / std::max<int64_t>(1, width), 1, std::max<int64_t>(1, sizes_[0]));
    }
    return OkStatus();
  }

  // A matrix without cells, whose sizes the tool has put into its place.
  Status LookAtEmpty(const std::string& name) {
    const std::optional<std::vector<int64_t>> sizes = SizesOf(dataset_.id());
    if (sizes->size() != 1 || (*sizes)[0] < 1 || (*sizes)[0] > 64)
      return DataLoss("cannot read '{}': dataset '{}' is marked as empty, but does not tell its sizes",
                      input_.path, name);
    sizes_.resize(static_cast<size_t>((*sizes)[0]));
    if (H5Dread(dataset_.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, sizes_.data()) < 0)
      return Fault(kUnreadable);
    const bool are_sizes = std::all_of(sizes_.begin(), sizes_.end(), [](int64_t size) { return size >= 0; });
    if (!are_sizes || std::find(sizes_.begin(), sizes_.end(), 0) == sizes_.end())
      return DataLoss("cannot read '{}': dataset '{}' is marked as empty, but has cells", input_.path, name);
    transposed_ = false;
    return OkStatus();
  }

  Status LookAtSparse(const std::string& name, hid_t group, const SparseGroup& sparse) {
    const auto damaged = [&](std::string_view what) {
      return DataLoss("cannot read '{}': sparse matrix '{}' is damaged: {}", input_.path, name, what);
    };
    const List ends(group, sparse.ends);
    if (!ends.ok() || ends.length() < 1) return damaged(fmt::format("it has no '{}'", sparse.ends));
    int64_t rows = sparse.rows, columns = sparse.columns == kUnknown ? ends.length() - 1 : sparse.columns;
    if (rows < 0 || columns < 0 || ends.length() - 1 != (sparse.by_columns ? columns : rows))
      return damaged("its sizes do not fit each other");
    ends_.resize(static_cast<size_t>(ends.length()));
    if (!ends.Read(0, ends.length(), ends_.data())) return Fault(kUnreadable);
    if (ends_.front() != 0 || !std::is_sorted(ends_.begin(), ends_.end()))
      return damaged(fmt::format("'{}' does not ascend from 0", sparse.ends));
    stored_ = ends_.back();
    indexes_ = List(group, sparse.indexes);
    values_ = List(group, "data");
    if (stored_ > 0 && !values_.ok())
      return DataLoss("cannot read '{}': sparse matrix '{}' holds no real numbers", input_.path, name);
    if (stored_ > 0 && (!indexes_.ok() || indexes_.length() < stored_ || values_.length() < stored_))
      return damaged("it has too few cells");
    const bool writes_columns = *sparse.writer != '\0';
    const bool turned = writes_columns != transposed_;
    if (turned) std::swap(rows, columns);
    if (writes_columns && !transposed_) writer_ = sparse.writer;
    majors_are_columns_ = sparse.by_columns != turned;
    sizes_ = {rows, columns};
    return OkStatus();
  }

  // The selected cells, in the order of the file.
  Status ReadCells(hid_t space, hsize_t count, double* out) {
    const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    if (cells_.are_bits) {
      std::vector<uint8_t> bits(count);
      if (H5Dread(dataset_.id(), H5T_NATIVE_B8, memory.id(), space, H5P_DEFAULT, bits.data()) < 0)
        return Fault(kUnreadable);
      std::transform(bits.begin(), bits.end(), out, [](uint8_t byte) { return byte != 0 ? 1.0 : 0.0; });
      return OkStatus();
    }
    if (H5Dread(dataset_.id(), H5T_NATIVE_DOUBLE, memory.id(), space, H5P_DEFAULT, out) < 0)
      return Fault(kUnreadable);
    if (cells_.missing)
      std::replace(out, out + count, *cells_.missing, std::numeric_limits<double>::quiet_NaN());
    return OkStatus();
  }

  // `rows` values of the last index of the file, which it has together, become rows; of the other indexes the
  // first of the file runs fastest.
  void Turn(const double* from, int64_t rows, double* out) const {
    int64_t width = 1;
    for (size_t i = 1; i < sizes_.size(); ++i) width *= sizes_[i];
    // The place of a column counts sizes_[1], sizes_[2], ..., the last fastest; the file counts them the
    // other way.
    std::vector<int64_t> place(sizes_.size(), 0);
    for (int64_t k = 0, column = 0; k < width; ++k) {
      for (int64_t row = 0; row < rows; ++row) out[row * width + column] = from[k * rows + row];
      // One step in the order of the file: sizes_[1] is its last but one index, the fastest here.
      int64_t stride = width;
      for (size_t i = 1; i < sizes_.size(); ++i) {
        stride /= sizes_[i];
        column += stride;
        if (++place[i] < sizes_[i]) break;
        column -= stride * sizes_[i];
        place[i] = 0;
      }
    }
  }

  const ModuleInput input_;
  Storage storage_;
  Handle file_;
  bool transposed_ = false;
  std::vector<int64_t> sizes_;
  std::string writer_;
  int64_t bytes_of_read_ = int64_t{4} << 20;  // Its buffers, and some for tables.

  // Of a dense array.
  Handle dataset_;
  Cells cells_;
  int64_t rows_of_chunk_ = 1;

  // Of a sparse one: the rows or columns are its majors, and each one's cells stand together.
  int64_t stored_ = kUnknown;
  bool majors_are_columns_ = false;
  std::vector<int64_t> ends_;  // Where the cells of each major begin, and one more for the end.
  List indexes_, values_;
};

Result<std::unique_ptr<StoredArray>> OpenHdf5(const ModuleInput& input, const ArrayChoice& choice) {
  auto array = std::make_unique<OpenArray>(input);
  HEDDLE_RETURN_IF_ERROR(array->Open(choice));
  return std::unique_ptr<StoredArray>(std::move(array));
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
