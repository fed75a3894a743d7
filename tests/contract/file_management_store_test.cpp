#include <filesystem>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/file/file_stores.hpp"
#include "contract/management_store_contract.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::contract {
namespace {

class FileFixture {
 public:
  FileFixture() { reopen(); }
  ports::ManagementStore& store() { return *store_; }
  void reopen() {
    store_.reset();
    notes_ = *file::open_notes(folder_.path(), *crypto_);
    usage_.reset();
    usage_ = *file::open_log(folder_.path() / "usage.log", *crypto_);
    store_ = *file::open_management_store(*notes_, usage_.get());
  }

 private:
  support::TempDir folder_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  std::unique_ptr<ports::DurableNotes> notes_;
  std::unique_ptr<ports::DurableLog> usage_;
  std::unique_ptr<ports::ManagementStore> store_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(File, ManagementStoreContract, FileFixture);

}  // namespace
}  // namespace proxypool::contract
