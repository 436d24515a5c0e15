// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/make_image.h"

#include <mutex>

#include "ops/io/formats/module/hdf5/library.h"
#include "ops/io/formats/module/hdf5/storage.h"

namespace heddle::ops::hdf5 {
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

}  // namespace heddle::ops::hdf5
