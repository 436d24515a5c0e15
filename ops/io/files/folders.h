// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/environment/descriptor.h"

// Paths without links, and folders that are opened by them.
namespace heddle::ops {

/// `path`, which is absolute, without links, "." and "..", as far as it exists. `circle` (may be nullptr) is
/// set when links lead round.
std::string FollowLinks(const std::string& path, bool* circle = nullptr);

/// The folder of a path without links: "/a" of "/a/b".
std::string FolderOf(const std::string& path);
/// Its last name; "" of "/".
std::string NameOf(const std::string& path);
/// Whether a path without links is a folder without links or lies in it.
bool IsWithin(std::string_view path, std::string_view folder);

/// Opens a folder, for finding what it holds, by a path without links: by openat2(), which refuses every link
/// on the way, or by WalkToFolder() where the kernel lacks that or does not let this process. A link that has
/// taken a place on the way gives ELOOP or ENOTDIR. Not ok: errno says why.
Descriptor OpenFolder(const std::string& path);
/// The same, folder by folder; `make` makes those that are missing.
Descriptor WalkToFolder(const std::string& path, bool make);

}  // namespace heddle::ops
