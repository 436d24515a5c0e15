// SPDX-License-Identifier: Apache-2.0
// The one file that knows libmatio: MATLAB's files of versions 4 and 5. It is used in a process of one thread
// (ops/io/formats/libraries/array_process.h).
#include <fmt/format.h>
#include <matio.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/values/sizes.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/several_arrays.h"

namespace heddle::ops {
namespace {

std::string_view ClassName(const matvar_t& variable) {
  if (variable.isComplex != 0) return "complex numbers";
  switch (variable.class_type) {
    case MAT_C_CELL: return "a cell array";
    case MAT_C_STRUCT: return "a struct";
    case MAT_C_OBJECT:
    case MAT_C_OPAQUE: return "an object";
    case MAT_C_CHAR: return "texts";
    case MAT_C_FUNCTION: return "a function";
    case MAT_C_EMPTY: return "nothing";
    default: return "no numbers";
  }
}

bool IsMatrix(const matvar_t& variable) {
  if (variable.isComplex != 0 || variable.name == nullptr || variable.dims == nullptr) return false;
  return variable.class_type >= MAT_C_SPARSE && variable.class_type <= MAT_C_UINT64;
}

// Number `at` of an array of one of the library's types.
double NumberAt(const void* numbers, matio_types type, size_t at) {
  const auto as = [&]<typename T>(T) {
    T number;
    std::memcpy(&number, static_cast<const char*>(numbers) + at * sizeof(T), sizeof(T));
    return static_cast<double>(number);
  };
  switch (type) {
    case MAT_T_INT8: return as(int8_t{});
    case MAT_T_UINT8: return as(uint8_t{});
    case MAT_T_INT16: return as(int16_t{});
    case MAT_T_UINT16: return as(uint16_t{});
    case MAT_T_INT32: return as(int32_t{});
    case MAT_T_UINT32: return as(uint32_t{});
    case MAT_T_INT64: return as(int64_t{});
    case MAT_T_UINT64: return as(uint64_t{});
    case MAT_T_SINGLE: return as(float{});
    default: return as(double{});
  }
}

class MatArray : public StoredArray {
 public:
  explicit MatArray(const std::string& path) : path_(path) {}
  ~MatArray() override {
    if (variable_ != nullptr) Mat_VarFree(variable_);
    if (file_ != nullptr) Mat_Close(file_);
  }

  Status Open(const std::string& place, const ArrayChoice& choice) {
    file_ = Mat_Open(place.c_str(), MAT_ACC_RDONLY);
    if (file_ == nullptr) return Damaged("");
    HEDDLE_RETURN_IF_ERROR(Choose(choice.dataset));
    return Look(choice.transposed);
  }

  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t rows_of_chunk() const override { return 1; }
  int64_t bytes_of_read() const override { return bytes_of_read_; }
  int64_t stored() const override { return stored_; }
  const std::string& column_major_writer() const override { return nobody_; }

  Status Read(int64_t begin, int64_t end, double* out) override {
    HEDDLE_RETURN_IF_ERROR(Load());
    int64_t width = 1;
    for (size_t i = 1; i < sizes_.size(); ++i) width *= sizes_[i];
    if (width == 0) return OkStatus();
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < width; ++column)
        *out++ = NumberAt(variable_->data, variable_->data_type,
                          static_cast<size_t>(row * strides_[0] + PlaceOfColumn(column)));
    return OkStatus();
  }

  Status ReadStored(int64_t begin, int64_t end, StoredCell* out) override {
    HEDDLE_RETURN_IF_ERROR(Load());
    const auto& sparse = *static_cast<const mat_sparse_t*>(variable_->data);
    int64_t column = 0;
    for (int64_t k = begin; k < end; ++k) {
      while (int64_t{sparse.jc[column + 1]} <= k) ++column;
      StoredCell& cell = out[k - begin];
      cell = {.row = sparse.ir[k],
              .column = column,
              .value = NumberAt(sparse.data, variable_->data_type, static_cast<size_t>(k))};
      if (transposed_) std::swap(cell.row, cell.column);
    }
    return OkStatus();
  }

 private:
  Status Damaged(std::string_view what) const {
    return DataLoss("cannot read '{}': it is a MATLAB file that is damaged or cut short{}{}", path_,
                    what.empty() ? "" : ": ", what);
  }

