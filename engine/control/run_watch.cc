// SPDX-License-Identifier: Apache-2.0
#include "engine/control/run_watch.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

void RunWatch::Open(const Block& block, RecordedKind kind, const std::string& name) {
  RecordedSite site{.kind = kind,
                    .name = name,
                    .file = block.position.file,
                    .line = block.position.line,
                    .column = block.position.column};
  open_.push_back({.site = recorder_->SiteOf(site), .begin_ns = recorder_->clock().MonotonicNs()});
}

void RunWatch::Close() {
  const OpenSite& open = open_.back();
  recorder_->Add(blocks_.thread_name(), open.site, open.begin_ns, recorder_->clock().MonotonicNs(),
                 open.rounds);
  open_.pop_back();
}

void RunWatch::OpenCall(const Block& block, const Function& function) {
  Open(block, RecordedKind::kCall, function.name);
  open_.back().calls_before = blocks_.calls();
  auto calls = std::make_shared<std::vector<CallSite>>();
  AppendCall(function.name, block.position, calls.get());
  calls->insert(calls->end(), blocks_.calls()->begin(), blocks_.calls()->end());
  blocks_.set_calls(std::move(calls));
}

void RunWatch::CloseCall() {
  blocks_.set_calls(std::move(open_.back().calls_before));
  Close();
}

int64_t RunWatch::CountedNs() const {
  return blocks_.statistics().operators_ns + blocks_.compiler().planning_ns();
}

RunWatch::Step::Step(RunWatch& watch)
    : watch_(watch), begin_ns_(watch.recorder_->clock().MonotonicNs()), counted_ns_(watch.CountedNs()) {}

void RunWatch::Step::End(const Block& block) {
  // The iterations of a parfor count for themselves.
  if (block.kind == Block::Kind::kParallelFor) return;
  const int64_t ns = watch_.recorder_->clock().MonotonicNs() - begin_ns_ - (watch_.CountedNs() - counted_ns_);
  PlaceStatistics& place =
      watch_.blocks_.statistics().PlaceOf("", PositionOf(block), *watch_.blocks_.calls());
  ++place.acts;
  place.ns += std::max<int64_t>(ns, 0);
}

}  // namespace heddle::engine
