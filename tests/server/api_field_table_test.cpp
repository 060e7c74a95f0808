#include "server/api/field_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "server/api/compatibility_page.hpp"
#include "server/api/field_check.hpp"

namespace kvasir::server::api {
namespace {

using testing::HasSubstr;

constexpr Route kRoutes[] = {Route::chat, Route::completions, Route::tokenize, Route::detokenize};

// The body {"a": {"b": value}} for "a.b", and {"a": [{"b": value}]} for "a[].b".
Json body_with(std::string_view name, const Json& value) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return Json{{std::string(name), value}};
  Json inner = {{std::string(name.substr(dot + 1)), value}};
  std::string_view outer = name.substr(0, dot);
  if (!outer.ends_with("[]")) return body_with(outer, inner);
  return body_with(outer.substr(0, outer.size() - 2), Json::array({inner}));
}

ApiResult<Warnings> check(const FieldSpec& field, Route route, const Json& value, bool strict = false) {
  return check_fields(body_with(field.name, value), {route, 100, strict});
}

template <class Visit>
void for_each_field(const Visit& visit) {
  for (const FieldSpec& field : fields()) {
    for (const Route route : kRoutes) {
      if (contains(field.routes, route)) visit(field, route);
    }
  }
}

TEST(FieldTable, EveryRouteHasAFieldOnceAndEachSaysWhatItDoes) {
  std::set<std::pair<std::string_view, Route>> seen;
  for_each_field([&](const FieldSpec& field, Route route) {
    EXPECT_TRUE(seen.emplace(field.name, route).second) << field.name;
    EXPECT_EQ(find_field(field.name, route), &field) << field.name;
    EXPECT_FALSE(field.does.empty()) << field.name;
  });
}

constexpr std::string_view kChatNames =
    "model messages temperature top_p max_tokens max_completion_tokens n seed stop stream stream_options "
    "stream_options.include_usage stream_options.include_obfuscation stream_options.continuous_usage_stats logprobs "
    "top_logprobs logit_bias presence_penalty frequency_penalty tools tool_choice parallel_tool_calls response_format "
    "user metadata reasoning_effort service_tier prompt_cache_key prompt_cache_retention safety_identifier "
    "prompt_cache_options verbosity store top_k min_p repetition_penalty min_tokens ignore_eos stop_token_ids "
    "include_stop_str_in_output skip_special_tokens prompt_logprobs allowed_token_ids bad_words truncate_prompt_tokens "
    "add_generation_prompt continue_final_message chat_template chat_template_kwargs structured_outputs priority "
    "request_id session_id cache_salt kv_transfer_params return_token_ids return_prompt_text stream_interval echo "
    "cache_prompt id_slot n_keep timings_per_token grammar json_schema samplers typical_p xtc_probability "
    "dry_multiplier mirostat use_beam_search length_penalty early_stopping best_of functions function_call";
constexpr std::string_view kTextNames =
    "prompt echo logprobs suffix best_of max_tokens stop response_format stream stream_options seed n logit_bias";

TEST(FieldTable, HoldsWhatClientsAreKnownToSend) {
  for (const auto& [names, route] : {std::pair(kChatNames, Route::chat), std::pair(kTextNames, Route::completions)}) {
    std::istringstream words{std::string(names)};
    for (std::string name; words >> name;) EXPECT_NE(find_field(name, route), nullptr) << name;
  }
}

TEST(FieldTable, NullIsTheSameAsAbsentEverywhere) {
  for_each_field([](const FieldSpec& field, Route route) {
    const auto checked = check(field, route, nullptr, true);
    EXPECT_TRUE(checked.ok()) << checked.error().message;
  });
}

TEST(FieldTable, RefusedFieldsAreNamedAndTheirNeutralValueIsNot) {
  int refused = 0;
  for_each_field([&](const FieldSpec& field, Route route) {
    if (field.status != FieldStatus::refused) return;
    ++refused;
    const auto asked = check(field, route, Json{{"type", "something"}});
    ASSERT_FALSE(asked.ok()) << field.name;
    EXPECT_EQ(asked.error().status, 400);
    EXPECT_EQ(asked.error().code, "unsupported_parameter");
    EXPECT_THAT(asked.error().message, HasSubstr(asked.error().param));
    EXPECT_THAT(asked.error().message, HasSubstr("valid: leave it out"));
    const Json neutral = field.words.empty() ? Json(nullptr) : Json::parse(field.words);
    EXPECT_TRUE(check(field, route, neutral).ok()) << field.name;
  });
  EXPECT_GT(refused, 20);
}

TEST(FieldTable, NumbersKeepToTheirRange) {
  int bounds = 0;
  for_each_field([&](const FieldSpec& field, Route route) {
    const bool whole = field.type == FieldType::integer;
    if (field.status == FieldStatus::refused || (!whole && field.type != FieldType::number)) return;
    for (const auto& [bound, outside] : {std::pair(field.range.min, -1), std::pair(field.range.max, 1)}) {
      if (std::isinf(bound)) continue;
      ++bounds;
      const bool bound_is_out = outside < 0 && field.range.above_min;
      EXPECT_EQ(check(field, route, bound).ok(), !bound_is_out && (!whole || std::abs(bound) < 1e15))
          << field.name << ' ' << bound;
      const double beyond = std::round(bound + outside * std::max(1.0, std::abs(bound) * 1e-3));
      const auto checked = check(field, route, beyond);
      ASSERT_FALSE(checked.ok()) << field.name << ' ' << beyond;
      EXPECT_EQ(checked.error().code, "invalid_value") << field.name;
      EXPECT_EQ(checked.error().param, field.name);
      EXPECT_THAT(checked.error().message, HasSubstr(std::string(field.name) + " is "));
      EXPECT_THAT(checked.error().message, HasSubstr("; valid: "));
    }
  });
  EXPECT_GT(bounds, 40);
}

TEST(FieldTable, TypesAreChecked) {
  const std::map<FieldType, Json> wrong = {{FieldType::boolean, 1},      {FieldType::flag_or_word, 1},
                                           {FieldType::integer, "12"},
                                           {FieldType::number, "0.5"},   {FieldType::text, 5},
                                           {FieldType::texts, 5},        {FieldType::text_list, "a"},
                                           {FieldType::token_list, "1"}, {FieldType::bias_map, Json::array()},
                                           {FieldType::object, "x"},     {FieldType::objects, "x"},
                                           {FieldType::content, 5},      {FieldType::prompt, 5}};
  for_each_field([&](const FieldSpec& field, Route route) {
    if (field.status == FieldStatus::refused || field.type == FieldType::any) return;
    const auto checked = check(field, route, wrong.at(field.type));
    ASSERT_FALSE(checked.ok()) << field.name;
    EXPECT_EQ(checked.error().code, "invalid_type") << field.name;
    EXPECT_THAT(checked.error().message, HasSubstr("; valid: ")) << field.name;
  });
}

TEST(FieldTable, UnknownFieldsAreReportedOnceAndBounded) {
  Json body = {{"made_up", 1}, {"stream_options", {{"odd", true}}}, {"bad name\n", 1}};
  EXPECT_THAT(*check_fields(body, {Route::chat, 100}),
              testing::ElementsAre("made_up", "stream_options.odd", "(unnamed)"));
  for (int i = 0; i < 1000; ++i) body["f" + std::to_string(i)] = i;
  EXPECT_EQ(check_fields(body, {Route::chat, 100})->size(), kMaxWarnings);
  const auto strict = check_fields(body, {Route::chat, 100, true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, "unknown_parameter");
  EXPECT_EQ(strict.error().param, "made_up");
}

TEST(FieldTable, WhatWouldChangeTheAnswerElsewhereIsAWarningOrInStrictModeAnError) {
  const Json body = {{"mirostat", 2}};
  EXPECT_THAT(*check_fields(body, {Route::chat, 100}), testing::ElementsAre("mirostat"));
  EXPECT_EQ(check_fields(body, {Route::chat, 100, true}).error().param, "mirostat");
}

TEST(FieldTable, WholeNumbersMayBeWrittenAsDecimals) {
  EXPECT_TRUE(check_fields(Json{{"max_tokens", 5.0}}, {Route::chat, 100}).ok());
  EXPECT_EQ(check_fields(Json{{"max_tokens", 5.5}}, {Route::chat, 100}).error().code, "invalid_type");
  EXPECT_EQ(check_fields(Json{{"max_tokens", 1e308}}, {Route::chat, 100}).error().code, "invalid_value");
}

TEST(CompatibilityPage, IsUpToDate) {
  const std::string path = std::string(KVASIR_SOURCE_DIR) + "/docs/api.md";
  if (std::getenv("KVASIR_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << compatibility_page();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), compatibility_page())
      << "docs/api.md is not what the field table says; write it anew:\n"
         "  KVASIR_UPDATE_DOCS=1 build/tests/test_server --gtest_filter='CompatibilityPage.*'";
}

}  // namespace
}  // namespace kvasir::server::api
