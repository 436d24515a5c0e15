// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cluster/access/master_folder.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr size_t kLeastBytes = 16;
constexpr size_t kMostBytes = 4096;
constexpr mode_t kWrittenByOthers = 022;
constexpr mode_t kReadByOthers = 044;

// Pipes are private to those who hold them. Files that belong to root or to this user are theirs to close.
Status CheckOwnership(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return OkStatus();
  if (status.st_uid != 0 && status.st_uid != geteuid())
    return PermissionDenied("the token file '{}' belongs to another user", path)
        .WithNote("whoever owns it could exchange the token: copy it to a file of your own");
  if ((status.st_mode & kWrittenByOthers) != 0)
    return PermissionDenied("others can write the token file '{}'", path)
        .WithNote("close it: chmod 600 " + path);
  if ((status.st_mode & kReadByOthers) != 0)
    HEDDLE_LOG(kWarning, "others can read the token file", {"path", path}, {"to_close_it", "chmod 600"});
  return OkStatus();
}

}  // namespace

Result<std::string> ReadToken(const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(CheckOwnership(path));
  HEDDLE_ASSIGN_OR_RETURN(std::string token, ReadFirstLine(path));
  if (token.size() < kLeastBytes || token.size() > kMostBytes)
    return Usage("the token in '{}' has {} characters; it needs {} to {}", path, token.size(), kLeastBytes,
                 kMostBytes);
  const auto strange = std::find_if(token.begin(), token.end(), [](char c) { return c <= ' ' || c > '~'; });
  if (strange != token.end())
    return Usage("the token in '{}' has a character that cannot be sent: byte {}, 0x{:02x}", path,
                 strange - token.begin() + 1, static_cast<unsigned char>(*strange))
        .WithNote("a token is made of letters, digits and other visible characters of ASCII");
  return token;
}

}  // namespace heddle::cluster
