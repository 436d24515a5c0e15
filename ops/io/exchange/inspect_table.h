// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/exchange/inspect_file.h"

namespace heddle::ops {

/// The facts of a csv file, line by line: what a matrix or frame that is read from it would refuse is a
/// warning here. `read` says separator and header; the rest of `facts` is known.
Status InspectTable(const ReadOptions& read, const InspectOptions& options, Files& files, FileFacts* facts);

/// What is wrong with the columns, as warnings.
void WarnOfColumns(FileFacts* facts);

}  // namespace heddle::ops
