// kvasir tokenize: text to ids, as the model's file defines it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <istream>
#include <iterator>
#include <memory>
#include <ostream>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "report/json.hpp"
#include "report/table.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string text;
  bool text_given = false;
  bool ids = false;
  bool json = false;
  bool no_special = false;
  bool special = false;
};

void print_json(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::ostream& out) {
  report::Json pieces = report::Json::array();
  for (const TokenId id : ids) pieces.push_back(std::string(tokenizer.piece(id)));
  out << report::to_json_line({{"ids", ids}, {"pieces", pieces}}) << '\n';
}

void print_table(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::ostream& out) {
  report::Table table({{"id", report::Align::right}, {"kind", report::Align::left}, {"piece", report::Align::left}});
  for (const TokenId id : ids) {
    table.add_row({fmt::format("{}", id), std::string(text::to_string(tokenizer.kind(id))), fmt::format("'{}'", tokenizer.piece(id))});
  }
  out << table.render() << fmt::format("{} tokens\n", ids.size());
}

int tokenize(const TokenizeFlags& flags, Console& console) {
  Result<artifact::GgufFile> file = open_model_file(flags.model);
  if (!file.ok()) return report_error(console, file.error());
  Result<text::Tokenizer> tokenizer = text::Tokenizer::from_gguf(*file);
  if (!tokenizer.ok()) return report_error(console, tokenizer.error());
  const Result<std::string> text = flags.text_given ? flags.text : read_all(console.in, "the text on stdin", kMaxTextBytes);
  if (!text.ok()) return report_error(console, text.error());
  std::vector<TokenId> ids;   // of no text there are none, not even BOS
  if (!text->empty()) {
    Result<std::vector<TokenId>> encoded = tokenizer->encode(*text, {.add_special = !flags.no_special, .parse_special = flags.special});
    if (!encoded.ok()) return report_error(console, encoded.error());
    ids = std::move(*encoded);
  }
  if (flags.json) print_json(*tokenizer, ids, console.out);
  else if (flags.ids) console.out << fmt::format("{}\n", fmt::join(ids, " "));
  else print_table(*tokenizer, ids, console.out);
  return kExitOk;
}

}  // namespace

Command add_tokenize(CLI::App& root) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* app = root.add_subcommand("tokenize", "Turn text into token ids; reads stdin byte for byte, or --text");
  add_model_argument(*app, flags->model);
  CLI::Option* text = app->add_option("--text", flags->text, "The text (default: all of stdin)")->type_name("TEXT");
  app->add_flag("--ids", flags->ids, "Only the ids, separated by spaces");
  app->add_flag("--json", flags->json, "One JSON object: ids, pieces");
  app->add_flag("--no-special", flags->no_special, "Do not add BOS and EOS, even where the vocabulary asks for them");
  app->add_flag("--special", flags->special, "Recognise the text of special tokens, such as <|im_end|>");
  return {app, &flags->model, [flags, text](Console& console) {
            flags->text_given = text->count() > 0;
            return tokenize(*flags, console);
          }};
}

}  // namespace kvasir::cli
