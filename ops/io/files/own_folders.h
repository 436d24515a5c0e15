// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/environment/descriptor.h"
#include "core/status.h"

// The folders in which Heddle keeps what is no user's data: state of masters and workers with their tokens,
// machine code, measurements. Only their user may enter them, and scripts are kept out (script_paths.h).
namespace heddle::ops {

/// $XDG_STATE_HOME/heddle, or ~/.local/state/heddle, or, for a user without a home, /tmp/heddle-UID.
std::string UserStateFolder();
/// $XDG_CACHE_HOME/heddle, or ~/.cache/heddle; "" for a user without a home, who has no cache.
std::string UserCacheFolder();
/// Both, and what else Heddle may have made for this user, there or not.
std::vector<std::string> OwnPathsOfUser();

/// What OpenFolderForUser does about a folder of this user that is not as it should be.
struct FolderRules {
  bool is_made = true;  ///< One that is missing is made, with those above it, of mode 0700 under any umask.
  bool is_closed =
      false;  ///< One that others may read becomes theirs no longer (mode 0700); else it is refused.
};

/// Opens the folder at `path`, which belongs to this user and which others can neither enter nor have chosen:
/// in a folder that everybody may write to, as /tmp, neither links nor folders of other users are followed.
/// kPermissionDenied says what is wrong with it.
Result<Descriptor> OpenFolderForUser(const std::string& path, const FolderRules& rules = {});

/// The name of an empty file that marks the folder in which it lies, and all below, as Heddle's own. With it
/// the folders of every master and worker are known to all others, wherever they are and whoever runs them.
inline constexpr char kOwnFolderMark[] = ".private-to-heddle";
/// Puts the mark into a folder of this user. One that cannot be written stays without it.
void MarkOwnFolder(const std::string& path);

/// 32 secret bytes of this user, which scripts cannot read: made at the first use, in `name` of the user's
/// state folder. nullopt where that is not possible, or the file there is not this user's alone.
std::optional<std::string> SecretOfUser(const std::string& state_folder, const std::string& name);

}  // namespace heddle::ops
