// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/find_matrices.h"

#include <string_view>

#include "ops/io/formats/module/hdf5/attributes.h"
#include "ops/io/formats/module/hdf5/dataset.h"
#include "ops/io/formats/module/hdf5/library.h"
#include "ops/io/formats/module/hdf5/sparse_group.h"

namespace heddle::ops::hdf5 {
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

bool HasPath(hid_t file, const std::string& path) {
  // Part by part, because the library takes no missing group on the way for an answer.
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!part.empty() && part != "/" && H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

FoundMatrices FindMatrices(hid_t file) {
  FoundMatrices found;
  H5Lvisit(
      file, H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
        auto& all = *static_cast<FoundMatrices*>(out);
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

}  // namespace heddle::ops::hdf5
