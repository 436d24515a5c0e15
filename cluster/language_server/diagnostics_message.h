// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "cluster/language_server/checker.h"

namespace heddle::cluster {

/// The parameters of textDocument/publishDiagnostics. What is wrong in a file that the script sources is
/// shown where it sources it, with the place; `address_of` gives the address of a script's path, "" where it
/// has none.
Json DiagnosticsMessage(const OpenDocument& document, const CheckedDocument& checked,
                        compiler::TextLines::Units units,
                        const std::function<std::string(const std::string& path)>& address_of);

}  // namespace heddle::cluster