  Status Choose(const std::string& dataset) {
    std::vector<std::string> names;
    std::string first_of_others;
    while (matvar_t* const variable = Mat_VarReadNextInfo(file_)) {
      const std::string name = variable->name == nullptr ? "" : variable->name;
      const bool is_wanted = !dataset.empty() && name == dataset;
      const bool is_matrix = IsMatrix(*variable);
      const std::string_view holds = ClassName(*variable);
      if (is_matrix) names.push_back(name);
      if (is_wanted || (dataset.empty() && is_matrix && variable_ == nullptr)) {
        if (variable_ != nullptr) Mat_VarFree(variable_);
        variable_ = variable;
      } else {
        Mat_VarFree(variable);
      }
      if (!is_wanted) continue;
      if (is_matrix) return OkStatus();
      return DataLoss("cannot read '{}': variable '{}' holds {}, not real numbers", path_, name, holds);
    }
    if (names.empty()) return DataLoss("cannot read '{}': it holds no matrix of numbers", path_);
    if (!dataset.empty())
      return DataLoss("cannot read '{}': it has no variable '{}'", path_, dataset)
          .WithNote("it has: " + ListOfArrays(names));
    if (names.size() == 1) return OkStatus();
    return SeveralArrays(path_, "matrices", names);
  }

  Status Look(bool transposed) {
    transposed_ = transposed;
    int64_t stride = 1;
    for (int i = 0; i < variable_->rank; ++i) {
      sizes_.push_back(static_cast<int64_t>(std::min<size_t>(variable_->dims[i], INT64_MAX)));
      strides_.push_back(stride);
      stride = SaturatingProduct(stride, sizes_.back());
    }
    cells_ = stride;
    // As they are stored and as they are unpacked; of a sparse one the library tells no number before it
    // reads.
    bytes_of_read_ = SaturatingSum(int64_t{4} << 20, SaturatingProduct(cells_, 16));
    if (transposed_) {
      std::reverse(sizes_.begin(), sizes_.end());
      std::reverse(strides_.begin(), strides_.end());
    }
    if (variable_->class_type != MAT_C_SPARSE) return OkStatus();
    if (variable_->rank != 2) return Damaged("a sparse matrix has two sizes");
    bytes_of_read_ = int64_t{4} << 20;
    HEDDLE_RETURN_IF_ERROR(Load());
    // Of version 4 the library knows the sizes only now.
    for (size_t i = 0; i < 2; ++i) sizes_[i] = static_cast<int64_t>(variable_->dims[transposed_ ? 1 - i : i]);
    const auto& sparse = *static_cast<const mat_sparse_t*>(variable_->data);
    const size_t columns = variable_->dims[1];
    if (sparse.njc != columns + 1 || sparse.jc == nullptr ||
        !std::is_sorted(sparse.jc, sparse.jc + columns + 1))
      return Damaged("where the columns of a sparse matrix begin");
    stored_ = sparse.jc[columns];
    if (stored_ > 0 &&
        (sparse.ir == nullptr || sparse.data == nullptr || sparse.nir < stored_ || sparse.ndata < stored_))
      return Damaged("a sparse matrix has too few cells");
    return OkStatus();
  }

  // The whole variable, once.
  Status Load() {
    if (is_loaded_) return OkStatus();
    if (Mat_VarReadDataAll(file_, variable_) != 0 || (variable_->data == nullptr && cells_ > 0))
      return Damaged("");
    const auto bytes = static_cast<size_t>(variable_->data_size);
    const bool is_sparse = variable_->class_type == MAT_C_SPARSE;
    if (!is_sparse && variable_->nbytes / std::max<size_t>(1, bytes) < static_cast<size_t>(cells_))
      return Damaged("a matrix has too few cells");
    is_loaded_ = true;
    return OkStatus();
  }

  int64_t PlaceOfColumn(int64_t column) const {
    if (sizes_.size() == 2) return column * strides_[1];
    int64_t place = 0;
    for (size_t i = sizes_.size() - 1; i >= 1; --i) {
      place += column % sizes_[i] * strides_[i];
      column /= sizes_[i];
    }
    return place;
  }

  const std::string path_;
  const std::string nobody_;
  mat_t* file_ = nullptr;
  matvar_t* variable_ = nullptr;
  bool transposed_ = false, is_loaded_ = false;
  std::vector<int64_t> sizes_, strides_;  // In the order in which it is read.
  int64_t cells_ = 0, stored_ = kUnknown;
  int64_t bytes_of_read_ = 0;
};

Result<std::unique_ptr<StoredArray>> OpenMat(const std::string& place, const std::string& path,
                                             const ArrayChoice& choice) {
  // What is wrong is returned, not printed.
  Mat_LogInitFunc("heddle", [](int, char*) {});
  auto array = std::make_unique<MatArray>(path);
  HEDDLE_RETURN_IF_ERROR(array->Open(place, choice));
  return std::unique_ptr<StoredArray>(std::move(array));
}

constexpr MatModule kModule = {.open = OpenMat};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenMat(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
