// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/isolation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "core/environment/descriptor.h"
#include "ops/io/files/folders.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kFirstUser = 1000;  // below are those of the system

// Rights of Landlock by the version of its interface that brought them; headers of older systems lack the
// later ones.
constexpr uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE;
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kMakesDevices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
constexpr uint64_t kRefer = uint64_t{1} << 13;     // 2
constexpr uint64_t kTruncate = uint64_t{1} << 14;  // 3
constexpr uint64_t kOfFirstVersion = (uint64_t{1} << 13) - 1;
// What a rule for a file, not a folder, may name.
constexpr uint64_t kOfFiles =
    kExecute | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

uint64_t AllRights(long version) {
  return kOfFirstVersion | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
}

// 0 where the kernel has none, or it is switched off.
long LandlockVersion() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return std::max(version, 0L);
}

// Who is kept in, for messages, and the verb that starts it.
struct Prisoner {
  const char* name;
  const char* starter;
};
std::string WayOut(const Prisoner& who) {
  return fmt::format("'heddle {} --no-isolation' does without", who.starter);
}

// What may be opened, and to do what.
class Landlock {
 public:
  explicit Landlock(long version) : rights_(AllRights(version)) {
    const landlock_ruleset_attr attributes = {.handled_access_fs = rights_};
    ruleset_ = Descriptor(
        static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  }

  // What is not there is left out.
  void Allow(const std::string& path, uint64_t rights) {
    const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!place.ok() || fstat(place.get(), &status) != 0) return;
    landlock_path_beneath_attr rule = {};
    rule.allowed_access = rights & rights_ & (S_ISDIR(status.st_mode) ? ~uint64_t{0} : kOfFiles);
    rule.parent_fd = place.get();
    if (syscall(SYS_landlock_add_rule, ruleset_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
      failed_ = errno;
  }
  void AllowToRead(const std::string& path) { Allow(path, kRead); }
  void AllowToRun(const std::string& path) { Allow(path, kRead | kExecute); }
  void AllowToChange(const std::string& path) { Allow(path, rights_ & ~(kExecute | kMakesDevices)); }

  Status Enforce(const Prisoner& who) const {
    if (ruleset_.ok() && failed_ == 0 && syscall(SYS_landlock_restrict_self, ruleset_.get(), 0) == 0)
      return OkStatus();
    return Unavailable("cannot keep {} in the folders of its job (Landlock): {}", who.name,
                       strerror(failed_ != 0 ? failed_ : errno))
        .WithNote(WayOut(who));
  }

 private:
  const uint64_t rights_;
  Descriptor ruleset_;
  int failed_ = 0;
};

std::string OrDefault(const char* variable, const char* otherwise) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : otherwise;
}

// This program and what is installed with it, where FindInstalled looks (core/environment/modules.h): these
// folders may hold other things of the user as well. And the libraries that come with the Python package.
void AllowInstallation(Landlock* landlock) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (program.empty()) return;
  landlock->AllowToRun(program.string());
  const fs::path folder = program.parent_path(), above = folder.parent_path();
  for (const fs::path& place : {folder, above, above / "lib" / "heddle"})
    for (const char* part : {"heddle-array-process", "libheddle_codegen.so", "libheddle_hdf5.so",
                             "libheddle_mat.so", "libheddle_arrow.so"})
      landlock->AllowToRun((place / part).string());
  for (const char* sibling : {"pyarrow", "heddle.libs"})
    landlock->AllowToRun((above.parent_path() / sibling).string());
}

