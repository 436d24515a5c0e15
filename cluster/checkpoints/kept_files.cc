// SPDX-License-Identifier: Apache-2.0
#include "cluster/checkpoints/kept_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "core/environment/descriptor.h"
#include "core/hash.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"
#include "ops/io/files/file_versions.h"

namespace heddle::cluster {
namespace {

using Writer = engine::CheckpointStore::Writer;

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int64_t kMostHeaderBytes = 64 << 10;

enum class Kind : char { kNothing = 'n', kFile = 'f', kFolder = 'd' };

// What begins an object: the kind, how long the path is, and the path as the script names it.
std::string HeaderOf(Kind kind, const std::string& path) {
  return fmt::format("{} {}\n{}", static_cast<char>(kind), path.size(), path);
}

struct Header {
  Kind kind = Kind::kNothing;
  std::string path;
  int64_t bytes = 0;
};

std::optional<Header> ParseHeader(std::string_view text) {
  const size_t end = text.find('\n');
  size_t size = 0;
  if (end == std::string_view::npos || end < 3 || text[1] != ' ' ||
      std::from_chars(text.data() + 2, text.data() + end, size).ptr != text.data() + end ||
      size > text.size() - end - 1)
    return std::nullopt;
  const auto kind = static_cast<Kind>(text[0]);
  if (kind != Kind::kNothing && kind != Kind::kFile && kind != Kind::kFolder) return std::nullopt;
  return Header{kind, std::string(text.substr(end + 1, size)), static_cast<int64_t>(end + 1 + size)};
}

// Where a checkpoint stands among those of its job: the epoch of its attempt, then its number.
struct Position {
  int64_t epoch = 0, number = 0;
  auto operator<=>(const Position&) const = default;
};

// Of "EPOCH-N".
std::optional<Position> ParsePosition(std::string_view text) {
  Position position;
  const char* const end = text.data() + text.size();
  const char* const dash = std::from_chars(text.data(), end, position.epoch).ptr;
  if (dash == end || *dash != '-' || std::from_chars(dash + 1, end, position.number).ptr != end)
    return std::nullopt;
  return position;
}

compiler::WrittenFiles ReadsOf(const Program& program, ops::Files& files) {
  compiler::WrittenFiles read(&files);
  ForEachBlock(program, [&](const Block& block) {
    for (const Node& node : block.graph.nodes)
      if (ops::HasRole(node, ops::Role::kRead)) read.Add(compiler::LiteralPath(block.graph, node));
    if (block.kind == Block::Kind::kList && block.operation == ListOperation::kRead) read.Add(std::nullopt);
  });
  return read;
}

}  // namespace

KeptFiles::KeptFiles(const Program& program, std::string directory, const ops::FileRoots& roots,
                     ops::Files& files, std::string location, std::string folder,
                     engine::CheckpointStore& store)
    : read_(ReadsOf(program, files)),
      paths_(std::move(directory), roots),
      files_(files),
      location_(std::move(location)),
      folder_(std::move(folder)),
      job_(folder_.substr(0, folder_.rfind('/'))),
      store_(store) {}

Result<bool> KeptFiles::Keep(const std::string& path, int64_t number, const std::function<bool()>& is_ours) {
  if (!read_.MayChange(Scalar(path))) return true;
  ops::FileVersions* const versions = files_.versions();
  const uint64_t hash = FoldHash(0, versions != nullptr ? versions->Identity(path) : paths_.Absolute(path));
  const auto failed = [&](const Status& why) {
    return Status(why.code(), fmt::format("cannot keep what '{}' was before the job changes it: {}", path,
                                          why.message()));
  };
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const std::string& name : {fmt::format("{}-{}/kept/{:016x}", folder_, number, hash),
                                  fmt::format("{}/first/{:016x}", job_, hash)}) {
    if (known_.contains(name)) continue;
    const Status found = store_.SizeOf(name).status();
    if (found.code() == StatusCode::kNotFound)
      names.insert(name);
    else if (found.ok())
      known_.insert(name);
    else
      return failed(found);
  }
  if (names.empty()) return true;
  bool is_kept = false;
  const Status status = Write(path, names, is_ours, &is_kept);
  if (!status.ok()) return failed(status);
  if (is_kept) known_.merge(names);
  return is_kept;
}

