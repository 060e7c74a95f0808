#include "server/api/compatibility_page.hpp"

#include <fmt/format.h>
#include <array>

#include "server/api/api_error.hpp"
#include "server/api/field_table.hpp"
#include "server/api/json_body.hpp"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kIntroduction = R"(# API compatibility

This page is made from the field table, `src/server/api/field_rows.cpp`; a test compares them.
To write it anew: `KVASIR_UPDATE_DOCS=1 build/tests/test_server --gtest_filter='CompatibilityPage.*'`.

- `null` is the same as leaving a field out. A whole number may be written `5.0`.
- A field that no table here names is accepted; the server warns once of each name. With `--strict-fields` it is refused.
- A refused field is a 400 that names it, unless its value asks for nothing (the value under "range").
- A key given twice in one object is refused.
- `messages`: content never becomes a control token; the model's chat template alone writes those. `prompt` of
  completions: a text rendered by the client, so control tokens in it are recognised unless `parse_special` is false.
- `priority`: lower is served earlier, as in vLLM (SGLang has it the other way round).
)";

constexpr std::string_view kErrors = R"(
## Errors

`{"error": {"message", "type", "param", "code"}}`, `code` a word. The message names the field, its value and what would
be valid.

| status | code | when |
|---|---|---|
| 400 | `invalid_json`, `invalid_type`, `invalid_value`, `missing_required_parameter`, `conflicting_parameters` | the body is malformed |
| 400 | `unsupported_parameter`, `unsupported_value`, `unknown_parameter` | well-formed, and not offered here |
| 400 | `context_length_exceeded`, `request_does_not_fit` | more tokens than the context or the cache holds; `x-should-retry: false` |
| 404 | `model_not_found` | another model than the one served |
| 400 | `bad_http` | what came is not HTTP/1.1 |
| 413 | `body_too_large` | the body has too many bytes |
| 431 | `header_too_large` | the head has too many bytes or fields |
| 429 | `slow_down` | one key's limit is reached; `Retry-After` |
| 503 | `server_is_overloaded` | the server is full; `Retry-After` |
| 500 | `internal_error` | a fault of the server |

A failure in the middle of a stream is an event with the same `error` object; nothing follows it.
)";

struct Section {
  Routes routes;
  std::string_view title;
};

constexpr std::array<Section, 4> kSections = {{
    {static_cast<Routes>(Route::chat), "`POST /v1/chat/completions` and its `/render`"},
    {static_cast<Routes>(Route::completions), "`POST /v1/completions` and its `/render`"},
    {static_cast<Routes>(Route::tokenize), "`POST /tokenize`"},
    {static_cast<Routes>(Route::detokenize), "`POST /detokenize`"},
}};

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string row(const FieldSpec& field) {
  const std::string range = field.status == FieldStatus::refused && !field.words.empty()
                                ? fmt::format("`{}`", field.words)
                                : range_words(field);
  return fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.name, to_string(field.status),
                     field.type == FieldType::any ? "" : to_string(field.type), cell(range), cell(field.standard),
                     cell(field.does));
}

}  // namespace

std::string compatibility_page() {
  std::string out(kIntroduction);
  const JsonLimits limits;
  out +=
      fmt::format("- A body has at most {} MiB, {} levels of nesting, {} members in one object and {} values in all.\n",
                  limits.max_bytes >> 20, limits.max_depth, limits.max_members, limits.max_values);
  out += fmt::format("- One request has at most {} prompts and {} answers, and no more answers than the queue holds\n"
                     "  (`--max-num-queued-reqs`); `Retry-After` is 1 to {} seconds.\n",
                     kMaxPrompts, kMaxSequences, kMaxRetryAfterS);
  for (const Section& section : kSections) {
    out +=
        fmt::format("\n## {}\n\n| field | here | type | range | default | what it does |\n|---|---|---|---|---|---|\n",
                    section.title);
    for (const FieldSpec& field : fields()) {
      if ((field.routes & section.routes) != 0) out += row(field);
    }
  }
  return out + std::string(kErrors);
}

}  // namespace kvasir::server::api
