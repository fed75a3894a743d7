// The JSON object in a request's body, or why there is none.
//
// Thread rule: pure function.
// Limits:      eight levels deep.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <variant>

#include "adapters/http/router.hpp"

namespace proxypool::http {

// 415 for another media type, 400 `not_json` for what is no object.
[[nodiscard]] std::variant<nlohmann::json, Refusal> json_object(const Call& call);

}  // namespace proxypool::http
