// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cluster/security/role.h"

namespace heddle::cluster {

/// Who may call a method (proto/access.proto).
struct RpcRule {
  std::string_view path;  ///< As it stands in the headers of a call: "/heddle.Jobs/Submit".
  Roles roles;
  bool changes = false;
  std::string_view object;

  /// "Jobs.Submit"
  std::string ShortName() const;
};

/// One rule for each method of each service of proto/.
std::span<const RpcRule> RpcRules();
/// nullptr: there is no such method, so that nobody may call it.
const RpcRule* FindRule(std::string_view path);

/// "submitter, operator or admin"
std::string ToText(Roles roles);

}  // namespace heddle::cluster
