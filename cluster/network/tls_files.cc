// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/tls_files.h"

#include <openssl/err.h>

#include <fstream>

#include "cluster/network/openssl_objects.h"

namespace heddle::cluster {
namespace {

using openssl::Certificate;
using openssl::Key;

Result<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return std::string();
  // Certificates are small; a device may never end.
  constexpr size_t kMostBytes = size_t{4} << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound("cannot read '{}'", path);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.eof())
    return NotFound("cannot read '{}': it is no file of certificates or keys", path);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

Result<Certificate> FirstCertificate(const std::string& text, const std::string& path) {
  Certificate certificate = openssl::ParseCertificate(text);
  if (certificate == nullptr) return Usage("'{}' holds no certificate (PEM)", path);
  return certificate;
}

Result<Key> FirstKey(const std::string& text, const std::string& path) {
  Key key = openssl::ParseKey(text);
  if (key == nullptr) return Usage("'{}' holds no key (PEM) that can be read without a password", path);
  return key;
}

}  // namespace

Result<TlsTexts> ReadTlsFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty())
    return Usage("--tls-certificate and --tls-key belong together");
  TlsTexts texts;
  HEDDLE_ASSIGN_OR_RETURN(texts.certificate, ReadPem(files.certificate));
  HEDDLE_ASSIGN_OR_RETURN(texts.key, ReadPem(files.key));
  HEDDLE_ASSIGN_OR_RETURN(texts.authority, ReadPem(files.authority));
  if (!files.authority.empty())
    HEDDLE_RETURN_IF_ERROR(FirstCertificate(texts.authority, files.authority).status());
  if (files.certificate.empty()) return texts;
  HEDDLE_ASSIGN_OR_RETURN(const Certificate certificate,
                          FirstCertificate(texts.certificate, files.certificate));
  HEDDLE_ASSIGN_OR_RETURN(const Key key, FirstKey(texts.key, files.key));
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!match)
    return Usage("the key in '{}' is not that of the certificate in '{}'", files.key, files.certificate);
  return texts;
}

}  // namespace heddle::cluster