// As the bytes are on the disk: packed where the file is.
Status KeptFiles::Write(const std::string& path, const std::set<std::string>& names,
                        const std::function<bool()>& is_ours, bool* is_kept) {
  const Result<ops::FilePlace> place = paths_.Find(path, ops::ScriptPaths::Use::kRead);
  if (!place.ok() && place.status().code() != StatusCode::kNotFound) return place.status();
  struct stat there {};
  const bool is_there = place.ok() && place->Look(&there);
  const Kind kind = !is_there ? Kind::kNothing : S_ISDIR(there.st_mode) ? Kind::kFolder : Kind::kFile;
  const Descriptor file(kind == Kind::kFile ? place->Open(O_RDONLY | O_CLOEXEC) : -1);
  if (kind == Kind::kFile && !file.ok()) return DataLoss("{}", strerror(errno));
  // Whoever replaces it now puts another file in its place: this one stays as it is.
  *is_kept = is_ours();
  if (!*is_kept) return OkStatus();
  std::vector<std::unique_ptr<Writer>> writers;
  for (const std::string& name : names) {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Writer> writer, store_.Create(name));
    writers.push_back(std::move(writer));
  }
  const auto append = [&](std::string_view bytes) -> Status {
    for (const auto& writer : writers) HEDDLE_RETURN_IF_ERROR(writer->Append(bytes));
    return OkStatus();
  };
  HEDDLE_RETURN_IF_ERROR(append(HeaderOf(kind, path)));
  std::string piece(kind == Kind::kFile ? kPieceBytes : 0, '\0');
  for (ssize_t got = 1; kind == Kind::kFile && got != 0;) {
    got = read(file.get(), piece.data(), piece.size());
    if (got < 0) return DataLoss("{}", strerror(errno));
    HEDDLE_RETURN_IF_ERROR(append(std::string_view(piece).substr(0, static_cast<size_t>(got))));
  }
  for (const auto& writer : writers) HEDDLE_RETURN_IF_ERROR(writer->Finish());
  return OkStatus();
}

Status KeptFiles::PutBack(const std::string& resume) {
  if (read_.IsEmpty()) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(location_, job_));
  const std::optional<Position> from =
      resume.empty()
          ? std::nullopt
          : ParsePosition(std::string_view(resume).substr(std::min(resume.size(), job_.size() + 1)));
  std::vector<std::pair<Position, std::string>> wanted;
  for (const std::string& name : names) {
    const std::string_view below = std::string_view(name).substr(std::min(name.size(), job_.size() + 1));
    if (below.starts_with("first/")) {
      if (resume.empty()) wanted.emplace_back(Position(), name);
      continue;
    }
    const size_t at = below.find("/kept/");
    const std::optional<Position> position =
        at == std::string_view::npos ? std::nullopt : ParsePosition(below.substr(0, at));
    if (from && position && *position >= *from) wanted.emplace_back(*position, name);
  }
  std::sort(wanted.rbegin(), wanted.rend());  // The first change is undone last.
  for (const auto& [position, name] : wanted) HEDDLE_RETURN_IF_ERROR(PutBackOne(name));
  return OkStatus();
}

Status KeptFiles::PutBackOne(const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t size, store_.SizeOf(name));
  std::string text(static_cast<size_t>(std::min(size, kMostHeaderBytes)), '\0');
  HEDDLE_RETURN_IF_ERROR(store_.Read(name, 0, text));
  const std::optional<Header> header = ParseHeader(text);
  if (!header) return DataLoss("'{}' is no file that was kept, or is cut off", name);
  if (header->kind == Kind::kFolder || files_.IsDirectory(header->path)) return OkStatus();
  if (header->kind == Kind::kNothing) return files_.Remove(header->path);
  return files_.Replace(header->path, ops::ByteSource([&](const ops::ByteSink& sink) -> Status {
                          std::string piece;
                          for (int64_t at = header->bytes; at < size;
                               at += static_cast<int64_t>(piece.size())) {
                            piece.resize(std::min(kPieceBytes, static_cast<size_t>(size - at)));
                            HEDDLE_RETURN_IF_ERROR(store_.Read(name, at, piece));
                            HEDDLE_RETURN_IF_ERROR(sink(piece));
                          }
                          return OkStatus();
                        }));
}

}  // namespace heddle::cluster
