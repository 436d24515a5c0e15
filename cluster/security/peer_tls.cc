// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/peer_tls.h"

#include "cluster/network/openssl_objects.h"

namespace heddle::cluster {
namespace {

// Certificates are for one attempt of one job and known to the byte, so that they need neither names nor an
// end.
constexpr const char* kName = "heddle-executor";
constexpr const char* kNotBefore = "20000101000000Z";
constexpr const char* kNotAfter = "99991231235959Z";

bool Fill(X509* certificate, EVP_PKEY* key) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, openssl::kVersion3) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kNotBefore) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kNotAfter) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(kName),
                                    -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         openssl::AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         openssl::AddExtension(certificate, certificate, NID_subject_alt_name, std::string("DNS:") + kName) &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

Result<PeerIdentity> MakePeerIdentity() {
  const openssl::Key key = openssl::MakeKey();
  const openssl::Certificate certificate(X509_new());
  PeerIdentity identity;
  if (key == nullptr || certificate == nullptr || !Fill(certificate.get(), key.get()) ||
      !openssl::WritePem(certificate.get(), key.get(), &identity.certificate, &identity.key))
    return Internal("cannot make a certificate for the links between executors");
  return identity;
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
