// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

// The marks that tools leave in their files: numbers and texts in attributes, and texts in datasets beside
// others.
namespace heddle::ops::hdf5 {

bool HasAttribute(hid_t object, const char* name);

/// The numbers of an attribute; none where there is no such attribute, or where it holds too many to be one
/// of the marks that are looked for here.
std::vector<int64_t> NumbersOfAttribute(hid_t object, const char* name);

/// Whether an attribute is one number that is not 0.
bool IsMarked(hid_t object, const char* name);

/// The text of an attribute or a dataset; "" where it is none, or long.
std::string TextOfAttribute(hid_t object, const char* name);
std::string TextOfDataset(hid_t group, const char* name);

}  // namespace heddle::ops::hdf5
