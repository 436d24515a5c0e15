// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/sparse_group.h"

#include <string>
#include <vector>

#include "ops/io/formats/module/hdf5/attributes.h"
#include "ops/io/formats/module/hdf5/dataset.h"

namespace heddle::ops::hdf5 {
List::List(hid_t group, const char* name) {
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

}  // namespace heddle::ops::hdf5
