// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

// What is installed with Heddle and used when it is first needed: modules that contain large libraries, and
// the program that reads files of HDF5 and MATLAB.
namespace heddle {

/// The path of an installed file: in the folder of the shared library or program that this function is linked
/// into, in the parent of that folder, or in ../lib/heddle. A host program that loads Heddle as a library may
/// lie elsewhere. A file of another user than root, this one and the owner of the library is none of ours.
/// kNotFound: "NAME is not beside PATH".
Result<std::string> FindInstalled(std::string_view file_name);

/// What the function `symbol` of the module `file_name` returns for the version `abi` of its interface. The
/// module stays loaded. kNotFound as FindInstalled; kUnavailable where it cannot be loaded or belongs to
/// another version, which makes the function return nullptr.
Result<const void*> OpenModule(std::string_view file_name, const char* symbol, int32_t abi);

}  // namespace heddle
