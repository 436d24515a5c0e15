// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/grpc_hello.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle::cluster {
namespace {

// Executors of different versions may disagree about plans and frames.
constexpr std::string_view kWireVersion = "3";

std::string_view Find(const grpc::CallbackServerContext& context, const char* name) {
  const auto& metadata = context.client_metadata();
  auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view()
                                 : std::string_view(found->second.data(), found->second.size());
}

bool Matches(const grpc::CallbackServerContext& context, const char* name, int64_t value) {
  return Find(context, name) == fmt::format("{}", value);
}

}  // namespace

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i)
    difference |=
        static_cast<unsigned char>(b[i]) ^ static_cast<unsigned char>(a.empty() ? 0 : a[i % a.size()]);
  return difference == 0;
}

void AddHello(const Hello& hello, grpc::ClientContext* context) {
  context->AddMetadata("heddle-token", hello.token);
  context->AddMetadata("heddle-wire", std::string(kWireVersion));
  context->AddMetadata("heddle-job", hello.job);
  context->AddMetadata("heddle-attempt", fmt::format("{}", hello.attempt));
  context->AddMetadata("heddle-rank", fmt::format("{}", hello.rank));
  context->AddMetadata("heddle-ranks", fmt::format("{}", hello.ranks));
}

grpc::Status CheckHello(const Hello& own, const grpc::CallbackServerContext& context, int* rank) {
  if (!EqualInConstantTime(Find(context, "heddle-token"), own.token))
    return {grpc::StatusCode::PERMISSION_DENIED, "the token is not that of this job"};
  if (Find(context, "heddle-wire") != kWireVersion)
    return {grpc::StatusCode::FAILED_PRECONDITION, "the executors are of different versions"};
  if (Find(context, "heddle-job") != own.job || !Matches(context, "heddle-attempt", own.attempt) ||
      !Matches(context, "heddle-ranks", own.ranks))
    return {grpc::StatusCode::FAILED_PRECONDITION, "this executor belongs to another job or attempt"};
  const std::string_view text = Find(context, "heddle-rank");
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *rank);
  if (parsed.ec != std::errc() || *rank < 0 || *rank >= own.ranks || *rank == own.rank)
    return {grpc::StatusCode::FAILED_PRECONDITION, "there is no such rank"};
  return grpc::Status::OK;
}

}  // namespace heddle::cluster
