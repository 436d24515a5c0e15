// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/cli/arguments.h"
#include "ops/io/formats/file_format.h"

// Options of the verbs that look at files of data.
namespace heddle::cluster::cli {

/// The value of an option that names a format; kUsage for one that Heddle does not know.
Result<ops::FileFormat> ReadFormat(std::string_view option, const std::string& name);
/// --header, or another option that is TRUE or FALSE; kUsage for anything else.
Result<std::optional<bool>> ReadHeader(const Arguments& arguments, std::string_view option = "header");
/// --memory.
Status LimitMemoryOfFiles(const Arguments& arguments);

}  // namespace heddle::cluster::cli
