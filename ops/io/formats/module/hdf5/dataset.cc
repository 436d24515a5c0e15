// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "ops/io/formats/module/hdf5/attributes.h"
#include "ops/io/formats/module/hdf5/library.h"

namespace heddle::ops::hdf5 {
namespace {

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

}  // namespace

bool IsReadable(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM ||
         (kind == H5T_BITFIELD && H5Tget_size(type) == 1);
}

std::string ContentOf(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_BITFIELD) return fmt::format("bit fields of {} bytes", H5Tget_size(type));
  const auto has_field = [&](const char* name) { return H5Tget_member_index(type, name) >= 0; };
  if (kind == H5T_COMPOUND && H5Tget_nmembers(type) == 2 &&
      ((has_field("real") && has_field("imag")) || (has_field("r") && has_field("i"))))
    return "complex numbers";
  return std::string(ClassName(kind));
}

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

}  // namespace heddle::ops::hdf5
