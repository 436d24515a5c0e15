// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/unreachable.h"

#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <vector>

#include "cluster/network/address.h"
#include "cluster/network/openssl_objects.h"

namespace heddle::cluster {
namespace {

constexpr int kConnectMs = 2'000;
constexpr int kAnswerMs = 1'000;

using openssl::Certificate;
using openssl::Context;
using openssl::Session;

// What a client of HTTP/2 says first, with empty settings; a server of it answers with its own settings.
constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr char kSettingsFrame = 4;

// OpenSSL writes to sockets in a way that kills the process when the other side is gone: not while this
// lives.
class NoBrokenPipes {
 public:
  NoBrokenPipes() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipes() {
    const timespec at_once = {};
    if (sigismember(&before_, SIGPIPE) == 0)
      while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipes(const NoBrokenPipes&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

class Connection {
 public:
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }
  Connection() = default;
  Connection(const Connection&) = delete;

  /// 0, or the error of the last address that was tried.
  int Open(const std::vector<SocketAddress>& addresses) {
    int error = EADDRNOTAVAIL;
    for (const SocketAddress& address : addresses) {
      error = OpenOne(address);
      if (error == 0) break;
    }
    return error;
  }
  int fd() const { return fd_; }

  bool Send(std::string_view bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// What comes first; "" when the other side closes or says nothing.
  std::string Receive(size_t most) {
    std::string bytes(most, '\0');
    const ssize_t got = recv(fd_, bytes.data(), most, 0);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }

 private:
  int OpenOne(const SocketAddress& address) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return errno;
    // Of the connection, too: Linux takes this limit for both.
    SetTimeout(SO_SNDTIMEO, kConnectMs);
    SetTimeout(SO_RCVTIMEO, kAnswerMs);
    if (connect(fd_, address.get(), address.size) == 0) return 0;
    return errno == EINPROGRESS ? ETIMEDOUT : errno;
  }
  void SetTimeout(int option, int64_t ms) const {
    const timeval limit = {ms / 1000, ms % 1000 * 1000};
    setsockopt(fd_, SOL_SOCKET, option, &limit, sizeof(limit));
  }

  int fd_ = -1;
};

std::string LastTlsError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "the connection was closed" : reason;
}

// "cluster.example, 10.0.0.7"
std::string NamesOf(X509* certificate) {
  std::string names;
  auto* entries =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(entries); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(entries, i);
    std::string name;
    if (entry->type == GEN_DNS) {
      name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(entry->d.dNSName)),
                  static_cast<size_t>(ASN1_STRING_length(entry->d.dNSName)));
    } else if (entry->type == GEN_IPADD) {
      const unsigned char* bytes = ASN1_STRING_get0_data(entry->d.iPAddress);
      if (ASN1_STRING_length(entry->d.iPAddress) == 4)
        name = fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
  }
  GENERAL_NAMES_free(entries);
  return names.empty() ? "no name" : names;
}

std::string TextOf(const ASN1_TIME* time) {
  tm fields = {};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return "an unknown time";
  return fmt::format("{:04}-{:02}-{:02}", fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday);
}

class Diagnosis {
 public:
  Diagnosis(const std::string& address, const TlsFiles& tls) : address_(address), tls_(tls) {}

  Status Run() {
    const NoBrokenPipes no_broken_pipes;
    const Result<std::vector<SocketAddress>> addresses = Resolve(address_);
    if (!addresses.ok()) return Nobody(addresses.status().message());
    addresses_ = *addresses;
    Connection connection;
    if (const int error = connection.Open(addresses_); error != 0) return Nobody(strerror(error));
    return tls_.authority.empty() ? LookWithoutTls(connection) : LookWithTls(connection);
  }

 private:
  Status Nobody(std::string_view why) const {
    return Unavailable("no master at {}: {}", address_, why)
        .WithNote("'heddle master --dev' starts one on this machine");
  }
  Status Busy() const {
    return Unavailable("the master at {} does not answer", address_)
        .WithNote("it may be starting, have too many connections, or be no master; try again");
  }

  static bool SpeaksHttp2(Connection& connection) {
    if (!connection.Send(kPreface)) return false;
    const std::string answer = connection.Receive(9);
    return answer.size() > 3 && answer[3] == kSettingsFrame;
  }

  Status LookWithoutTls(Connection& connection) {
    if (SpeaksHttp2(connection)) return Busy();
    const Context context(SSL_CTX_new(TLS_client_method()));
    Connection again;
    if (context == nullptr || again.Open(addresses_) != 0) return Busy();
    const Session session = Begin(context.get(), again);
    const bool greeted = session != nullptr && SSL_connect(session.get()) == 1;
    const bool certificate = session != nullptr && SSL_get0_peer_certificate(session.get()) != nullptr;
    ERR_clear_error();
    if (!greeted && !certificate) return Busy();
    return Unavailable("the master at {} speaks TLS", address_)
        .WithNote("give the certificate that its own is signed by: --tls-ca FILE");
  }

