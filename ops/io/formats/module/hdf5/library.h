// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

// What every part of this module needs of the library: HDF5 serves one thread at a time, names what it has
// opened by numbers that must be given back, and keeps a stack of its own of what went wrong.
namespace heddle::ops::hdf5 {

/// Whoever calls the library holds it.
inline std::mutex library_mutex;

/// The dataset that is meant where none is named, as in SystemDS.
constexpr char kDefaultName[] = "systemdsh5";

/// The number by which the library knows something that is open; closes it in the end.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// What the library says went wrong, the innermost cause.
std::string Cause();

}  // namespace heddle::ops::hdf5
