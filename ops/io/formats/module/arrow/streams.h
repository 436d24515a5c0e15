// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/api.h>
#include <arrow/io/interfaces.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>

#include "ops/io/formats/libraries/format_module.h"

// How the libraries of Arrow and Parquet see the files of Heddle, and what Heddle sees of their failures.
namespace heddle::ops::tables {

/// Memory for the libraries: the heap of the process, which counts and refuses (core/memory/counted_heap.h).
inline arrow::MemoryPool* Pool() { return arrow::system_memory_pool(); }

/// A file that is read. `input` outlives it.
class Input : public arrow::io::RandomAccessFile {
 public:
  explicit Input(const ModuleInput& input) : input_(input) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return place_; }
  arrow::Status Seek(int64_t place) override {
    place_ = place;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return input_.size; }
  arrow::Result<int64_t> Read(int64_t count, void* out) override {
    if (place_ < 0 || count < 0) return arrow::Status::IOError("a place outside of the file");
    count = std::min(count, std::max<int64_t>(0, input_.size - place_));
    if (const Status status = input_.read(place_, count, static_cast<char*>(out)); !status.ok())
      return arrow::Status::IOError(status.message());
    place_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t count) override {
    // A length in a damaged file may be anything.
    count = std::min(count, std::max<int64_t>(0, input_.size - place_));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(count, Pool()));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, Read(count, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  const ModuleInput& input_;
  int64_t place_ = 0;
  bool closed_ = false;
};

/// A file that is written. `sink` outlives it.
class Output : public arrow::io::OutputStream {
 public:
  explicit Output(const std::function<Status(std::string_view)>& sink) : sink_(sink) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return place_; }
  arrow::Status Write(const void* bytes, int64_t count) override {
    failure_ = sink_({static_cast<const char*>(bytes), static_cast<size_t>(count)});
    place_ += count;
    return failure_.ok() ? arrow::Status::OK() : arrow::Status::IOError(failure_.message());
  }
  /// What the sink said last.
  const Status& failure() const { return failure_; }

 private:
  const std::function<Status(std::string_view)>& sink_;
  Status failure_;
  int64_t place_ = 0;
  bool closed_ = false;
};

/// work(), with what the libraries throw as a status.
template <typename Work>
arrow::Status Guarded(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return arrow::Status::OutOfMemory("");
  } catch (const std::exception& error) {
    return arrow::Status::IOError(error.what());
  }
}

}  // namespace heddle::ops::tables
