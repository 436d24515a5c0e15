// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/network/tls_files.h"
#include "core/status.h"

namespace heddle::cluster {

/// Why no call to a master gets through: connects once more and looks. gRPC says of all of it that the server
/// is not available.
///
/// Nobody listens; the server speaks TLS and the caller does not, or the other way round; the server's
/// certificate is signed by somebody else, is too old, or is that of another machine; the server wants a
/// certificate of the caller; the server closes connections at once. kUnavailable, whatever it is; takes a
/// few seconds at most.
Status WhyUnreachable(const std::string& address, const TlsFiles& tls);

}  // namespace heddle::cluster
