// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/matrix.h"
#include "ops/transform/metadata.h"

namespace heddle::ops {

/// The encoded matrix from the codes of each column, which are the rows of `codes`. A column of dummies has a
/// one where the code is, and none for NaN. `rows` are those of the frame that stay; nullopt: all.
///
/// Format:  as asked; CSR is made directly, zeros have no entries.
/// Cost:    reads codes once for a dense result, twice for CSR; parallel by rows.
Result<Matrix> AssembleEncoded(const Matrix& codes, const EncodedLayout& layout,
                               const std::optional<std::vector<int64_t>>& rows, Format format);

/// The way back: the codes of each column, as rows. Of dummies, the number of the first that is not zero; NaN
/// where there is none.
Result<Matrix> CodesOfEncoded(const Matrix& encoded, const EncodedLayout& layout);

}  // namespace heddle::ops
