// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/cli/arguments.h"
#include "cluster/cli/script_input.h"

// --data-root: which folders scripts of jobs may use (docs/daemons.md).
namespace heddle::cluster::cli {

/// Of master and worker: the only folders that jobs may use.
inline constexpr Option kDataRootOption = {
    "data-root", Option::Kind::kValue, "DIR",
    "jobs use files below it only; may be given again (default: what they name)"};

/// The folders of --data-root, absolute. kNotFound for one that is none.
Result<std::vector<std::string>> ReadDataRoots(const Arguments& arguments);

/// Files that no script may use, absolute: those of the options named, and the socket of `listen`.
std::vector<std::string> ClosedPaths(const Arguments& arguments, std::initializer_list<const char*> options,
                                     const std::string& listen = "");

/// What a user names who submits a job: folders by --data-root, which other machines may have.
std::vector<std::string> NamedRoots(const Arguments& arguments, const std::string& directory);
/// And paths by the arguments of the script, and by -e CODE; absolute.
std::vector<std::string> NamedPaths(const engine::Script& script, const std::string& directory);

}  // namespace heddle::cluster::cli
