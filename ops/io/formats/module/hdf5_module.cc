// SPDX-License-Identifier: Apache-2.0
// What the module of HDF5 gives to the program. Only this folder's hdf5/ knows the library.
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/module/hdf5/make_image.h"
#include "ops/io/formats/module/hdf5/open_array.h"

namespace heddle::ops {
namespace {

constexpr Hdf5Module kModule = {.open = hdf5::OpenHdf5, .make_image = hdf5::MakeImage};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenHdf5(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
