// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/certificates.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "cluster/network/openssl_objects.h"
#include "cluster/network/tls_files.h"

namespace heddle::cluster {
namespace {

using openssl::AddExtension;
using openssl::Certificate;
using openssl::Key;

constexpr int kSerialBits = 127;
constexpr long kClockSkewS = 300;  // clocks of other machines may be behind
constexpr long kSecondsOfDay = 86'400;

std::string CommonName(X509_NAME* name) {
  std::array<char, 256> text{};
  const int size = X509_NAME_get_text_by_NID(name, NID_commonName, text.data(), text.size());
  return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
}

int64_t Milliseconds(const ASN1_TIME* time) {
  tm broken{};
  return ASN1_TIME_to_tm(time, &broken) == 1 ? int64_t{timegm(&broken)} * 1000 : 0;
}

std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  auto* const all =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_DNS) {
      const ASN1_STRING* text = name->d.dNSName;
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                         static_cast<size_t>(ASN1_STRING_length(text)));
    } else if (name->type == GEN_IPADD) {
      const ASN1_OCTET_STRING* bytes = name->d.iPAddress;
      std::array<char, INET6_ADDRSTRLEN> text{};
      const int length = ASN1_STRING_length(bytes);
      if (length != 4 && length != 16) continue;  // no address
      if (inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(),
                    text.size()) != nullptr)
        names.emplace_back(text.data());
    }
  }
  GENERAL_NAMES_free(all);
  return names;
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

bool IsHost(const std::string& host) {
  constexpr size_t kLongest = 253;
  return IsAddress(host) ||
         (!host.empty() && host.size() <= kLongest && std::ranges::all_of(host, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '*';
         }));
}

bool SetRandomSerial(X509* certificate) {
  const openssl::Number number(BN_new());
  return number != nullptr && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetBasics(X509* certificate, EVP_PKEY* key, const std::string& name, int days) {
  return X509_set_version(certificate, openssl::kVersion3) == 1 && SetRandomSerial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kClockSkewS) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kSecondsOfDay * days) != nullptr &&
         X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1 &&
         X509_set_pubkey(certificate, key) == 1;
}

Result<CertificatePair> ToPem(X509* certificate, EVP_PKEY* key) {
  CertificatePair pair;
  if (!openssl::WritePem(certificate, key, &pair.certificate, &pair.key))
    return Internal("cannot write a certificate");
  return pair;
}

std::string JoinNames(const std::vector<std::string>& hosts) {
  std::string joined;
  for (const std::string& host : hosts)
    joined += (joined.empty() ? "" : ",") + std::string(IsAddress(host) ? "IP:" : "DNS:") + host;
  return joined;
}

}  // namespace

Result<CertificateFacts> ReadCertificate(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const TlsTexts texts, ReadTlsFiles({"", "", path}));
  const Certificate certificate = openssl::ParseCertificate(texts.authority);
  if (certificate == nullptr) return Usage("'{}' holds no certificate (PEM)", path);
  CertificateFacts facts;
  facts.subject = CommonName(X509_get_subject_name(certificate.get()));
  facts.issuer = CommonName(X509_get_issuer_name(certificate.get()));
  facts.names = NamesOf(certificate.get());
  facts.from_ms = Milliseconds(X509_get0_notBefore(certificate.get()));
  facts.until_ms = Milliseconds(X509_get0_notAfter(certificate.get()));
  facts.is_authority = X509_check_ca(certificate.get()) == 1;
  ERR_clear_error();
  return facts;
}

Result<CertificatePair> MakeAuthority(const std::string& name, int days) {
  const Key key = openssl::MakeKey();
  const Certificate certificate(X509_new());
  const bool made =
      key != nullptr && certificate != nullptr && SetBasics(certificate.get(), key.get(), name, days) &&
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) == 1 &&
      AddExtension(certificate.get(), certificate.get(), NID_basic_constraints,
                   "critical,CA:TRUE,pathlen:0") &&
      AddExtension(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash") &&
      X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0;
  ERR_clear_error();
  if (!made) return Internal("cannot make the certificate of an authority");
  return ToPem(certificate.get(), key.get());
}

Result<CertificatePair> MakeCertificate(const std::vector<std::string>& hosts, int days,
                                        const std::string& authority_file, const std::string& key_file) {
  for (const std::string& host : hosts)
    if (!IsHost(host)) return Usage("'{}' is no name or address of a host", host);
  HEDDLE_ASSIGN_OR_RETURN(const TlsTexts texts, ReadTlsFiles({authority_file, key_file, ""}));
  HEDDLE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(authority_file));
  if (!facts.is_authority)
    return Usage("the certificate in '{}' is that of no authority: it cannot sign others", authority_file)
        .WithNote("'heddle admin cert authority' makes one");
  const int64_t now_ms = int64_t{time(nullptr)} * 1000;
  const int64_t left_days = (facts.until_ms - now_ms) / (kSecondsOfDay * 1000);
  if (left_days < 1)
    return Usage("the authority in '{}' has expired, or will within a day", authority_file)
        .WithNote("make a new one with 'heddle admin cert authority' in another folder");
  const Certificate authority = openssl::ParseCertificate(texts.certificate);
  const Key authority_key = openssl::ParseKey(texts.key);
  const Key key = openssl::MakeKey();
  const Certificate certificate(X509_new());
  const bool made =
      authority != nullptr && authority_key != nullptr && key != nullptr && certificate != nullptr &&
      SetBasics(certificate.get(), key.get(), hosts.front().substr(0, 64),
                static_cast<int>(std::min<int64_t>(days, left_days))) &&
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(authority.get())) == 1 &&
      AddExtension(certificate.get(), authority.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(certificate.get(), authority.get(), NID_key_usage, "critical,digitalSignature") &&
      AddExtension(certificate.get(), authority.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
      AddExtension(certificate.get(), authority.get(), NID_subject_alt_name, JoinNames(hosts)) &&
      AddExtension(certificate.get(), authority.get(), NID_authority_key_identifier, "keyid") &&
      X509_sign(certificate.get(), authority_key.get(), EVP_sha256()) > 0;
  ERR_clear_error();
  if (!made) return Internal("cannot make a certificate");
  return ToPem(certificate.get(), key.get());
}

}  // namespace heddle::cluster