void AllowSystem(Landlock* landlock) {
  for (const char* path : {"/usr", "/lib", "/lib32", "/lib64", "/bin"}) landlock->AllowToRun(path);
  std::string libraries = OrDefault("LD_LIBRARY_PATH", "");
  for (size_t begin = 0; begin < libraries.size();) {
    const size_t end = std::min(libraries.find(':', begin), libraries.size());
    if (end > begin) landlock->AllowToRun(libraries.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const char* path : {"/etc/ld.so.cache",   "/etc/localtime",       "/etc/timezone",
                           "/etc/nsswitch.conf", "/etc/hosts",           "/etc/resolv.conf",
                           "/etc/host.conf",     "/etc/gai.conf",        "/etc/passwd",
                           "/etc/group",         "/etc/services",        "/etc/protocols",
                           "/etc/ssl/certs",     "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
                           "/etc/pki/ca-trust",  "/etc/ca-certificates", "/etc/alternatives",
                           "/proc/self",         "/proc/meminfo",        "/proc/cpuinfo",
                           "/proc/stat",         "/proc/vmstat",         "/proc/loadavg",
                           "/proc/filesystems",  "/proc/version",        "/proc/sys/kernel",
                           "/proc/sys/vm",       "/proc/pressure",       "/sys"})
    landlock->AllowToRead(path);
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    landlock->AllowToChange(path);
}

// A driver of OpenCL by a word in the file that names it to the loader, and where it keeps compiled kernels:
// in the cache of the user, or in the home.
struct DriverCache {
  const char* driver;
  const char* folder;
  bool is_in_home;
};
constexpr DriverCache kDriverCaches[] = {{"pocl", "pocl", false},
                                         {"nvidia", ".nv/ComputeCache", true},
                                         {"igdrcl", "neo_compiler_cache", false},
                                         {"amdocl", "comgr", false}};

// The loader of OpenCL finds drivers by files that name their libraries.
std::vector<std::string> DriverLibraries(const std::string& vendors) {
  std::vector<std::string> files, libraries;
  std::error_code error;
  if (!fs::is_directory(vendors, error)) files.push_back(vendors);  // OCL_ICD_VENDORS may name one file.
  for (fs::directory_iterator at(vendors, error), end; !error && at != end; at.increment(error))
    files.push_back(at->path().string());
  for (const std::string& file : files)
    if (std::string line; std::ifstream(file) >> line) libraries.push_back(line);
  return libraries;
}

// Devices, their drivers, and the kernels that these keep.
void AllowDevices(Landlock* landlock) {
  const std::string vendors = OrDefault("OCL_ICD_VENDORS", "/etc/OpenCL/vendors");
  landlock->AllowToRead(vendors);
  for (const char* path : {"/proc/driver/nvidia", "/proc/devices", "/proc/modules"})
    landlock->AllowToRead(path);
  std::error_code error;
  for (fs::directory_iterator at("/dev", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("nvidia") || name == "dri" || name == "kfd" || name == "dxg")
      landlock->Allow(at->path().string(), kRead | LANDLOCK_ACCESS_FS_WRITE_FILE);
  }
  const std::string cache = ops::UserCacheFolder();  // ".../heddle"
  const std::string home = OrDefault("HOME", "");
  for (const std::string& library : DriverLibraries(vendors)) {
    if (library.starts_with("/")) landlock->AllowToRun(ops::FolderOf(library));
    for (const DriverCache& kept : kDriverCaches) {
      const std::string base = kept.is_in_home ? home : std::string(ops::FolderOf(cache));
      if (base.empty() || library.find(kept.driver) == std::string::npos) continue;
      const std::string folder = base + "/" + kept.folder;
      (void)ops::OpenFolderForUser(folder);  // made where it is missing
      landlock->AllowToChange(folder);
    }
  }
  if (const std::string folder = OrDefault("POCL_CACHE_DIR", ""); !folder.empty())
    landlock->AllowToChange(folder);
}

// What Heddle keeps for this user: machine code and measurements.
void AllowCaches(Landlock* landlock) {
  if (const std::string cache = ops::UserCacheFolder(); !cache.empty()) {
    (void)ops::OpenFolderForUser(cache);  // made where it is missing
    landlock->AllowToChange(cache);
  }
  const std::string state = ops::UserStateFolder();
  constexpr const char* kKeyOfCode = "code.key";  // ops/io/object_cache.cc
  if (ops::SecretOfUser(state, kKeyOfCode)) landlock->AllowToRead(state + "/" + kKeyOfCode);
}

// As ops::ScriptPaths finds them.
std::vector<std::string> FoldersOfJob(const ExecutorStart& start) {
  const ops::FileRoots& roots = start.roots;
  if (!roots.of_worker.empty()) return roots.of_worker;
  if (!roots.of_master.empty()) return roots.of_master;
  std::vector<std::string> folders = roots.named;
  if (!start.directory.empty()) folders.push_back(start.directory);
  for (std::string& folder : folders) folder = ops::FollowLinks(folder);
  for (const std::string& argument : roots.arguments) {
    const std::string path = ops::FollowLinks(argument);
    std::error_code error;
    if (path == "/") continue;
    const bool is_folder = fs::is_directory(path, error);
    if (is_folder || ops::FolderOf(path) == "/") {
      folders.push_back(path);
      folders.push_back(path + ".mtd");
    } else {
      folders.push_back(ops::FolderOf(path));
    }
  }
  return folders;
}

void AllowJob(Landlock* landlock, const ExecutorStart& start) {
  const std::vector<std::string> folders = FoldersOfJob(start);
  for (const std::string& folder : folders) {
    const bool lies_in_other = std::any_of(folders.begin(), folders.end(), [&](const std::string& other) {
      std::error_code error;
      return other != folder && ops::IsWithin(folder, other) && fs::is_directory(other, error);
    });
    if (!lies_in_other && !folder.ends_with(".mtd")) (void)ops::WalkToFolder(folder, /*make=*/true);
    landlock->AllowToChange(folder);
  }
}

// Those of this job, where they are in a folder that all workers see; the script itself cannot name it.
void AllowCheckpoints(Landlock* landlock, const ExecutorCheckpoints& checkpoints) {
  if (!checkpoints.location.starts_with("/")) return;
  const std::string of_job = checkpoints.folder.substr(0, checkpoints.folder.find('/'));
  if (of_job.empty()) return;
  const fs::path folder = fs::path(ops::FollowLinks(checkpoints.location)) / of_job;
  std::error_code error;
  const mode_t before = umask(077);
  fs::create_directories(folder, error);
  umask(before);
  landlock->AllowToChange(folder.string());
}

struct FilterEnds {
  void operator()(void* filter) const { seccomp_release(filter); }
};

// A list of what is denied: what numerical libraries and the C library call changes from version to version.
Status DenyCalls(const Prisoner& who) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return OkStatus();  // The sanitizers look at their own process by ptrace.
#endif
  constexpr std::array kDenied = {
      // Other processes.
      "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
      // Mounts, namespaces and handles of files past the folders.
      "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
      "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at", "name_to_handle_at",
      // The kernel and the machine.
      "bpf", "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
      "delete_module", "iopl", "ioperm", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd",
      "syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
      "vhangup", "mknod", "mknodat", "lookup_dcookie", "nfsservctl", "uselib", "ustat", "_sysctl", "sysfs",
      // Keys.
      "keyctl", "add_key", "request_key"};
  const std::unique_ptr<void, FilterEnds> filter(seccomp_init(SCMP_ACT_ALLOW));
  int error = filter == nullptr ? -ENOMEM : 0;
  const auto deny = [&](const char* name, int number) {
    const int call = seccomp_syscall_resolve_name(name);
    // One that this machine has no number for is none.
    if (error == 0 && call != __NR_SCMP_ERROR && call >= 0)
      error = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(static_cast<uint32_t>(number)), call, 0);
  };
  for (const char* name : kDenied) deny(name, EPERM);
  // A ring does calls that no filter sees; a library that would use one does without.
  for (const char* name : {"io_uring_setup", "io_uring_enter", "io_uring_register"}) deny(name, ENOSYS);
  // Its flags are in memory, where no filter sees them; the C library then makes threads by clone.
  deny("clone3", ENOSYS);
  for (const uint64_t flag :
       {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWCGROUP})
    if (error == 0)
      error = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  if (error == 0) error = seccomp_load(filter.get());
  if (error == 0) return OkStatus();
  return Unavailable("cannot keep {} from system calls that it does not need (seccomp): {}", who.name,
                     strerror(-error))
      .WithNote(WayOut(who));
}

