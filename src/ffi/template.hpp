// Jinja chat templates, by the Rust `minijinja` crate, set up as Python's `transformers` sets up Jinja.
//
// Limits: instructions, nesting and result size are bounded; a template beyond them is an error. Each rendering runs on
// a thread of its own with a large stack.
// Thread rule: immutable after creation; render() may be called from several threads at once.
// Errors: bad_input with the template's own words and line; internal if the library fails.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct KvTemplate;

namespace kvasir::ffi {

struct TemplateMessage {
  std::string_view role, content;  // UTF-8
};

struct TemplateValues {
  std::span<const TemplateMessage> messages;
  std::string_view bos_token, eos_token;
  bool add_generation_prompt = false;
};

class Template {
 public:
  static Result<Template> create(std::string_view source);

  // At most `limit` bytes.
  Result<std::string> render(const TemplateValues& values, std::size_t limit) const;

 private:
  struct Free {
    void operator()(KvTemplate* source) const;
  };
  explicit Template(KvTemplate* source) : template_(source) {}
  std::unique_ptr<KvTemplate, Free> template_;
};

}  // namespace kvasir::ffi
