// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/rpc_rules.h"

#include <algorithm>
#include <vector>

#include "proto/rpc_rules.h"

namespace heddle::cluster {

std::string RpcRule::ShortName() const {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const size_t slash = name.find('/');
  return std::string(name.substr(0, slash)) + "." + std::string(name.substr(slash + 1));
}

std::span<const RpcRule> RpcRules() { return kRpcRules; }

const RpcRule* FindRule(std::string_view path) {
  const auto* const found = std::find_if(std::begin(kRpcRules), std::end(kRpcRules),
                                         [&](const RpcRule& rule) { return rule.path == path; });
  return found == std::end(kRpcRules) ? nullptr : found;
}

std::string ToText(Roles roles) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kRoleNames.size(); ++i)
    if (roles.Has(static_cast<Role>(i))) names.push_back(kRoleNames[i]);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace heddle::cluster
