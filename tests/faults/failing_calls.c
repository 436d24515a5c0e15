/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded (LD_PRELOAD) into a process of a test: the calls of the system that concern files below one
 * folder are counted, each has a line in a log, and the n-th of them fails.
 *   HEDDLE_FAULT_UNDER      the folder, absolute; relative paths are taken to be below it
 *   HEDDLE_FAULT_AT         which call fails; 0: none
 *   HEDDLE_FAULT_ERRNO      as what; 0: it does not fail, but the process is killed before it
 *   HEDDLE_FAULT_WRITES     1: only calls that want room on the disk are counted
 *   HEDDLE_FAULT_MEMORY     1: mappings of matrices (MAP_NORESERVE) are counted, and calls on files are not
 *   HEDDLE_FAULT_NO_TMPFILE 1: the folder is on a file system that knows no files without names
 *   HEDDLE_FAULT_LOG        the log, absolute and elsewhere
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MOST_DESCRIPTORS 65536

static atomic_long calls;
static atomic_char is_below[MOST_DESCRIPTORS]; /* Descriptors of files below the folder. */

static const char* Setting(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

static int IsBelow(const char* path) {
  const char* under = Setting("HEDDLE_FAULT_UNDER");
  if (path == NULL || under[0] == 0) return 0;
  if (path[0] != '/') return 1;
  return strncmp(path, under, strlen(under)) == 0;
}
/* Of a path that begins at a descriptor of a folder. */
static int IsBelowAt(int folder, const char* path) {
  if (path[0] == '/' || folder == AT_FDCWD) return IsBelow(path);
  char link[64], whole[5000];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
  const long size = syscall(SYS_readlinkat, AT_FDCWD, link, whole, 4096);
  if (size <= 0) return 0;
  snprintf(whole + size, sizeof(whole) - (size_t)size, "/%.800s", path);
  return IsBelow(whole);
}
static int HasBelow(int descriptor) {
  return descriptor >= 0 && descriptor < MOST_DESCRIPTORS && atomic_load(&is_below[descriptor]);
}
static void Note(int descriptor, int below) {
  if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) atomic_store(&is_below[descriptor], (char)below);
}

/* Whether a call that is counted is to fail; errno is set then. */
static int FailsCounted(const char* call, const char* path) {
  const int saved = errno;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  const int fails = number == atol(Setting("HEDDLE_FAULT_AT"));
  char line[600];
  const int size = snprintf(line, sizeof(line), "%s %ld %s %.400s\n", fails ? "fails" : "call", number, call,
                            path == NULL ? "" : path);
  const int log = (int)syscall(SYS_openat, AT_FDCWD, Setting("HEDDLE_FAULT_LOG"),
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log >= 0) {
    (void)!syscall(SYS_write, log, line, (size_t)size);
    syscall(SYS_close, log);
  }
  errno = saved;
  if (!fails) return 0;
  errno = atoi(Setting("HEDDLE_FAULT_ERRNO"));
  if (errno == 0) kill(getpid(), SIGKILL);
  return 1;
}
/* Of a call on a file. */
static int Fails(const char* call, const char* path, int wants_room) {
  if (atoi(Setting("HEDDLE_FAULT_MEMORY")) || (!wants_room && atoi(Setting("HEDDLE_FAULT_WRITES")))) return 0;
  return FailsCounted(call, path);
}
static int FailsMemory(int flags) {
  return (flags & MAP_NORESERVE) != 0 && atoi(Setting("HEDDLE_FAULT_MEMORY")) &&
         FailsCounted("mmap", "memory");
}
static int IsUnknown(int flags) {
  if ((flags & O_TMPFILE) != O_TMPFILE || !atoi(Setting("HEDDLE_FAULT_NO_TMPFILE"))) return 0;
  errno = EOPNOTSUPP;
  return 1;
}

#define NEXT(type, name, ...)       \
  static type (*next)(__VA_ARGS__); \
  if (next == NULL) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int Creates(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }
static mode_t ModeOf(int flags, va_list rest) { return Creates(flags) ? (mode_t)va_arg(rest, int) : 0; }

