// The transport to a real server: each request is one streamed HTTP exchange.
// Thread rule: one caller; answers are read on the client's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/http_client.hpp"
#include "load/transport.hpp"

namespace kvasir::load {

struct LiveOptions {
  client::Api api = client::Api::completions;
  std::string target = "/v1/completions";
  std::vector<client::Header> headers = {};  // with every request, beside the content type
};

class LiveTransport final : public Transport {
 public:
  // client must outlive this object.
  LiveTransport(client::HttpClient& client, LiveOptions options);
  ~LiveTransport() override;

  std::uint64_t now_ns() override;
  void send(std::uint64_t id, std::string body) override;
  void wait(std::uint64_t until_ns, std::vector<Outcome>& ended) override;
  void cancel_all() override;

 private:
  struct Inbox;
  client::HttpClient& client_;
  LiveOptions options_;
  std::shared_ptr<Inbox> inbox_;  // shared with exchanges that may outlive this object
};

}  // namespace kvasir::load
