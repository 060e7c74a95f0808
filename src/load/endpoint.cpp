#include "load/endpoint.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "platform/clock.hpp"
#include "report/table.hpp"

namespace kvasir::load {
namespace {

constexpr auto kPause = std::chrono::milliseconds(250);

Error io(std::string message) { return {ErrorCode::io, std::move(message)}; }

Result<std::string> model_of(const client::HttpResponse& response, const std::string& target) {
  if (response.head.status != 200) {
    const std::string hint =
        response.head.status == 401 || response.head.status == 403 ? " (set OPENAI_API_KEY, or --header)"
        : response.head.status == 404 ? " (name the model with --model if the server has no such route)"
                                      : "";
    return io(fmt::format("GET {} answered {}{}: {}", target, response.head.status, hint,
                          report::printable(response.body.substr(0, 200))));
  }
  const nlohmann::json list = nlohmann::json::parse(response.body, nullptr, false);
  const auto data = list.is_object() ? list.find("data") : list.end();
  if (data != list.end() && data->is_array() && !data->empty() && (*data)[0].is_object()) {
    const auto id = (*data)[0].find("id");
    if (id != (*data)[0].end() && id->is_string()) return id->get<std::string>();
  }
  return io(fmt::format("GET {} named no model; is this an OpenAI endpoint? It answered: {}", target,
                        report::printable(response.body.substr(0, 200))));
}

}  // namespace

Result<std::string> first_model(client::HttpClient& client, const std::string& target,
                                const std::vector<client::Header>& headers, double patience_s,
                                const std::function<bool()>& stop) {
  const std::uint64_t begin = platform::monotonic_ns();
  for (;;) {
    Result<client::HttpResponse> response = client.fetch({.target = target, .headers = headers});
    const bool not_yet = !response.ok() || response->head.status == 503;
    const bool waits = not_yet && platform::seconds_between(begin, platform::monotonic_ns()) < patience_s;
    if (!waits) return response.ok() ? model_of(*response, target) : Result<std::string>(io(response.error().message));
    if (stop && stop()) return Error{ErrorCode::cancelled, "interrupted while waiting for the server"};
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace kvasir::load