#define OPEN(name)                                              \
  EXPORTED int name(const char* path, int flags, ...) {         \
    NEXT(int, #name, const char*, int, ...);                    \
    va_list rest;                                               \
    va_start(rest, flags);                                      \
    const mode_t mode = ModeOf(flags, rest);                    \
    va_end(rest);                                               \
    const int below = IsBelow(path);                            \
    if (below && Fails(#name, path, Creates(flags))) return -1; \
    if (below && IsUnknown(flags)) return -1;                   \
    const int made = next(path, flags, mode);                   \
    Note(made, below);                                          \
    return made;                                                \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                \
  EXPORTED int name(int folder, const char* path, int flags, ...) { \
    NEXT(int, #name, int, const char*, int, ...);                   \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    const mode_t mode = ModeOf(flags, rest);                        \
    va_end(rest);                                                   \
    const int below = IsBelowAt(folder, path);                      \
    if (below && Fails(#name, path, Creates(flags))) return -1;     \
    if (below && IsUnknown(flags)) return -1;                       \
    const int made = next(folder, path, flags, mode);               \
    Note(made, below);                                              \
    return made;                                                    \
  }
OPENAT(openat)
OPENAT(openat64)

EXPORTED int close(int descriptor) {
  NEXT(int, "close", int);
  Note(descriptor, 0);
  return next(descriptor);
}

#define WITH_DESCRIPTOR(type, name, wants_room, parameters, arguments, ...) \
  EXPORTED type name parameters {                                           \
    NEXT(type, #name, __VA_ARGS__);                                         \
    if (HasBelow(descriptor) && Fails(#name, NULL, wants_room)) return -1;  \
    return next arguments;                                                  \
  }
WITH_DESCRIPTOR(ssize_t, read, 0, (int descriptor, void* to, size_t size), (descriptor, to, size), int, void*,
                size_t)
WITH_DESCRIPTOR(ssize_t, pread, 0, (int descriptor, void* to, size_t size, off_t at),
                (descriptor, to, size, at), int, void*, size_t, off_t)
WITH_DESCRIPTOR(ssize_t, pread64, 0, (int descriptor, void* to, size_t size, off64_t at),
                (descriptor, to, size, at), int, void*, size_t, off64_t)
WITH_DESCRIPTOR(ssize_t, write, 1, (int descriptor, const void* from, size_t size), (descriptor, from, size),
                int, const void*, size_t)
WITH_DESCRIPTOR(ssize_t, pwrite, 1, (int descriptor, const void* from, size_t size, off_t at),
                (descriptor, from, size, at), int, const void*, size_t, off_t)
WITH_DESCRIPTOR(ssize_t, pwrite64, 1, (int descriptor, const void* from, size_t size, off64_t at),
                (descriptor, from, size, at), int, const void*, size_t, off64_t)
WITH_DESCRIPTOR(ssize_t, pwritev, 1, (int descriptor, const struct iovec* parts, int count, off_t at),
                (descriptor, parts, count, at), int, const struct iovec*, int, off_t)
WITH_DESCRIPTOR(ssize_t, writev, 1, (int descriptor, const struct iovec* parts, int count),
                (descriptor, parts, count), int, const struct iovec*, int)
WITH_DESCRIPTOR(int, fsync, 1, (int descriptor), (descriptor), int)
WITH_DESCRIPTOR(int, fdatasync, 1, (int descriptor), (descriptor), int)
WITH_DESCRIPTOR(int, ftruncate, 1, (int descriptor, off_t size), (descriptor, size), int, off_t)
WITH_DESCRIPTOR(int, ftruncate64, 1, (int descriptor, off64_t size), (descriptor, size), int, off64_t)
WITH_DESCRIPTOR(int, fallocate, 1, (int descriptor, int mode, off_t at, off_t size),
                (descriptor, mode, at, size), int, int, off_t, off_t)
WITH_DESCRIPTOR(int, fallocate64, 1, (int descriptor, int mode, off64_t at, off64_t size),
                (descriptor, mode, at, size), int, int, off64_t, off64_t)
WITH_DESCRIPTOR(int, flock, 0, (int descriptor, int operation), (descriptor, operation), int, int)
WITH_DESCRIPTOR(int, fchmod, 0, (int descriptor, mode_t mode), (descriptor, mode), int, mode_t)
WITH_DESCRIPTOR(int, fstat, 0, (int descriptor, struct stat* to), (descriptor, to), int, struct stat*)
WITH_DESCRIPTOR(int, fstat64, 0, (int descriptor, struct stat64* to), (descriptor, to), int, struct stat64*)
WITH_DESCRIPTOR(ssize_t, copy_file_range, 1,
                (int from, off64_t* at, int descriptor, off64_t* to, size_t size, unsigned flags),
                (from, at, descriptor, to, size, flags), int, off64_t*, int, off64_t*, size_t, unsigned)

#define WITH_PATH(name, wants_room, parameters, arguments, ...)     \
  EXPORTED int name parameters {                                    \
    NEXT(int, #name, __VA_ARGS__);                                  \
    if (IsBelow(path) && Fails(#name, path, wants_room)) return -1; \
    return next arguments;                                          \
  }
WITH_PATH(rename, 1, (const char* path, const char* to), (path, to), const char*, const char*)
WITH_PATH(link, 1, (const char* path, const char* to), (path, to), const char*, const char*)
WITH_PATH(symlink, 1, (const char* to, const char* path), (to, path), const char*, const char*)
WITH_PATH(mkdir, 1, (const char* path, mode_t mode), (path, mode), const char*, mode_t)
WITH_PATH(unlink, 0, (const char* path), (path), const char*)
WITH_PATH(stat, 0, (const char* path, struct stat* to), (path, to), const char*, struct stat*)
WITH_PATH(stat64, 0, (const char* path, struct stat64* to), (path, to), const char*, struct stat64*)
WITH_PATH(lstat, 0, (const char* path, struct stat* to), (path, to), const char*, struct stat*)
WITH_PATH(lstat64, 0, (const char* path, struct stat64* to), (path, to), const char*, struct stat64*)
WITH_PATH(access, 0, (const char* path, int mode), (path, mode), const char*, int)

EXPORTED int renameat(int from, const char* path, int folder, const char* to) {
  NEXT(int, "renameat", int, const char*, int, const char*);
  if (IsBelowAt(from, path) && Fails("renameat", path, 1)) return -1;
  return next(from, path, folder, to);
}
EXPORTED int renameat2(int from, const char* path, int folder, const char* to, unsigned flags) {
  NEXT(int, "renameat2", int, const char*, int, const char*, unsigned);
  if (IsBelowAt(from, path) && Fails("renameat2", path, 1)) return -1;
  return next(from, path, folder, to, flags);
}
EXPORTED int mkdirat(int folder, const char* path, mode_t mode) {
  NEXT(int, "mkdirat", int, const char*, mode_t);
  if (IsBelowAt(folder, path) && Fails("mkdirat", path, 1)) return -1;
  return next(folder, path, mode);
}
EXPORTED int unlinkat(int folder, const char* path, int flags) {
  NEXT(int, "unlinkat", int, const char*, int);
  if (IsBelowAt(folder, path) && Fails("unlinkat", path, 0)) return -1;
  return next(folder, path, flags);
}
EXPORTED int linkat(int from, const char* path, int folder, const char* to, int flags) {
  NEXT(int, "linkat", int, const char*, int, const char*, int);
  if (IsBelowAt(folder, to) && Fails("linkat", to, 1)) return -1;
  return next(from, path, folder, to, flags);
}
EXPORTED int fstatat(int folder, const char* path, struct stat* to, int flags) {
  NEXT(int, "fstatat", int, const char*, struct stat*, int);
  if (IsBelowAt(folder, path) && Fails("fstatat", path, 0)) return -1;
  return next(folder, path, to, flags);
}
EXPORTED int fstatat64(int folder, const char* path, struct stat64* to, int flags) {
  NEXT(int, "fstatat64", int, const char*, struct stat64*, int);
  if (IsBelowAt(folder, path) && Fails("fstatat64", path, 0)) return -1;
  return next(folder, path, to, flags);
}
EXPORTED DIR* opendir(const char* path) {
  NEXT(DIR*, "opendir", const char*);
  if (IsBelow(path) && Fails("opendir", path, 0)) return NULL;
  return next(path);
}
#define MAP(name, offset)                                                                          \
  EXPORTED void* name(void* at, size_t size, int access, int flags, int descriptor, offset from) { \
    NEXT(void*, #name, void*, size_t, int, int, int, offset);                                      \
    if (HasBelow(descriptor) && Fails(#name, NULL, 0)) return MAP_FAILED;                          \
    if (FailsMemory(flags)) return MAP_FAILED;                                                     \
    return next(at, size, access, flags, descriptor, from);                                        \
  }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
