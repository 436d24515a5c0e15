// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/environment/clock.h"
#include "core/memory/memory_budget.h"

namespace heddle {

/// What an event of a record is about.
enum class RecordedKind : uint8_t {
  kOperator,  ///< An act of an operator.
  kCopy,      ///< A value on its way from another rank.
  kPlanning,  ///< A plan is made.
  kCall,      ///< A call of a function of the script, from its beginning to its end.
  kLoop,      ///< A loop, all its rounds.
};
std::string_view Name(RecordedKind kind);  ///< "operator", "copy", ...

/// What many events have in common: they are about the same place of a program. Plain data.
struct RecordedSite {
  RecordedKind kind = RecordedKind::kOperator;
  std::string name;    ///< Of the operator or function.
  std::string stream;  ///< That it runs on; "" for what no stream runs.
  std::string file;    ///< In which script;
  int32_t line = 0;    ///< 0: not known.
  int32_t column = 0;

  auto operator<=>(const RecordedSite&) const = default;
};

/// Something that took time on a thread. Plain data.
struct RecordedEvent {
  int64_t begin_ns = 0;  ///< By the clock of the recorder.
  int64_t duration_ns = 0;
  int64_t rows = 0;          ///< That it made; of a loop its rounds.
  int64_t bytes = 0;         ///< That came from another rank.
  int64_t memory_bytes = 0;  ///< What the process held when it ended.
  uint32_t site = 0;

  bool operator==(const RecordedEvent&) const = default;
};

/// The events of one thread, or of several with the same name, one after the other. Plain data.
struct RecordedThread {
  std::string name;  ///< "main", "device", "network", "lane 3", ...
  int64_t dropped = 0;
  std::vector<RecordedEvent> events;  ///< By their beginning, those around others first.
};

/// Where the threads of a run note what took time. Memory is bounded: of a thread with more than
/// `most_events` the shorter half is dropped, and counted, so that what matters is left of the whole run.
/// Thread-safe; a note takes no lock, but for the first one of a thread.
class Recorder {
 public:
  /// `clock` outlives it. An event takes 48 bytes, from the heap when it comes.
  Recorder(Clock& clock, int64_t most_events);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Clock& clock() const { return clock_; }
  /// The number of a site for its events; the same for sites that are equal. Takes a lock.
  uint32_t SiteOf(const RecordedSite& site);
  /// Notes an event that ends now, or at `end_ns`, on the calling thread. `thread` is what it is called if
  /// this is its first event.
  void Add(std::string_view thread, uint32_t site, int64_t begin_ns, int64_t end_ns, int64_t rows = 0,
           int64_t bytes = 0);

  /// What was noted so far, by name of the thread. Only while nobody notes anything.
  std::vector<RecordedThread> Threads() const;
  std::vector<RecordedSite> Sites() const;

 private:
  struct Room;   // Of the events of a thread.
  struct Rooms;  // All of a recorder, which threads that end give theirs back to.
  struct OfThread;
  Room& RoomOfThread(std::string_view thread);

  Clock& clock_;
  const MemoryBudget& memory_ = MemoryBudget::Process();
  const std::shared_ptr<Rooms> rooms_;
  mutable std::mutex mutex_;  // Of what follows.
  std::map<RecordedSite, uint32_t> numbers_;
  std::vector<RecordedSite> sites_;
};

}  // namespace heddle
