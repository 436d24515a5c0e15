// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/peer_tls.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace heddle::cluster {
namespace {

// Certificates are for one attempt of one job and known to the byte, so that they need neither names nor an
// end.
constexpr const char* kName = "heddle-executor";
constexpr const char* kNotBefore = "20000101000000Z";
constexpr const char* kNotAfter = "99991231235959Z";
constexpr int kVersion3 = 2;

template <typename Object, void (*free)(Object*)>
struct Free {
  void operator()(Object* object) const { free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION, X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool Fill(X509* certificate, EVP_PKEY* key) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, kVersion3) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kNotBefore) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kNotAfter) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(kName),
                                    -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         AddExtension(certificate, NID_subject_alt_name, std::string("DNS:") + kName) &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

std::string ContentsOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace

Result<PeerIdentity> MakePeerIdentity() {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Memory key_text(BIO_new(BIO_s_mem()));
  const Memory certificate_text(BIO_new(BIO_s_mem()));
  if (key == nullptr || certificate == nullptr || key_text == nullptr || certificate_text == nullptr ||
      !Fill(certificate.get(), key.get()) ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return Internal("cannot make a certificate for the links between executors");
  return PeerIdentity{ContentsOf(certificate_text.get()), ContentsOf(key_text.get())};
}

std::shared_ptr<grpc::ServerCredentials> PeerServerCredentials(const PeerIdentity& identity) {
  grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> PeerChannelCredentials(const std::string& certificate,
                                                                 grpc::ChannelArguments* arguments) {
  arguments->SetSslTargetNameOverride(kName);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = certificate;
  return grpc::SslCredentials(options);
}

}  // namespace heddle::cluster
