// SPDX-License-Identifier: Apache-2.0
#include "engine/control/step_recorder.h"

#include <algorithm>
#include <span>

namespace heddle::engine {
namespace {

// Steps that take less are measured together.
constexpr int64_t kShortNs = 1'000;

}  // namespace

StepRecorder::StepRecorder(BlockRunner& blocks, Recorder& recorder)
    : blocks_(blocks), recorder_(recorder), way_(&WayOf(blocks.calls())) {}

void StepRecorder::Begin() {
  // Iterations of a parfor begin inside of the calls around it.
  if (open_.empty()) way_ = &WayOf(blocks_.calls());
  last_ = nullptr;
  pending_count_ = 0;
  Restart();
}

void StepRecorder::End() {
  if (pending_count_ > 0) Charge();
  while (!open_.empty()) Leave();
}

void StepRecorder::BeginStep(const Block& block) {
  // The iterations of a parfor count for themselves.
  const bool is_counted = block.kind != Block::Kind::kParallelFor;
  Place& place = NextPlace(block);
  const bool joins = is_counted && place.short_ns > 0 && pending_count_ < kMostAtOnce;
  if (pending_count_ > 0 && !joins) Charge();
  if (is_counted) pending_[pending_count_++] = &place;
}

void StepRecorder::EndStep() {
  if (pending_count_ == 0) return Restart();
  if (pending_[pending_count_ - 1]->short_ns == 0) Charge();
}

void StepRecorder::Restart() {
  since_ns_ = Now();
  counted_ns_ = CountedNs();
}

// What has passed since the last charge, without what has its own places, is that of the pending steps.
void StepRecorder::Charge() {
  const int64_t begin_ns = since_ns_, counted_ns = counted_ns_;
  Restart();
  const int64_t ns = std::max<int64_t>(since_ns_ - begin_ns - (counted_ns_ - counted_ns), 0);
  const std::span pending(pending_.data(), pending_count_);
  pending_count_ = 0;
  if (pending.size() == 1) {
    Place& place = *pending.front();
    ++place.statistics->acts;
    place.statistics->ns += ns;
    place.short_ns = ns < kShortNs ? std::max<int64_t>(ns, 1) : 0;
    return;
  }
  int64_t expected_ns = 0;
  for (const Place* place : pending) expected_ns += place->short_ns;
  const double share = static_cast<double>(ns) / static_cast<double>(expected_ns);
  const bool are_short = ns < kShortNs * static_cast<int64_t>(kMostAtOnce);
  for (Place* place : pending) {
    ++place->statistics->acts;
    place->statistics->ns += static_cast<int64_t>(static_cast<double>(place->short_ns) * share);
  }
  // One of them was not: each is measured alone the next time.
  if (!are_short)
    for (Place* place : pending) place->short_ns = 0;
}

void StepRecorder::EnterLoop(const Block& block) {
  std::optional<uint32_t>& site = PlaceIn(*way_, block).loop_site;
  if (!site) site = SiteOf(block, RecordedKind::kLoop, block.kind == Block::Kind::kWhile ? "while" : "for");
  open_.push_back({.site = *site, .begin_ns = Now()});
}

void StepRecorder::EnterCall(const Block& block, const Function& function) {
  const Called& called = CalledFrom(*way_, block, function);
  open_.push_back({.site = called.site, .begin_ns = Now(), .way_before = way_});
  way_ = called.way;
  blocks_.set_calls(way_->calls);
}

void StepRecorder::Leave() {
  const Open open = open_.back();
  open_.pop_back();
  recorder_.Add(blocks_.thread_name(), open.site, open.begin_ns, Now(), open.rounds);
  if (open.way_before == nullptr) return;
  way_ = open.way_before;
  blocks_.set_calls(way_->calls);
}

StepRecorder::Way& StepRecorder::WayOf(const OpenCalls& calls) {
  Way& way = ways_[calls.get()];
  if (way.calls == nullptr) way.calls = calls;
  return way;
}

StepRecorder::Called& StepRecorder::CalledFrom(Way& way, const Block& block, const Function& function) {
  Called& called = way.called[{&block, &function}];
  if (called.way != nullptr) return called;
  called.site = SiteOf(block, RecordedKind::kCall, function.name);
  const bool is_recursion = std::ranges::any_of(*way.calls, [&](const CallSite& call) {
    return call.function == function.name && call.position == block.position;
  });
  if (is_recursion) {
    called.way = &way;
    return called;
  }
  auto calls = std::make_shared<std::vector<CallSite>>();
  AppendCall(function.name, block.position, calls.get());
  calls->insert(calls->end(), way.calls->begin(), way.calls->end());
  called.way = &WayOf(std::move(calls));
  return called;
}

StepRecorder::Place& StepRecorder::PlaceIn(Way& way, const Block& block) {
  Place& place = way.places[&block];
  if (place.block != nullptr) return place;
  place.block = &block;
  place.way = &way;
  place.statistics = &blocks_.statistics().PlaceOf("", PositionOf(block), *way.calls);
  return place;
}

// Most steps come behind the same one as before.
StepRecorder::Place& StepRecorder::NextPlace(const Block& block) {
  Place* next = last_ != nullptr ? last_->next : nullptr;
  if (next == nullptr || next->block != &block || next->way != way_) {
    next = &PlaceIn(*way_, block);
    if (last_ != nullptr) last_->next = next;
  }
  last_ = next;
  return *next;
}

uint32_t StepRecorder::SiteOf(const Block& block, RecordedKind kind, const std::string& name) {
  return recorder_.SiteOf({.kind = kind,
                           .name = name,
                           .file = block.position.file,
                           .line = block.position.line,
                           .column = block.position.column});
}

}  // namespace heddle::engine
