// SPDX-License-Identifier: Apache-2.0
#include "ops/base/operator.h"

namespace heddle::ops {

/// compress(X), decompress(X), local(X): X. They tell SystemDS how to store a value, and here nothing.
extern constexpr Operator kCompressForm = {
    .name = "compress", .form = CallForm::kSame, .parameters = "X", .aliases = "decompress local"};

/// quantize_compress(X, s): floor(X * s), where s is a number or has one for each row.
extern constexpr Operator kQuantizeForm = {
    .name = "quantize_compress", .form = CallForm::kQuantize, .parameters = "X s"};

}  // namespace heddle::ops
