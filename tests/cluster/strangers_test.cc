// SPDX-License-Identifier: Apache-2.0
// What reaches a master's port before anybody has shown a token, and what callers are told who do not get
// through.
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>
#include <sstream>

#include "cluster/network/address.h"
#include "proto/master.grpc.pb.h"
#include "tests/cluster/certificates.h"
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

// A master on a port of the loopback, in a folder of its own.
class MasterOnAPort {
 public:
  explicit MasterOnAPort(const std::string& options = "", const std::string& limits = "true",
                         const std::string& listen = "localhost:0") {
    master_ = std::make_unique<BackgroundProcess>(
        std::vector<std::string>{"/bin/bash", "-c",
                                 limits + "; exec " + Binary() + " master --listen " + listen + " --state " +
                                     state() + " " + options},
        folder_.path());
    const std::string word = "listens on ";
    EXPECT_TRUE(master_->WaitFor(word)) << master_->output();
    EXPECT_TRUE(master_->WaitFor("\n")) << master_->output();
    const size_t begin = master_->output().find(word) + word.size();
    address_ = master_->output().substr(begin, master_->output().find('\n', begin) - begin);
  }
  Finished Run(std::vector<std::string> words, const std::vector<std::string>& options = {}) {
    words.insert(words.begin(), Binary());
    for (const std::string& word :
         std::vector<std::string>{"--master", address_, "--token-file",
                                  token_file_.empty() ? state() + "/client.token" : token_file_})
      words.push_back(word);
    words.insert(words.end(), options.begin(), options.end());
    return RunProcess(words, folder_.path(), 60);
  }
  std::string state() const { return folder_.path() + "/state"; }
  const std::string& address() const { return address_; }
  const std::string& folder() const { return folder_.path(); }
  BackgroundProcess& process() { return *master_; }
  void UseToken(const std::string& file) { token_file_ = file; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<BackgroundProcess> master_;
  std::string address_;
  std::string token_file_;
};

class Idle {
 public:
  explicit Idle(const cluster::SocketAddress& to) : fd_(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(connect(fd_, to.get(), to.size), 0);
  }
  ~Idle() { close(fd_); }
  Idle(const Idle&) = delete;
  // True while the master holds the connection; it may have greeted.
  bool IsOpen() const {
    char bytes[256];
    ssize_t got = 0;
    while ((got = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return got < 0 && errno == EAGAIN;
  }
  bool IsClosedWithin(int seconds) const {
    pollfd poller = {fd_, POLLRDHUP, 0};
    return poll(&poller, 1, 1000 * seconds) == 1;
  }

 private:
  const int fd_;
};

int64_t KilobytesOf(pid_t pid, const std::string& field) {
  const std::string status = ReadText("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find(field + ":");
  return at == std::string::npos ? -1 : std::atoll(status.c_str() + at + field.size() + 1);
}

TEST(StrangersTest, AFloodOfIdleConnectionsIsOverWhenItIsOver) {
  MasterOnAPort master("", "ulimit -n 1024", "127.0.0.1:0");
  EXPECT_EQ(master.Run({"job", "list"}).code, 0);
  const cluster::SocketAddress to = (*cluster::Resolve(master.address()))[0];
  {
    std::list<Idle> flood;
    for (int i = 0; i < 1100; ++i) flood.emplace_back(to);
    // The master has looked at all of them when it has refused all but as many as one address may have.
    const auto open = [&] {
      return std::count_if(flood.begin(), flood.end(), [](const Idle& idle) { return idle.IsOpen(); });
    };
    for (int tries = 0; tries < 2000 && open() > 224; ++tries) usleep(10'000);  // Between two looks.
    EXPECT_EQ(open(), 224);
    EXPECT_EQ(master.Run({"job", "list"}).code, 6) << "this address has its share";
  }
  for (int i = 0; i < 5; ++i) {
    const Finished list = master.Run({"job", "list"});
    EXPECT_EQ(list.code, 0) << list.errors;
  }
  master.process().Signal(SIGTERM);
  EXPECT_EQ(master.process().Wait(), 0) << master.process().output();
  EXPECT_NE(master.process().output().find("connections refused"), std::string::npos)
      << master.process().output();
}

TEST(StrangersTest, AConnectionThatDoesNotGreetIsClosed) {
  MasterOnAPort master;
  const Idle idle((*cluster::Resolve(master.address()))[0]);
  EXPECT_TRUE(idle.IsClosedWithin(/*seconds=*/20 * kPatience));
}

TEST(StrangersTest, DescriptorsAreRaisedAndCoreDumpsAreOff) {
  for (const bool core_dumps : {false, true}) {
    MasterOnAPort master(core_dumps ? "--core-dumps" : "", "ulimit -S -n 256; ulimit -S -c $(ulimit -H -c)");
    const std::string limits = ReadText("/proc/" + std::to_string(master.process().pid()) + "/limits");
    const auto soft_and_hard = [&](const std::string& name) {
      std::istringstream words(limits.substr(limits.find(name) + name.size()));
      std::pair<std::string, std::string> both;
      words >> both.first >> both.second;
      return both;
    };
    const auto files = soft_and_hard("Max open files");
    EXPECT_EQ(files.first, files.second) << limits;
    const auto core = soft_and_hard("Max core file size");
    EXPECT_EQ(core.first, core_dumps ? core.second : "0") << limits;
    struct stat status {};
    ASSERT_EQ(stat(("/proc/" + std::to_string(master.process().pid()) + "/environ").c_str(), &status), 0);
    if (geteuid() != 0) {
      EXPECT_EQ(status.st_uid == geteuid(), core_dumps);
    }
  }
}

TEST(StrangersTest, WhatComesWithoutATokenIsNotTakenIn) {
  MasterOnAPort master;
  EXPECT_EQ(master.Run({"job", "list"}).code, 0);
  const int64_t before = KilobytesOf(master.process().pid(), "VmHWM");
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto jobs = Jobs::NewStub(
      grpc::CreateCustomChannel(master.address(), grpc::InsecureChannelCredentials(), arguments));
  SubmitRequest request;
  request.set_script_text(std::string(60 << 20, 'x'));
  for (int i = 0; i < 4; ++i) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer 0123456789abcdef0123456789abcdef");
    context.AddMetadata("heddle-protocol", "1");
    SubmitReply reply;
    // Refused, or shut out in the midst of it: it sends more than strangers may.
    const grpc::StatusCode code = jobs->Submit(&context, request, &reply).error_code();
    EXPECT_TRUE(code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::UNAVAILABLE) << code;
  }
  EXPECT_LT(KilobytesOf(master.process().pid(), "VmHWM") - before, 16 << 10);
}

// Frames that need no call and no token: each wants an answer, which waits as long as nobody reads it. Three
// MiB of them, of which the master takes in one.
void ExpectAFloodIsShutOut(const std::string& listen) {
  MasterOnAPort master("", "true", listen);
  EXPECT_EQ(master.Run({"job", "list"}).code, 0);
  const cluster::SocketAddress to = (*cluster::Resolve(master.address()))[0];
  const int fd = socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(fd, to.get(), to.size), 0);
  const std::string settings(std::string("\0\0\0\4\0\0\0\0\0", 9));
  const std::string settings_again(std::string("\0\0\0\4\1\0\0\0\0", 9));
  std::string flood = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + settings_again;
  // Frames of a kind that nobody knows are to be ignored.
  const std::string unknown = std::string("\0\x40\0\xfe\0\0\0\0\0", 9) + std::string(0x4000, 'x');
  while (flood.size() < 3 << 20) flood += unknown;
  size_t sent = 0;
  while (sent < flood.size()) {
    const ssize_t some =
        send(fd, flood.data() + sent, std::min<size_t>(flood.size() - sent, 64 << 10), MSG_NOSIGNAL);
    if (some <= 0) break;
    sent += static_cast<size_t>(some);
    usleep(5'000);  // Slower than the master looks.
  }
  pollfd poller = {fd, POLLRDHUP, 0};
  EXPECT_EQ(poll(&poller, 1, 20'000 * kPatience), 1) << "it is still open after " << sent << " bytes";
  close(fd);
  EXPECT_LT(sent, flood.size());
  EXPECT_EQ(master.Run({"job", "list"}).code, 0);
  // Who has shown a token sends as much as a message may have.
  WriteText(master.folder() + "/large.dml", "# " + std::string(4 << 20, 'x') + "\nprint(1)\n");
  const Finished submit = master.Run({"job", "submit", "--detach", "large.dml"});
  EXPECT_EQ(submit.code, 0) << submit.errors;
  master.process().Signal(SIGTERM);
  EXPECT_EQ(master.process().Wait(), 0);
  EXPECT_NE(master.process().output().find("too much was sent before a call was let in"), std::string::npos)
      << master.process().output();
}

TEST(StrangersTest, AFloodOfFramesIsShutOut) { ExpectAFloodIsShutOut("127.0.0.1:0"); }
TEST(StrangersTest, AFloodOfFramesOverAUnixSocketIsShutOut) { ExpectAFloodIsShutOut("unix:$PWD/socket"); }

TEST(StrangersTest, ATokenThatCannotBeSentIsTold) {
  MasterOnAPort master;
  WriteText(master.folder() + "/token", "0123456789abcdef\xc3\xa9\n");
  ASSERT_EQ(chmod((master.folder() + "/token").c_str(), 0600), 0);
  master.UseToken("token");
  const Finished list = master.Run({"job", "list"});
  EXPECT_EQ(list.code, 2);
  EXPECT_EQ(list.errors,
            "heddle: error: the token in 'token' has a character that cannot be sent: byte 17, 0xc3\n"
            "a token is made of letters, digits and other visible characters of ASCII\n");
}

// What `heddle job list` says of a master at `address`.
void ExpectTold(MasterOnAPort& master, const std::vector<std::string>& options, const std::string& errors) {
  const Finished list = master.Run({"job", "list"}, options);
  EXPECT_EQ(list.code, 6);
  EXPECT_EQ(list.errors, "heddle: error: " + errors);
}

TEST(StrangersTest, WhyTlsDoesNotComeAboutIsTold) {
  TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  const TestCertificate authority(path("authority"), {"authority", -3'600, 3'600, /*authority=*/true});
  const TestCertificate stranger(path("stranger"), {"stranger", -3'600, 3'600, /*authority=*/true});
  const TestCertificate good(path("good"), {"localhost"}, &authority);
  const TestCertificate other(path("other"), {"cluster.example"}, &authority);
  const TestCertificate old(path("old"), {"localhost", -7'200, -3'600}, &authority);
  const TestCertificate user(path("user"), {"user"}, &authority);
  const auto serve = [](const TestCertificate& one) {
    return "--tls-certificate " + one.certificate() + " --tls-key " + one.key();
  };
  {
    MasterOnAPort master(serve(good));
    EXPECT_EQ(master.Run({"job", "list"}, {"--tls-ca", authority.certificate()}).code, 0);
    ExpectTold(master, {},
               "the master at " + master.address() +
                   " speaks TLS\ngive the certificate that its own is signed by: --tls-ca FILE\n");
    ExpectTold(
        master, {"--tls-ca", stranger.certificate()},
        "the certificate of the master at " + master.address() +
            " is not to be trusted: unable to get local issuer certificate\nit must be signed by one of those in " +
            stranger.certificate() + " (--tls-ca)\n");
  }
  {
    MasterOnAPort master(serve(other));
    ExpectTold(
        master, {"--tls-ca", authority.certificate()},
        "the certificate of the master at " + master.address() +
            " is for cluster.example, not for localhost\nname the master as its certificate does: --master HOST:PORT\n");
  }
  {
    MasterOnAPort master(serve(old));
    const Finished list = master.Run({"job", "list"}, {"--tls-ca", authority.certificate()});
    EXPECT_EQ(list.code, 6);
    for (const std::string& text :
         {"the certificate of the master at " + master.address() + " ended on 2",
          std::string("start the master with a new one: --tls-certificate FILE --tls-key FILE")})
      EXPECT_NE(list.errors.find(text), std::string::npos) << list.errors;
  }
  {
    MasterOnAPort master(serve(good) + " --tls-ca " + authority.certificate());
    EXPECT_EQ(master
                  .Run({"job", "list"}, {"--tls-ca", authority.certificate(), "--tls-certificate",
                                         user.certificate(), "--tls-key", user.key()})
                  .code,
              0);
    ExpectTold(master, {"--tls-ca", authority.certificate()},
               "the master at " + master.address() +
                   " asks for a certificate of the caller\ngive one that it trusts: --tls-certificate FILE "
                   "--tls-key FILE\n");
    ExpectTold(master,
               {"--tls-ca", authority.certificate(), "--tls-certificate", stranger.certificate(), "--tls-key",
                stranger.key()},
               "the master at " + master.address() + " does not accept the certificate in '" +
                   stranger.certificate() +
                   "'\nit trusts those that are signed by what it was started with: --tls-ca FILE\n");
  }
  {
    MasterOnAPort master;
    ExpectTold(
        master, {"--tls-ca", authority.certificate()},
        "the master at " + master.address() +
            " does not speak TLS\nleave out --tls-ca, or start the master with --tls-certificate and --tls-key\n");
    const Finished list = master.Run({"job", "list"}, {"--tls-ca", good.key()});
    EXPECT_EQ(list.code, 2);
    EXPECT_EQ(list.errors, "heddle: error: '" + good.key() + "' holds no certificate (PEM)\n");
    const Finished mixed =
        master.Run({"job", "list"}, {"--tls-ca", authority.certificate(), "--tls-certificate",
                                     user.certificate(), "--tls-key", good.key()});
    EXPECT_EQ(mixed.code, 2);
    EXPECT_EQ(mixed.errors, "heddle: error: the key in '" + good.key() +
                                "' is not that of the certificate in '" + user.certificate() + "'\n");
  }
}

TEST(StrangersTest, ANameThatLooksLikeTheLoopbackNeedsTls) {
  TemporaryFolder folder;
  const Finished list = RunProcess(
      {Binary(), "master", "--listen", "127.0.0.1.example:0", "--state", "state"}, folder.path(), 60);
  EXPECT_EQ(list.code, 2);
  EXPECT_NE(list.errors.find("other machines reach this address"), std::string::npos) << list.errors;
}

}  // namespace
}  // namespace heddle::testing_support
