// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <utility>

namespace heddle::cluster {

/// What flows over a stream, from the point of view of one end. Called from gRPC's threads, one call of each
/// kind at a time. A stream keeps its events alive.
template <typename Frame>
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  /// The next frame to send, when there is one. Called with the stream's lock held: do not call the stream.
  virtual bool NextFrame(Frame* frame) = 0;
  virtual void OnFrame(Frame& frame) = 0;
  /// Client end only: the server has taken the call and said so.
  virtual void OnOpened() {}
  /// The port goes: do not call it any more. Only OnClosed follows.
  virtual void OnDetached() {}
  /// Last call. `status` is what the server said (client end), or OK (server end). At the client end nothing
  /// of the call is left by then: the channel may be closed and the process may end.
  virtual void OnClosed(const grpc::Status& status) = 0;
};

/// One end of a bidirectional stream of frames. Thread-safe.
class StreamPort {
 public:
  virtual ~StreamPort() = default;
  /// There may be a frame to send.
  virtual void Wake() = 0;
  /// No frame follows once NextFrame has none.
  virtual void Finish() = 0;
  /// Breaks the stream.
  virtual void Abort() = 0;
};

/// The end that opened the stream. Owns itself until it is closed.
template <typename Frame>
class ClientStream : public grpc::ClientBidiReactor<Frame, Frame>, public StreamPort {
 public:
  explicit ClientStream(std::shared_ptr<StreamEvents<Frame>> events) : events_(std::move(events)) {}

  grpc::ClientContext& context() { return context_; }

  /// After the call was made on this reactor. `self` keeps it alive.
  void Start(std::shared_ptr<ClientStream> self) {
    self_ = std::move(self);
    this->AddHold();
    this->StartRead(&incoming_);
    this->StartCall();
    Wake();
  }

  void Wake() override {
    const std::lock_guard lock(mutex_);
    Pump();
  }
  void Finish() override {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    Pump();
  }
  void Abort() override { context_.TryCancel(); }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) events_->OnOpened();
  }
  void Pump() {
    if (closed_ || writing_ || half_closed_) return;
    if (events_->NextFrame(&outgoing_)) {
      writing_ = true;
      this->StartWrite(&outgoing_);
    } else if (finishing_) {
      half_closed_ = true;
      this->StartWritesDone();
    }
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      events_->OnFrame(incoming_);
      incoming_ = Frame();
      this->StartRead(&incoming_);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    this->RemoveHold();
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_ = Frame();
    if (ok) Pump();
  }
  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamEvents<Frame>> events = events_;
    const grpc::Status last_words = status;
    events->OnDetached();
    self_.reset();  // *this goes here, and the call with it
    events->OnClosed(last_words);
  }

  std::shared_ptr<StreamEvents<Frame>> events_;
  std::shared_ptr<ClientStream> self_;
  grpc::ClientContext context_;
  Frame incoming_;
  Frame outgoing_;
  std::mutex mutex_;
  bool writing_ = false;
  bool finishing_ = false;
  bool half_closed_ = false;
  bool closed_ = false;
};

/// The end that was called. Owns itself until it is closed. Ends when the other end finishes.
template <typename Frame>
class ServerStream : public grpc::ServerBidiReactor<Frame, Frame>, public StreamPort {
 public:
  ServerStream(grpc::CallbackServerContext* context, std::shared_ptr<StreamEvents<Frame>> events)
      : context_(context), events_(std::move(events)) {}

  void Start(std::shared_ptr<ServerStream> self) {
    self_ = std::move(self);
    this->StartRead(&incoming_);
    Wake();
  }

  void Wake() override {
    const std::lock_guard lock(mutex_);
    Pump();
  }
  void Finish() override {}
  void Abort() override {
    const std::lock_guard lock(mutex_);
    if (!done_) context_->TryCancel();
  }

 private:
  void Pump() {
    if (done_ || writing_) return;
    if (closed_) {
      done_ = true;
      grpc::ServerBidiReactor<Frame, Frame>::Finish(grpc::Status::OK);
    } else if (events_->NextFrame(&outgoing_)) {
      writing_ = true;
      this->StartWrite(&outgoing_);
    }
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      events_->OnFrame(incoming_);
      incoming_ = Frame();
      this->StartRead(&incoming_);
      return;
    }
    const std::lock_guard lock(mutex_);
    closed_ = true;
    Pump();
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_ = Frame();
    if (ok || closed_) Pump();  // a failed write is followed by a failed read
  }
  void OnDone() override {
    events_->OnClosed(grpc::Status::OK);
    const std::shared_ptr<ServerStream> last = std::move(self_);
  }

  grpc::CallbackServerContext* context_;
  std::shared_ptr<StreamEvents<Frame>> events_;
  std::shared_ptr<ServerStream> self_;
  Frame incoming_;
  Frame outgoing_;
  std::mutex mutex_;
  bool writing_ = false;
  bool closed_ = false;  // nothing can be read any more
  bool done_ = false;
};

}  // namespace heddle::cluster
