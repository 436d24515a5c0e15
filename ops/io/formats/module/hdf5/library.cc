// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/library.h"

namespace heddle::ops::hdf5 {
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

}  // namespace heddle::ops::hdf5
