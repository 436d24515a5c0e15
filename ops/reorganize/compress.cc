// SPDX-License-Identifier: Apache-2.0
#include "ops/base/operator.h"

namespace heddle::ops {

/// [C, M] = compress(X, M): X, and the types of its columns, a frame of one row. It tells SystemDS to store a
/// value by groups of columns, M being how; here a value is stored as the operators that read it need it, and
/// M, where it is given, changes nothing.
extern constexpr Operator kCompressForm = {
    .name = "compress", .form = CallForm::kSame, .parameters = "X M?", .results = 2};

/// decompress(X), local(X): X.
extern constexpr Operator kDecompressForm = {
    .name = "decompress", .form = CallForm::kSame, .parameters = "X", .aliases = "local"};

/// quantize_compress(X, s): floor(X * s), where s is a number or has one for each row.
extern constexpr Operator kQuantizeForm = {
    .name = "quantize_compress", .form = CallForm::kQuantize, .parameters = "X s"};

}  // namespace heddle::ops
