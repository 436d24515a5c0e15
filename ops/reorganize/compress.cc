// SPDX-License-Identifier: Apache-2.0
#include "ops/operator.h"

namespace heddle::ops {

/// compress(X), decompress(X), local(X): X. They tell SystemDS how to store a value, and here nothing.
extern constexpr Operator kCompressForm = {
    .name = "compress", .form = CallForm::kSame, .parameters = "X", .aliases = "decompress local"};

}  // namespace heddle::ops
