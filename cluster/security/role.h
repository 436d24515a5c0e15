// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace heddle::cluster {

/// What a token lets its holder do. Which methods each role may call is written beside them
/// (proto/master.proto).
enum class Role : uint8_t {
  kViewer,     ///< Sees how everybody's jobs stand, and the workers.
  kSubmitter,  ///< Submits jobs; sees and cancels own ones.
  kOperator,   ///< What a submitter may, with everybody's jobs; drains workers.
  kAdmin,      ///< What an operator may; makes and revokes tokens, removes workers.
  kWorker,     ///< Works for the master, or may join to do so.
  kExecutor,   ///< Belongs to an attempt of a job, whose token it shows its peers: no token of a master.
};

constexpr std::array<std::string_view, 6> kRoleNames = {"viewer", "submitter", "operator",
                                                        "admin",  "worker",    "executor"};
constexpr std::string_view Name(Role role) { return kRoleNames[static_cast<size_t>(role)]; }
constexpr std::optional<Role> ParseRole(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i)
    if (kRoleNames[i] == name) return static_cast<Role>(i);
  return std::nullopt;
}

/// Some of the roles.
class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) Add(role);
  }
  constexpr void Add(Role role) { bits_ = static_cast<uint8_t>(bits_ | 1U << static_cast<unsigned>(role)); }
  constexpr bool Has(Role role) const { return (bits_ >> static_cast<unsigned>(role) & 1U) != 0; }
  constexpr bool HasAnyOf(Roles others) const { return (bits_ & others.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  uint8_t bits_ = 0;
};

}  // namespace heddle::cluster
