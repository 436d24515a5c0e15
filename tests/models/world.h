// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "actor/actor_host.h"
#include "actor/outgoing_messages.h"
#include "actor/plan_instance.h"
#include "tests/models/instances.h"

namespace heddle::actor {

/// One instance of a model: the actors of all ranks and lanes as production has them, and around them only
/// what SPIN chooses from: which message comes next, when ranks begin, when kernels and pulls end, what
/// fails. Everything that can happen is an event with a number. The whole state goes into bytes and comes
/// back from them, so that SPIN can store it and return to it.
///
/// Order is kept from one thread to another and nowhere else: less than mailboxes and links keep. A kernel
/// that was launched and a pull end at any time.
class World {
 public:
  explicit World(const ModelInstance& instance);
  ~World();

  /// The process of the model to which an event belongs, and what happens.
  struct Event {
    int process = 0;
    std::string text;
  };
  const std::vector<Event>& events() const { return event_texts_; }
  const std::vector<std::string>& processes() const { return processes_; }

  bool Can(size_t event);
  /// False if something has happened that must not: why() says what.
  bool Do(size_t event);
  /// Every rank that lives has ended its last run.
  bool IsOver();
  const std::string& why() const { return why_; }

  /// What SPIN stores: `most_bytes()` of them, zeros behind the end.
  size_t most_bytes() const { return most_bytes_; }
  void Save(uint8_t* bytes);
  void Load(const uint8_t* bytes);

 private:
  class Party;
  enum class Kind : uint8_t {
    kBegin,       ///< A party begins its next run.
    kMessage,     ///< The first message of a channel is handled.
    kKernelDone,  ///< A kernel on the device has ended.
    kKernelGone,  ///< The same, but it did nothing, as the run has failed.
    kPullDone,    ///< A pull has been answered.
    kError,       ///< A party hears of another one's error.
    kCancel,      ///< The user cancels.
    kLoseRank     ///< A process is gone.
  };
  /// What becomes of the first kernel that an event brings about (all others run at once); kTwice: the
  /// message of the event comes once more.
  enum class Choice : uint8_t { kInline, kLaunch, kFail, kTwice };
  struct Happening {
    Kind kind = Kind::kBegin;
    size_t party = 0;   ///< Who is concerned.
    size_t number = 0;  ///< Of a channel or an actor; of kError the party whose error it is.
    Choice choice = Choice::kInline;
  };
  struct Channel {
    size_t from = 0;  ///< Party; of what a runtime tells its threads, the party itself.
    size_t to = 0;
    uint32_t from_stream = 0;
    uint32_t to_stream = 0;
    bool by_runtime = false;
    std::deque<Message> messages;
  };

  void AddEvents();
  void AddChannels();
  void Add(Happening happening, int process, const std::string& text);
  void AddChoices(Happening happening, int process, const std::string& text);
  int ProcessOf(const std::string& name);
  int ThreadOf(const Party& party, uint32_t stream);
  Channel& ChannelOf(size_t from, uint32_t from_stream, size_t to, uint32_t to_stream, bool by_runtime);
  size_t PartyOf(uint32_t rank, uint32_t lane) const { return size_t{lane} * ranks_ + rank; }
  void Broken(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  void CheckPeak();
  void CheckEnd();

  ModelInstance instance_;
  std::vector<std::unique_ptr<Party>> parties_;
  std::vector<Channel> channels_;
  std::vector<std::string> processes_;
  std::vector<Event> event_texts_;
  std::vector<Happening> happenings_;
  size_t most_bytes_ = 0;
  uint32_t ranks_ = 1;
  std::vector<std::vector<int64_t>> peak_bytes_;  ///< By lane and rank: what its plan says at most.
  bool has_peak_ = false;                         ///< Some plan says what its registers take at most.
  bool had_trouble_ = false;                      ///< What may happen once a history has happened.
  Choice choice_ = Choice::kInline;
  std::vector<uint8_t> saved_;  ///< The last state that was saved or loaded.
  std::string why_;
};

}  // namespace heddle::actor
