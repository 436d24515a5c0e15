// SPDX-License-Identifier: Apache-2.0
#include "core/environment/recorder.h"

#include <utility>

#include "core/memory/counted_heap.h"

namespace heddle {

std::string_view Name(RecordedKind kind) {
  switch (kind) {
    case RecordedKind::kOperator: return "operator";
    case RecordedKind::kCopy: return "copy";
    case RecordedKind::kPlanning: return "planning";
    case RecordedKind::kCall: return "call";
    case RecordedKind::kLoop: return "loop";
  }
  return "";
}

struct Recorder::Room {
  std::string name;
  bool is_taken = true;  // By a thread that still runs. Under the mutex of the rooms.
  int64_t dropped = 0;
  int64_t shortest_ns = INT64_MIN;  // What is shorter is dropped at once.
  std::vector<RecordedEvent> events;

  // Whoever notes something is not refused the memory for it.
  void Grow(size_t most) {
    const HeapModeScope counts(HeapMode::kCounts);
    events.reserve(std::min(most, std::max<size_t>(1024, events.size() * 2)));
  }
  // The longer half stays.
  void DropShorterHalf() {
    const auto middle = events.begin() + static_cast<std::ptrdiff_t>(events.size() / 2);
    std::nth_element(
        events.begin(), middle, events.end(),
        [](const RecordedEvent& a, const RecordedEvent& b) { return a.duration_ns > b.duration_ns; });
    // Less than this: what comes late may be a bit shorter than what has gone, and matter as much.
    shortest_ns = middle->duration_ns / 2;
    dropped += events.end() - middle;
    events.erase(middle, events.end());
  }
};

struct Recorder::Rooms {
  explicit Rooms(int64_t most_events) : most(static_cast<size_t>(std::max<int64_t>(most_events, 2))) {}
  const size_t most;
  std::mutex mutex;
  std::vector<std::unique_ptr<Room>> all;  // They stay where they are.

  Room* Take(std::string_view name) {
    const std::lock_guard lock(mutex);
    for (const std::unique_ptr<Room>& room : all)
      if (!room->is_taken && room->name == name) {
        room->is_taken = true;
        return room.get();
      }
    all.push_back(std::make_unique<Room>());
    all.back()->name = name;
    return all.back().get();
  }
  void GiveBack(Room* room) {
    const std::lock_guard lock(mutex);
    room->is_taken = false;
  }
};

// The room of a thread, by the name that it noted something under last, in the recorder that it was.
struct Recorder::OfThread {
  std::shared_ptr<Rooms> rooms;
  Room* room = nullptr;

  void Leave() {
    if (rooms != nullptr) rooms->GiveBack(room);
    rooms = nullptr;
  }
  ~OfThread() { Leave(); }
};

Recorder::Recorder(Clock& clock, int64_t most_events)
    : clock_(clock), rooms_(std::make_shared<Rooms>(most_events)) {}
Recorder::~Recorder() = default;

uint32_t Recorder::SiteOf(const RecordedSite& site) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = numbers_.try_emplace(site, static_cast<uint32_t>(sites_.size()));
  if (is_new) sites_.push_back(site);
  return found->second;
}

Recorder::Room& Recorder::RoomOfThread(std::string_view thread) {
  thread_local OfThread own;
  // A thread notes what streams of devices do under their names, beside what it does itself.
  if (own.rooms != rooms_ || own.room->name != thread) {
    own.Leave();
    own.room = rooms_->Take(thread);
    own.rooms = rooms_;
  }
  return *own.room;
}

void Recorder::Add(std::string_view thread, uint32_t site, int64_t begin_ns, int64_t end_ns, int64_t rows,
                   int64_t bytes) {
  Room& room = RoomOfThread(thread);
  if (end_ns - begin_ns < room.shortest_ns) {
    ++room.dropped;
    return;
  }
  if (room.events.size() == rooms_->most) room.DropShorterHalf();
  if (room.events.size() == room.events.capacity()) room.Grow(rooms_->most);
  room.events.push_back({.begin_ns = begin_ns,
                         .duration_ns = end_ns - begin_ns,
                         .rows = rows,
                         .bytes = bytes,
                         .memory_bytes = memory_.used(),
                         .site = site});
}

std::vector<RecordedThread> Recorder::Threads() const {
  std::map<std::string, RecordedThread> by_name;
  const std::lock_guard lock(rooms_->mutex);
  for (const std::unique_ptr<Room>& room : rooms_->all) {
    // Two threads of one name run at once: each has a row of its own.
    std::string name = room->name;
    for (int i = 2; by_name.contains(name); ++i) name = room->name + " " + std::to_string(i);
    by_name[name] = {.name = name, .dropped = room->dropped, .events = room->events};
  }
  std::vector<RecordedThread> threads;
  for (auto& [name, thread] : by_name) {
    std::sort(thread.events.begin(), thread.events.end(), [](const RecordedEvent& a, const RecordedEvent& b) {
      return std::tie(a.begin_ns, b.duration_ns) < std::tie(b.begin_ns, a.duration_ns);
    });
    threads.push_back(std::move(thread));
  }
  return threads;
}

std::vector<RecordedSite> Recorder::Sites() const {
  const std::lock_guard lock(mutex_);
  return sites_;
}

}  // namespace heddle
