// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/hdf5/attributes.h"

#include <cstring>

#include "ops/io/formats/module/hdf5/library.h"

namespace heddle::ops::hdf5 {
namespace {

Handle OpenAttribute(hid_t object, const char* name) {
  if (object < 0 || H5Aexists(object, name) <= 0) return Handle();
  return Handle(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
}

// A text in an attribute or a dataset; "" where it is none, or long.
template <typename GetType, typename GetSpace, typename ReadText>
std::string TextIn(const GetType& get_type, const GetSpace& get_space, const ReadText& read) {
  constexpr size_t kMost = 256;
  const Handle type(get_type(), H5Tclose);
  const Handle space(get_space(), H5Sclose);
  if (!type.ok() || !space.ok() || H5Tget_class(type.id()) != H5T_STRING ||
      H5Sget_simple_extent_npoints(space.id()) != 1)
    return "";
  if (H5Tis_variable_str(type.id()) > 0) {
    char* text = nullptr;
    if (read(type.id(), &text) < 0 || text == nullptr) return "";
    std::string found(text, strnlen(text, kMost));
    H5free_memory(text);
    return found;
  }
  const size_t size = H5Tget_size(type.id());
  if (size == 0 || size > kMost) return "";
  std::string text(size, '\0');
  if (read(type.id(), text.data()) < 0) return "";
  text.resize(strnlen(text.data(), size));
  return text;
}

}  // namespace

bool HasAttribute(hid_t object, const char* name) { return object >= 0 && H5Aexists(object, name) > 0; }

std::vector<int64_t> NumbersOfAttribute(hid_t object, const char* name) {
  constexpr hssize_t kMost = 64;
  const Handle attribute = OpenAttribute(object, name);
  if (!attribute.ok()) return {};
  const Handle space(H5Aget_space(attribute.id()), H5Sclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const hssize_t count = space.ok() ? H5Sget_simple_extent_npoints(space.id()) : 0;
  if (!type.ok() || count < 1 || count > kMost || H5Tget_class(type.id()) != H5T_INTEGER) return {};
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  if (H5Aread(attribute.id(), H5T_NATIVE_INT64, numbers.data()) < 0) return {};
  return numbers;
}

bool IsMarked(hid_t object, const char* name) {
  const std::vector<int64_t> numbers = NumbersOfAttribute(object, name);
  return numbers.size() == 1 && numbers[0] != 0;
}

std::string TextOfAttribute(hid_t object, const char* name) {
  const Handle attribute = OpenAttribute(object, name);
  if (!attribute.ok()) return "";
  return TextIn([&] { return H5Aget_type(attribute.id()); }, [&] { return H5Aget_space(attribute.id()); },
                [&](hid_t type, void* out) { return H5Aread(attribute.id(), type, out); });
}

std::string TextOfDataset(hid_t group, const char* name) {
  if (H5Lexists(group, name, H5P_DEFAULT) <= 0) return "";
  const Handle dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return "";
  return TextIn(
      [&] { return H5Dget_type(dataset.id()); }, [&] { return H5Dget_space(dataset.id()); },
      [&](hid_t type, void* out) { return H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out); });
}

}  // namespace heddle::ops::hdf5
