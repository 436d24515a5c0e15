// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace heddle::cluster::cli {

/// A file of deploy/launch, which is part of the binary: a text with places such as @heddle@.
struct LaunchFile {
  std::string_view path;  ///< Below deploy/launch: "ssh.sh".
  std::string_view text;
};

/// All of them, by path (launch_table.cc, made by the build).
std::span<const LaunchFile> LaunchFiles();

}  // namespace heddle::cluster::cli
