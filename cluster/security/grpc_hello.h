// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

namespace heddle::cluster {

/// Who an executor is to its peers; metadata of every call between them.
struct Hello {
  std::string job;
  int attempt = 1;
  int rank = 0;
  int ranks = 1;
  std::string token;
};

void AddHello(const Hello& hello, grpc::ClientContext* context);
/// Checks that the caller belongs to the same attempt of the same job and is another rank of it.
/// PERMISSION_DENIED for a wrong token (compared in constant time, before anything else), FAILED_PRECONDITION
/// for the rest.
grpc::Status CheckHello(const Hello& own, const grpc::CallbackServerContext& context, int* rank);

/// True if both are equal; takes the same time wherever they differ.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace heddle::cluster
