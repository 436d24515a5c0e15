// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "core/values/shape.h"
#include "ops/io/formats/module/hdf5/library.h"

// A group that is a sparse matrix: those of MATLAB 7.3 (attribute MATLAB_sparse, the number of its rows) and
// of Octave are compressed by columns, those of AnnData (attribute encoding-type) by columns or rows.
namespace heddle::ops::hdf5 {

/// A dataset that is a list: with one index, or a column of a matrix.
class List {
 public:
  List() = default;
  /// Not ok() where there is no such list of numbers.
  List(hid_t group, const char* name);
  bool ok() const { return is_list_; }
  int64_t length() const { return length_; }

  /// The numbers [begin, end); false where they cannot be read.
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

/// Where the parts of a sparse matrix are in its group.
struct SparseGroup {
  const char* writer = "";  ///< The tool, if it keeps its dense matrices column by column.
  const char *ends = "", *indexes = "";
  bool by_columns = true;
  int64_t rows = 0;
  int64_t columns = kUnknown;  ///< kUnknown: the list `ends` has one for each, and one more.
};

/// Nothing where the group is none of those.
std::optional<SparseGroup> FindSparse(hid_t group);

}  // namespace heddle::ops::hdf5
