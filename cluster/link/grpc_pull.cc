// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/grpc_pull.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::cluster {
namespace {

// Values that one peer may be fetching at a time; a plan has far fewer copies in flight.
constexpr size_t kMostPulls = 65'536;

grpc::ByteBuffer HeaderOnly(const engine::FrameHeader& header) {
  const auto bytes = header.Encode();
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

void Release(void* keep_alive) { delete static_cast<std::shared_ptr<const void>*>(keep_alive); }

grpc::ByteBuffer ToBuffer(const engine::OutgoingFrame& frame) {
  const auto bytes = frame.header.Encode();
  if (frame.payload == nullptr) {
    const grpc::Slice slices[] = {grpc::Slice(bytes.data(), bytes.size()), grpc::Slice(frame.owned)};
    return grpc::ByteBuffer(slices, 2);
  }
  // The matrix lives until gRPC drops the slice, which may be after the write has completed.
  const grpc::Slice slices[] = {grpc::Slice(bytes.data(), bytes.size()),
                                grpc::Slice(const_cast<void*>(frame.payload), frame.header.size, Release,
                                            new std::shared_ptr<const void>(frame.keep_alive))};
  return grpc::ByteBuffer(slices, 2);
}

// Copies bytes [begin, begin + size) of the slices to `out`; false when they hold fewer.
bool Copy(const std::vector<grpc::Slice>& slices, size_t begin, size_t size, uint8_t* out) {
  for (const grpc::Slice& slice : slices) {
    if (size == 0) break;
    if (begin >= slice.size()) {
      begin -= slice.size();
      continue;
    }
    const size_t part = std::min(size, slice.size() - begin);
    std::memcpy(out, slice.begin() + begin, part);
    out += part;
    size -= part;
    begin = 0;
  }
  return size == 0;
}

Result<engine::FrameHeader> ReadHeader(const grpc::ByteBuffer& frame, std::vector<grpc::Slice>* slices) {
  uint8_t bytes[engine::kHeaderBytes];
  if (!frame.Dump(slices).ok() || !Copy(*slices, 0, engine::kHeaderBytes, bytes))
    return DataLoss("a frame shorter than its header");
  HEDDLE_ASSIGN_OR_RETURN(const engine::FrameHeader header, engine::FrameHeader::Decode(bytes));
  if (frame.Length() != engine::kHeaderBytes + header.size) return DataLoss("a frame of the wrong length");
  return header;
}

void Abort(const std::weak_ptr<StreamPort>& weak) {
  if (const std::shared_ptr<StreamPort> port = weak.lock()) port->Abort();
}

void Wake(const std::weak_ptr<StreamPort>& weak) {
  if (const std::shared_ptr<StreamPort> port = weak.lock()) port->Wake();
}

}  // namespace

bool PullServer::NextFrame(grpc::ByteBuffer* frame) {
  const std::lock_guard lock(mutex_);
  while (!active_.empty()) {
    engine::OutgoingValue value = std::move(active_.front());
    active_.pop_front();
    const std::optional<engine::OutgoingFrame> next = value.Next();
    if (!next) continue;
    bytes_sent_.fetch_add(next->header.size, std::memory_order_relaxed);
    *frame = ToBuffer(*next);
    if (!next->header.last) active_.push_back(std::move(value));
    return true;
  }
  return false;
}

void PullServer::OnFrame(grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  const Result<engine::FrameHeader> header = ReadHeader(frame, &slices);
  if (!header.ok() || header->kind != engine::FrameKind::kPull) return Abort(port_);  // not one of ours
  // Without the lock, which holds up all that is on its way: the bytes of a compressed matrix are made here.
  engine::OutgoingValue value(header->request,
                              handler_.Published(header->run, header->register_id, header->slot));
  {
    const std::lock_guard lock(mutex_);
    if (active_.size() >= kMostPulls) return Abort(port_);
    active_.push_back(std::move(value));
  }
  Wake(port_);
}

void PullServer::OnClosed(const grpc::Status&) {
  const std::lock_guard lock(mutex_);
  active_.clear();
}

void PullClient::Use(std::weak_ptr<StreamPort> port) {
  const std::lock_guard lock(mutex_);
  port_ = std::move(port);
  requests_.clear();
  for (auto& [request, pending] : pending_) {
    auto fresh = std::make_shared<Pending>();  // the value starts over
    fresh->request = pending->request;
    fresh->done = std::move(pending->done);
    pending = std::move(fresh);
    requests_.push_back(pending->request);
  }
}

void PullClient::Pull(uint32_t run, RegisterId register_id, uint8_t slot, Done done) {
  auto pending = std::make_shared<Pending>();
  engine::FrameHeader& header = pending->request;
  header.kind = engine::FrameKind::kPull;
  header.run = run;
  header.register_id = register_id;
  header.slot = slot;
  pending->done = std::move(done);
  Status failure;
  std::shared_ptr<StreamPort> port;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
    if (failure.ok()) {
      header.request = next_request_++;
      requests_.push_back(header);
      pending_.emplace(header.request, pending);
      port = port_.lock();
    }
  }
  if (!failure.ok()) return pending->done(failure);
  if (port != nullptr) port->Wake();
}

bool PullClient::NextFrame(grpc::ByteBuffer* frame) {
  const std::lock_guard lock(mutex_);
  if (requests_.empty()) return false;
  *frame = HeaderOnly(requests_.front());
  requests_.pop_front();
  return true;
}

Status PullClient::Accept(const engine::FrameHeader& header, Pending& pending,
                          const std::vector<grpc::Slice>& slices) {
  if (header.kind == engine::FrameKind::kData) {
    HEDDLE_ASSIGN_OR_RETURN(uint8_t* const place, pending.value.Place(header));
    Copy(slices, engine::kHeaderBytes, header.size, place);
    return OkStatus();
  }
  std::string payload(header.size, '\0');
  Copy(slices, engine::kHeaderBytes, header.size, reinterpret_cast<uint8_t*>(payload.data()));
  return pending.value.Accept(header, payload);
}

void PullClient::AbortStream() {
  std::weak_ptr<StreamPort> port;
  {
    const std::lock_guard lock(mutex_);
    port = port_;
  }
  Abort(port);
}

void PullClient::OnFrame(grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  const Result<engine::FrameHeader> header = ReadHeader(frame, &slices);
  if (!header.ok()) return AbortStream();
  bytes_received_.fetch_add(header->size, std::memory_order_relaxed);
  std::shared_ptr<Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    auto found = pending_.find(header->request);
    if (found == pending_.end()) return;  // has failed before
    pending = found->second;
  }
  const Status status = Accept(*header, *pending, slices);
  if (status.ok() && !header->last) return;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.erase(header->request) == 0) return;  // It has failed meanwhile.
  }
  pending->done(status.ok() ? pending->value.Finish() : Result<Value>(status));
}

void PullClient::Fail(const Status& why) {
  std::map<uint64_t, std::shared_ptr<Pending>> abandoned;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = why;
    abandoned.swap(pending_);
    requests_.clear();
  }
  for (const auto& [request, pending] : abandoned) pending->done(why);
}

}  // namespace heddle::cluster
