#include "server/http/server_context.hpp"

namespace kvasir::server {

HttpStats ServerContext::stats() const {
  return {.open_connections = open_connections, .active_requests = active_requests, .accepted = accepted,
          .refused_connections = refused_connections, .accept_failures = accept_failures, .requests = requests,
          .bad_requests = bad_requests, .screened = screened, .lost = lost, .dropped_slow = dropped_slow,
          .received_bytes = received_bytes, .sent_bytes = sent_bytes, .writes = writes};
}

}  // namespace kvasir::server
