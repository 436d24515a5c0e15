// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/values/column_groups.h"

// Column groups as bytes without pointers: on the wire, in spill files and in binary files. Numbers are
// little-endian; a dictionary that several groups share is there once.
namespace heddle {

/// Bytes that FlattenGroups makes of these rows, at most: those of all rows of the groups.
int64_t MostFlatBytes(const Matrix& compressed);

/// The rows of a compressed matrix. kResourceExhausted.
Result<std::shared_ptr<Buffer>> FlattenGroups(const Matrix& compressed);

/// Appends the bytes of all rows of the groups.
void AppendFlatGroups(const ColumnGroups& groups, std::string* bytes);

/// The compressed matrix of the bytes, which it copies. kDataLoss for bytes that are no such matrix, whatever
/// they are: nothing is read beyond them, and no memory taken that they could not fill; kResourceExhausted.
Result<Matrix> UnflattenGroups(std::span<const char> bytes);

}  // namespace heddle
