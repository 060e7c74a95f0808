#include "ffi/template.hpp"

#include <vector>

#include "ffi/call.hpp"

namespace kvasir::ffi {

void Template::Free::operator()(KvTemplate* source) const { kv_template_free(source); }

Result<Template> Template::create(std::string_view source) {
  KvTemplate* parsed = nullptr;
  KV_TRY(status(kv_template_new(slice(source), &parsed), ErrorCode::bad_input));
  return Template(parsed);
}

Result<std::string> Template::render(const TemplateValues& values, std::size_t limit) const {
  std::vector<KvMessage> messages;
  messages.reserve(values.messages.size());
  for (const TemplateMessage& message : values.messages) {
    messages.push_back({slice(message.role), slice(message.content)});
  }
  KvBuffer buffer{};
  KV_TRY(status(kv_template_render(template_.get(), messages.data(), messages.size(), slice(values.bos_token),
                                   slice(values.eos_token), values.add_generation_prompt, limit, &buffer),
                ErrorCode::bad_input));
  std::string out(reinterpret_cast<const char*>(buffer.data), buffer.size);
  kv_buffer_free(buffer);
  return out;
}

}  // namespace kvasir::ffi
