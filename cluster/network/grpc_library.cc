// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/grpc_library.h"

#include <grpc/grpc.h>

namespace heddle::cluster {

void KeepGrpcLibrary() {
  static const bool is_kept = (grpc_init(), true);
  (void)is_kept;
}

}  // namespace heddle::cluster
