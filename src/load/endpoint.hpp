// What a server says about itself before a run.
// Thread rule: one thread; waits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "client/http_client.hpp"

namespace kvasir::load {

// The first model of GET `target`, asked again for `patience_s` seconds while the server cannot be reached or is
// loading (503). stop: true ends the wait; may be empty. Errors: io (unreachable, or not an OpenAI endpoint: the
// message has what was tried and what came), cancelled by stop.
Result<std::string> first_model(client::HttpClient& client, const std::string& target,
                                const std::vector<client::Header>& headers, double patience_s,
                                const std::function<bool()>& stop);

}  // namespace kvasir::load
