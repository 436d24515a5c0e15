// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ops/io/formats/rds/r_file.h"

namespace heddle::ops {

/// What an object is, in words: "a function", "an object of class 'lm'".
Result<std::string> DescribeObject(const RFile& file, const RObject& object);
/// kDataLoss: the object is no matrix and no table.
Status NoTable(const RFile& file, const RObject& object);

/// The sizes of a vector, one for each index: those of its attribute dim, else its length. kDataLoss where
/// they are not those of its cells.
Result<std::vector<int64_t>> SizesOf(const RFile& file, const RObject& vector);
/// The names of what an index counts, from 0: of dimnames, or of a vector without dim its names. nullptr
/// where there are none.
const RObject* NamesOfIndex(const RFile& file, const RObject& vector, int64_t index);

/// The object that dataset= names: "" the file's only matrix or table, "a" one of several, "a$b" a part of
/// one. kDataLoss lists what there is.
Result<const RObject*> ChooseObject(const ReadOptions& options, const RFile& file);

}  // namespace heddle::ops