  Session Begin(SSL_CTX* context, const Connection& connection) const {
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    Session session(SSL_new(context));
    if (session == nullptr) return session;
    SSL_set_alpn_protos(session.get(), kHttp2, sizeof(kHttp2));
    SSL_set_fd(session.get(), connection.fd());
    return session;
  }

  Status LookWithTls(Connection& connection) {
    const Context context(SSL_CTX_new(TLS_client_method()));
    if (context == nullptr ||
        SSL_CTX_load_verify_locations(context.get(), tls_.authority.c_str(), nullptr) != 1)
      return Busy();
    if (!tls_.certificate.empty() &&
        (SSL_CTX_use_certificate_chain_file(context.get(), tls_.certificate.c_str()) != 1 ||
         SSL_CTX_use_PrivateKey_file(context.get(), tls_.key.c_str(), SSL_FILETYPE_PEM) != 1))
      return Busy();
    X509_STORE_set_flags(SSL_CTX_get_cert_store(context.get()),
                         X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
    SSL_CTX_set_cert_cb(
        context.get(),
        [](SSL*, void* asked) {
          *static_cast<bool*>(asked) = true;
          return 1;
        },
        &asked_for_certificate_);
    // Looked at below: a handshake that stops there would not show the certificate.
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
    const Session session = Begin(context.get(), connection);
    if (session == nullptr) return Busy();
    const std::string host = HostOf(address_);
    SSL_set_tlsext_host_name(session.get(), host.c_str());
    const bool greeted = SSL_connect(session.get()) == 1;
    const std::string why_not = greeted ? "" : LastTlsError();
    const Certificate certificate(SSL_get1_peer_certificate(session.get()));
    if (certificate == nullptr) return NoTls(why_not);
    if (Status status = Judge(session.get(), certificate.get(), host); !status.ok()) return status;
    // With TLS 1.3 a server looks at the caller's certificate after the greetings, and may just go.
    char byte = 0;
    const bool answered = greeted && SSL_read(session.get(), &byte, 1) == 1;
    ERR_clear_error();
    if (answered || !asked_for_certificate_) return Busy();
    if (tls_.certificate.empty())
      return Unavailable("the master at {} asks for a certificate of the caller", address_)
          .WithNote("give one that it trusts: --tls-certificate FILE --tls-key FILE");
    return Unavailable("the master at {} does not accept the certificate in '{}'", address_, tls_.certificate)
        .WithNote("it trusts those that are signed by what it was started with: --tls-ca FILE");
  }

  Status NoTls(const std::string& why) {
    Connection plain;
    if (plain.Open(addresses_) == 0 && SpeaksHttp2(plain))
      return Unavailable("the master at {} does not speak TLS", address_)
          .WithNote("leave out --tls-ca, or start the master with --tls-certificate and --tls-key");
    return Unavailable("the master at {} breaks off TLS: {}", address_, why)
        .WithNote("it may be starting, have too many connections, or be no master");
  }

  Status Judge(SSL* session, X509* certificate, const std::string& host) const {
    switch (const int64_t result = SSL_get_verify_result(session); result) {
      case X509_V_OK: break;
      case X509_V_ERR_CERT_HAS_EXPIRED:
        return Unavailable("the certificate of the master at {} ended on {}", address_,
                           TextOf(X509_get0_notAfter(certificate)))
            .WithNote("start the master with a new one: --tls-certificate FILE --tls-key FILE");
      case X509_V_ERR_CERT_NOT_YET_VALID:
        return Unavailable("the certificate of the master at {} begins on {}", address_,
                           TextOf(X509_get0_notBefore(certificate)))
            .WithNote("one of the clocks may be wrong");
      default:
        return Unavailable("the certificate of the master at {} is not to be trusted: {}", address_,
                           X509_verify_cert_error_string(result))
            .WithNote(fmt::format("it must be signed by one of those in {} (--tls-ca)", tls_.authority));
    }
    if (X509_check_ip_asc(certificate, host.c_str(), 0) == 1 ||
        X509_check_host(certificate, host.c_str(), host.size(), 0, nullptr) == 1)
      return OkStatus();
    return Unavailable("the certificate of the master at {} is for {}, not for {}", address_,
                       NamesOf(certificate), host)
        .WithNote("name the master as its certificate does: --master HOST:PORT");
  }

  const std::string& address_;
  const TlsFiles& tls_;
  std::vector<SocketAddress> addresses_;
  bool asked_for_certificate_ = false;
};

}  // namespace

Status WhyUnreachable(const std::string& address, const TlsFiles& tls) {
  return Diagnosis(address, tls).Run();
}

}  // namespace heddle::cluster