bool HasSeccomp() { return prctl(PR_GET_SECCOMP) >= 0; }

// `allow` says which files may be opened beside those that every program of Heddle's needs.
Status KeepIn(const Prisoner& who, const std::function<void(Landlock*)>& allow) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Unavailable("cannot keep {} from new rights: {}", who.name, strerror(errno));
  if (const long version = LandlockVersion(); version > 0) {
    // The rule for /proc/self is one for what the name means now, which stays as long as somebody holds it
    // open.
    static const int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)self;
    Landlock landlock(version);
    AllowSystem(&landlock);
    AllowInstallation(&landlock);
    allow(&landlock);
    HEDDLE_RETURN_IF_ERROR(landlock.Enforce(who));
  }
  return HasSeccomp() ? DenyCalls(who) : OkStatus();
}

}  // namespace

std::string DescribeIsolation() {
  const long landlock = LandlockVersion();
  return fmt::format("no_new_privs, {}, {}",
                     landlock > 0 ? fmt::format("landlock {}", landlock) : "no landlock",
                     HasSeccomp() ? "seccomp" : "no seccomp");
}

Status BecomeOwner(const ExecutorStart& start) {
  if (!start.runs_as_owner) return OkStatus();
  std::array<char, 16 << 10> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwnam_r(start.owner.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return FailedPrecondition("the worker runs jobs as their owners, and its machine has no user '{}'",
                              start.owner)
        .WithNote("add that user there, or submit with the token of an owner who is one");
  if (found->pw_uid < kFirstUser)
    return FailedPrecondition(
               "the worker runs jobs as their owners, and '{}' is a user of the system (number {})",
               start.owner, found->pw_uid)
        .WithNote(fmt::format("submit with the token of an owner whose number is at least {}", kFirstUser));
  if (initgroups(found->pw_name, found->pw_gid) != 0 || setgid(found->pw_gid) != 0 ||
      setuid(found->pw_uid) != 0 || setuid(0) == 0)
    return Unavailable("cannot become the user '{}': {}", start.owner, strerror(errno));
  for (const char* variable : {"XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"})
    unsetenv(variable);
  setenv("HOME", found->pw_dir, 1);
  setenv("USER", found->pw_name, 1);
  setenv("LOGNAME", found->pw_name, 1);
  return OkStatus();
}

Status Isolate(const ExecutorStart& start) {
  if (!start.is_isolated) return OkStatus();
  return KeepIn({"the executor", "worker"}, [&](Landlock* landlock) {
    AllowCaches(landlock);
    landlock->AllowToChange(start.options.spill_folder.empty() ? OrDefault("TMPDIR", "/tmp")
                                                               : start.options.spill_folder);
    AllowJob(landlock, start);
    AllowCheckpoints(landlock, start.checkpoints);
    if (start.options.devices != "cpu" && start.no_device.empty()) AllowDevices(landlock);
  });
}

Status IsolateCompiler(const ExecutorStart& start) {
  return KeepIn({"the compiler", "master"}, [&](Landlock* landlock) {
    for (const std::string& folder : FoldersOfJob(start)) landlock->AllowToRead(folder);
  });
}

}  // namespace heddle::cluster
