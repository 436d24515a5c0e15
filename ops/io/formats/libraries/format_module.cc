// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/format_module.h"

#include "core/environment/modules.h"

namespace heddle::ops {

std::string_view NameOf(ArrayLibrary library) { return library == ArrayLibrary::kHdf5 ? "HDF5" : "libmatio"; }

std::string_view ModuleOf(ArrayLibrary library) {
  return library == ArrayLibrary::kHdf5 ? "libheddle_hdf5.so" : "libheddle_mat.so";
}

Status WithoutLibrary(ArrayLibrary library, std::string_view verb, std::string_view what, const Status& why) {
  const Status fault =
      Unimplemented("cannot {} {}: this Heddle was built without {}", verb, what, NameOf(library))
          .WithNote(library == ArrayLibrary::kHdf5
                        ? "install libhdf5-dev and build it again, or use format=\"npy\" or \"csv\""
                        : "install libmatio-dev and build it again, or save(FILE, '-v7.3') in MATLAB");
  return why.code() == StatusCode::kNotFound ? fault : fault.WithNote(why.message());
}

Result<const Hdf5Module*> OpenHdf5Module() {
  static const auto* const found =
      new Result<const void*>(OpenModule(ModuleOf(ArrayLibrary::kHdf5), "HeddleOpenHdf5", kFormatModuleAbi));
  if (!found->ok()) return found->status();
  return static_cast<const Hdf5Module*>(**found);
}

Result<const MatModule*> OpenMatModule() {
  static const auto* const found =
      new Result<const void*>(OpenModule(ModuleOf(ArrayLibrary::kMat5), "HeddleOpenMat", kFormatModuleAbi));
  if (!found->ok()) return found->status();
  return static_cast<const MatModule*>(**found);
}

Result<const ArrowModule*> OpenArrowModule() {
  static const auto* const found =
      new Result<const void*>(OpenModule("libheddle_arrow.so", "HeddleOpenArrow", kFormatModuleAbi));
  if (!found->ok()) return found->status();
  return static_cast<const ArrowModule*>(**found);
}

}  // namespace heddle::ops
