// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/open_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/values/sizes.h"
#include "ops/io/formats/module/hdf5/attributes.h"
#include "ops/io/formats/module/hdf5/dataset.h"
#include "ops/io/formats/module/hdf5/find_matrices.h"
#include "ops/io/formats/module/hdf5/library.h"
#include "ops/io/formats/module/hdf5/sparse_group.h"
#include "ops/io/formats/module/hdf5/storage.h"
#include "ops/io/formats/several_arrays.h"

namespace heddle::ops::hdf5 {
namespace {

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

  Result<std::string> Choose(const std::string& dataset) {
    const std::string wanted = dataset.empty() ? kDefaultName : dataset;
    if (HasPath(file_.id(), wanted)) return wanted;
    const FoundMatrices found = FindMatrices(file_.id());
    const std::vector<std::string>& names = found.names;
    if (dataset.empty() && names.size() == 1) return names[0];
    if (names.empty() && !found.cause.empty())
      return Fault(fmt::format("dataset '{}' cannot be opened", found.unreadable), found.cause);
    if (names.empty()) return DataLoss("cannot read '{}': it holds no dataset of numbers", input_.path);
    if (dataset.empty()) return SeveralArrays(input_.path, "datasets", names);
    return DataLoss("cannot read '{}': it has no dataset '{}'", input_.path, dataset)
        .WithNote("it has: " + ListOfArrays(names));
  }

  Status LookAtDense(const std::string& name) {
    const Handle type(H5Dget_type(dataset_.id()), H5Tclose);
    const std::string matlab_class = TextOfAttribute(dataset_.id(), "MATLAB_class");
    const bool is_text = matlab_class == "char";
    if (!type.ok() || !IsReadable(type.id()) || is_text)
      return DataLoss("cannot read '{}': dataset '{}' holds {}, not numbers", input_.path, name,
                      is_text ? "texts" : ContentOf(type.id()));
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

}  // namespace

Result<std::unique_ptr<StoredArray>> OpenHdf5(const ModuleInput& input, const ArrayChoice& choice) {
  auto array = std::make_unique<OpenArray>(input);
  HEDDLE_RETURN_IF_ERROR(array->Open(choice));
  return std::unique_ptr<StoredArray>(std::move(array));
}

}  // namespace heddle::ops::hdf5
