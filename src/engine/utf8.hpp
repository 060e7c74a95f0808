// Whether bytes are UTF-8. Pure; any thread.
#pragma once

#include <string_view>

namespace kvasir::engine {

// Well-formed as Unicode 15 table 3-7 says: no overlong forms, no surrogates, nothing above U+10FFFF, nothing cut off.
bool is_valid_utf8(std::string_view text);

}  // namespace kvasir::engine
