// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::cluster {

/// One use of the gRPC library that lasts as long as the process. When its last use ends the library joins
/// its threads, which may sleep for ten seconds: a process that has said its last word would seem to be
/// stuck.
void KeepGrpcLibrary();

}  // namespace heddle::cluster
