#include "gateway/dispatch/host_regex.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proxypool::gateway {
namespace {

RE2::Options options() {
  RE2::Options chosen;
  chosen.set_log_errors(false);
  chosen.set_case_sensitive(false);
  chosen.set_never_capture(true);
  return chosen;
}

class Re2HostSet final : public domain::HostRegexSet {
 public:
  Re2HostSet() : set_(options(), RE2::ANCHOR_BOTH) {}

  Status add(const domain::HostRegex& pattern) {
    std::string problem;
    if (set_.Add(pattern.pattern, &problem) < 0) {
      return Error(ErrorCode::InvalidArgument, Origin::Internal,
                   "host pattern " + pattern.pattern + ": " + problem);
    }
    rules_.push_back(pattern.rule);
    singles_.push_back(std::make_unique<RE2>(pattern.pattern, options()));
    return ok();
  }
  Status compile() {
    if (set_.Compile()) return ok();
    return Error(ErrorCode::InvalidArgument, Origin::Internal,
                 "the host patterns together are too large");
  }

  void match(std::string_view host, std::vector<std::uint32_t>& rules) const override {
    const re2::StringPiece text(host.data(), host.size());
    std::vector<int> matched;
    RE2::Set::ErrorInfo info{};
    if (set_.Match(text, &matched, &info)) {
      for (const int i : matched) rules.push_back(rules_[static_cast<std::size_t>(i)]);
    } else if (info.kind == RE2::Set::kOutOfMemory) {
      // The joint automaton ran out of its memory: not "no match". One by one then.
      for (std::size_t i = 0; i < singles_.size(); ++i) {
        if (RE2::FullMatch(text, *singles_[i])) rules.push_back(rules_[i]);
      }
    }
  }

 private:
  RE2::Set set_;
  std::vector<std::uint32_t> rules_;
  std::vector<std::unique_ptr<RE2>> singles_;
};

}  // namespace

Result<std::unique_ptr<domain::HostRegexSet>> compile_host_regexes(
    std::span<const domain::HostRegex> patterns) {
  auto set = std::make_unique<Re2HostSet>();
  for (const auto& pattern : patterns) {
    PP_TRY(const Unit added, set->add(pattern));
    (void)added;
  }
  PP_TRY(const Unit compiled, set->compile());
  (void)compiled;
  return std::unique_ptr<domain::HostRegexSet>(std::move(set));
}

}  // namespace proxypool::gateway
