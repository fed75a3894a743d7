#include "support/certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <fstream>

#include "proxypool/base/assert.hpp"

namespace proxypool::testing {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;

std::string text_of(const Bio& bio) {
  std::string out(BIO_ctrl_pending(bio.get()), '\0');
  PP_ASSERT(BIO_read(bio.get(), out.data(), static_cast<int>(out.size())) ==
            static_cast<int>(out.size()));
  return out;
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PP_ASSERT(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return text_of(bio);
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PP_ASSERT(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_of(bio);
}

Key make_key() {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  PP_ASSERT(key);
  return key;
}

void extend(X509* certificate, int what, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
  PP_ASSERT(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void set_name(X509_NAME* name, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  PP_ASSERT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, bytes,
                                       static_cast<int>(text.size()), -1, 0) == 1);
}

Certificate make_certificate(EVP_PKEY* key, const std::string& subject, std::chrono::seconds left) {
  static long serial = 0;
  Certificate made(X509_new());
  PP_ASSERT(made && X509_set_version(made.get(), 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), left.count());
  PP_ASSERT(X509_set_pubkey(made.get(), key) == 1);
  set_name(X509_get_subject_name(made.get()), subject);
  return made;
}

}  // namespace

struct Authority::Parts {
  Key key = make_key();
  Certificate certificate = make_certificate(key.get(), "test authority", std::chrono::hours(24));
};

Authority::Authority() : parts_(std::make_unique<Parts>()) {
  X509* const own = parts_->certificate.get();
  PP_ASSERT(X509_set_issuer_name(own, X509_get_subject_name(own)) == 1);
  extend(own, NID_basic_constraints, "critical,CA:TRUE");
  extend(own, NID_key_usage, "critical,keyCertSign");
  PP_ASSERT(X509_sign(own, parts_->key.get(), EVP_sha256()) > 0);
  pem_ = pem_of(own);
}

Authority::~Authority() = default;

CertificatePair Authority::issue(const std::vector<std::string>& names,
                                 std::chrono::seconds left) const {
  const Key key = make_key();
  const Certificate made = make_certificate(key.get(), "test server", left);
  X509_set_issuer_name(made.get(), X509_get_subject_name(parts_->certificate.get()));
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  extend(made.get(), NID_subject_alt_name, all);
  PP_ASSERT(X509_sign(made.get(), parts_->key.get(), EVP_sha256()) > 0);
  return {pem_of(made.get()), pem_of(key.get())};
}

CertificateFiles Authority::write(const std::filesystem::path& folder, const std::string& name,
                                  const std::vector<std::string>& names) const {
  const CertificatePair pair = issue(names);
  const CertificateFiles files{(folder / (name + ".pem")).string(),
                               (folder / (name + ".key")).string()};
  write_file(files.certificate, pair.certificate);
  write_file(files.key, pair.key);
  return files;
}

std::string Authority::write_authority(const std::filesystem::path& folder) const {
  const auto path = folder / "authority.pem";
  write_file(path, pem_);
  return path.string();
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  // As a whole or not at all.
  const auto beside = path.string() + ".new";
  std::ofstream(beside) << text;
  std::filesystem::rename(beside, path);
}

}  // namespace proxypool::testing
