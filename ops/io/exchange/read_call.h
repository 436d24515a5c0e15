// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/io/exchange/inspect_file.h"

namespace heddle::ops {

/// The call of read() that gives what `facts` tell, found by reading the file as each call would, up to the
/// rows that were looked at: facts->how_to_read. Where no call gives it, that is empty, and
/// facts->why_not_read says why the last one does not.
void FindReadCall(const ReadOptions& read, const InspectOptions& options, Files& files, FileFacts* facts);

/// The literal of DML that is this text. A script has no way to write some texts: \\ in a string is two
/// backslashes, so that a single one is in no string.
std::optional<std::string> StringLiteral(std::string_view text);

}  // namespace heddle::ops
