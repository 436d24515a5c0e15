// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {

// Who gets in: ../admin.cc and admin_token.cc.
extern const Verb kAdminRemoveVerb;
extern const Verb kTokenCreateVerb;
extern const Verb kTokenListVerb;
extern const Verb kTokenRotateVerb;
extern const Verb kTokenRevokeVerb;

}  // namespace heddle::cluster::cli
