// docs/api.md, written from the field table: what each field of the API does here.
// Thread rule: pure; any thread.
#pragma once

#include <string>

namespace kvasir::server::api {

// The whole page, Markdown.
std::string compatibility_page();

}  // namespace kvasir::server::api
