// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc_pull.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::cluster {
namespace {

// Values that one peer may be fetching at a time; a plan has far fewer copies in flight.
constexpr size_t kMostPulls = 65'536;

grpc::ByteBuffer HeaderOnly(const FrameHeader& header) {
  const auto bytes = header.Encode();
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

void Release(void* keep_alive) { delete static_cast<std::shared_ptr<const Value>*>(keep_alive); }

grpc::ByteBuffer ToBuffer(const OutgoingFrame& frame) {
  const auto bytes = frame.header.Encode();
  if (frame.payload == nullptr) {
    const grpc::Slice slices[] = {grpc::Slice(bytes.data(), bytes.size()), grpc::Slice(frame.owned)};
    return grpc::ByteBuffer(slices, 2);
  }
  // The matrix lives until gRPC drops the slice, which may be after the write has completed.
  const grpc::Slice slices[] = {grpc::Slice(bytes.data(), bytes.size()),
                                grpc::Slice(const_cast<void*>(frame.payload), frame.header.size, Release,
                                            new std::shared_ptr<const Value>(frame.keep_alive))};
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

Result<FrameHeader> ReadHeader(const grpc::ByteBuffer& frame, std::vector<grpc::Slice>* slices) {
  uint8_t bytes[kHeaderBytes];
  if (!frame.Dump(slices).ok() || !Copy(*slices, 0, kHeaderBytes, bytes))
    return DataLoss("a frame shorter than its header");
  HEDDLE_ASSIGN_OR_RETURN(const FrameHeader header, FrameHeader::Decode(bytes));
  if (frame.Length() != kHeaderBytes + header.size) return DataLoss("a frame of the wrong length");
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
    OutgoingValue value = std::move(active_.front());
    active_.pop_front();
    const std::optional<OutgoingFrame> next = value.Next();
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
  const Result<FrameHeader> header = ReadHeader(frame, &slices);
  if (!header.ok() || header->kind != FrameKind::kPull) return Abort(port_);  // not one of ours
  Result<Value> value = handler_.Published(header->run, header->register_id, header->slot);
  {
    const std::lock_guard lock(mutex_);
    if (active_.size() >= kMostPulls) return Abort(port_);
    active_.emplace_back(header->request, std::move(value));
  }
  Wake(port_);
}

void PullServer::OnClosed(const grpc::Status&) {
  const std::lock_guard lock(mutex_);
  active_.clear();
}

void PullClient::Pull(uint32_t run, RegisterId register_id, uint8_t slot, Done done) {
  bool queued = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      queued = true;
      FrameHeader header;
      header.kind = FrameKind::kPull;
      header.request = next_request_++;
      header.run = run;
      header.register_id = register_id;
      header.slot = slot;
      auto pending = std::make_shared<Pending>();
      pending->done = std::move(done);
      pending_.emplace(header.request, std::move(pending));
      requests_.push_back(header);
    }
  }
  if (!queued) return done(Unavailable("the link is closed"));
  Wake(port_);
}

bool PullClient::NextFrame(grpc::ByteBuffer* frame) {
  const std::lock_guard lock(mutex_);
  if (requests_.empty()) return false;
  *frame = HeaderOnly(requests_.front());
  requests_.pop_front();
  return true;
}

Status PullClient::Accept(const FrameHeader& header, Pending& pending,
                          const std::vector<grpc::Slice>& slices) {
  if (header.kind == FrameKind::kData) {
    HEDDLE_ASSIGN_OR_RETURN(uint8_t* const place, pending.value.Place(header));
    Copy(slices, kHeaderBytes, header.size, place);
    return OkStatus();
  }
  std::string payload(header.size, '\0');
  Copy(slices, kHeaderBytes, header.size, reinterpret_cast<uint8_t*>(payload.data()));
  return pending.value.Accept(header, payload);
}

void PullClient::OnFrame(grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  const Result<FrameHeader> header = ReadHeader(frame, &slices);
  if (!header.ok()) return Abort(port_);
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
    pending_.erase(header->request);
  }
  pending->done(status.ok() ? pending->value.Finish() : Result<Value>(status));
}

void PullClient::OnClosed(const grpc::Status& status) {
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> abandoned;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    abandoned.swap(pending_);
    requests_.clear();
  }
  on_closed_(status);  // first: whoever fails by the pulls knows the cause then
  for (const auto& [request, pending] : abandoned) pending->done(Unavailable("the link is closed"));
}

}  // namespace heddle::cluster
