// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/values/matrix.h"

// lstm and its gradient as literal loops. For tests only.
namespace heddle::ops::reference {

struct LstmCall {
  const Matrix &x, &weights, &bias, &out0, &c0;
  bool sequences;
};
/// The five results.
std::vector<Matrix> Lstm(const LstmCall& call);
/// The five gradients.
std::vector<Matrix> LstmBackward(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell);

/// LstmBackward of at most a granule of sequences; of any number, with the gradients of W and b, which it
/// gives in doubles, added up by the tree over granules.
using LstmBackwardLoops = std::vector<Matrix> (*)(const LstmCall& call, const Matrix& of_out,
                                                  const Matrix& of_cell);
std::vector<Matrix> LstmBackwardByGranules(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell,
                                           LstmBackwardLoops of_granule);

}  // namespace heddle::ops::reference
