// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/io/files/change_gate.h"
#include "ops/io/files/counted_bytes.h"
#include "ops/io/files/file_roots.h"

namespace heddle::ops {

class FileVersions;  // ops/io/files/file_versions.h
class JointFiles;    // ops/io/files/joint_files.h
class NewFile;       // ops/io/files/replacement.h

/// The bytes of an input file, as many as there were when it was opened. gzip and zstd are undone on the
/// way (by content, not by name). The file is read piece by piece and never mapped: one that somebody cuts
/// short meanwhile gives an error where a mapping would give a signal.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual int64_t size() const = 0;
  /// The bytes [begin, begin + count), all of them inside the file: in memory of this object, or read into
  /// `buffer`. Valid as long as both stay as they are. May be called by several threads, each with its own
  /// buffer. kDataLoss when the file has become shorter or cannot be read; kResourceExhausted when the buffer
  /// does not fit.
  virtual Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const = 0;
  /// The same bytes into memory of the caller.
  virtual Status ReadInto(int64_t begin, int64_t count, char* out) const;

  /// One of the files that a folder holds.
  struct Part {
    int64_t begin = 0;         ///< Where it begins in the whole.
    int64_t bytes = 0;         ///< Of it: without a newline that is put behind it where it has none.
    std::string path;          ///< For messages.
    int64_t hidden_lines = 0;  ///< Lines at its beginning that were left out.
  };
  /// The files of a folder in order; none where this is one file.
  virtual std::vector<Part> parts() const { return {}; }
  /// What is left out of a part: so many bytes at its beginning, which are so many lines.
  struct Beginning {
    int64_t bytes = 0;
    int64_t lines = 0;
  };
  /// Leaves out the beginnings of the parts, of each one. Offsets and the size are those of what is left.
  virtual void LeaveOut(const std::vector<Beginning>& beginnings);
};

/// Takes the next bytes of a file.
using ByteSink = std::function<Status(std::string_view bytes)>;
/// Gives the bytes of a file to `sink`, in order and in pieces of any size; returns the first error, its own
/// or the sink's.
using ByteSource = std::function<Status(const ByteSink& sink)>;

/// Files of a job, behind an interface so that tests can fail them. All paths absolute or relative to
/// `directory`.
class Files {
 public:
  virtual ~Files() = default;
  /// An ordinary file, or a directory of part files as one. kNotFound names the path; kDataLoss says what it
  /// is if it is a pipe, socket or device: those can be read once at most, while every worker looks at a file
  /// before it reads its rows.
  virtual Result<std::unique_ptr<InputFile>> Open(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;  ///< Names, sorted.
  /// Size and modification time in one text: changes when the file does, and when the script writes it.
  virtual Result<std::string> Fingerprint(const std::string& path) = 0;
  /// Replaces `path` by the bytes of `source`, whole or not at all: temporary file beside it, fsync, rename.
  /// An older file stays whole until then and when anything fails, `source` included; no temporary is left
  /// behind. No more than one piece is in memory at a time. kResourceExhausted when the disk is full.
  virtual Status Replace(const std::string& path, const ByteSource& source);
  Status Replace(const std::string& path, std::string_view bytes) {
    return Replace(path, ByteSource([bytes](const ByteSink& sink) { return sink(bytes); }));
  }
  /// Removes a file; Ok when there is none.
  virtual Status Remove(const std::string& path) = 0;
  /// Which versions of its files a script is to see, for who opens them here; nullptr: nobody asks.
  virtual FileVersions* versions() { return nullptr; }
  /// For files that several ranks write together, and for folders; nullptr where nothing can be written so.
  virtual JointFiles* joint() { return nullptr; }
  /// Begins a file that is to take the place of `path`. Links are followed, an older file's mode is kept
  /// (ops/io/files/replacement.h).
  virtual Result<std::unique_ptr<NewFile>> Begin(const std::string& path) = 0;
};

/// The real file system; relative paths are those of `directory` ("": errors, as the folder was deleted).
/// `gate` (nullptr: always open) outlives it and is asked before a file appears under its name, is replaced
/// or removed. `roots` says which files may be used.
std::unique_ptr<Files> MakeFiles(std::string directory, ChangeGate* gate = nullptr, FileRoots roots = {});

}  // namespace heddle::ops
