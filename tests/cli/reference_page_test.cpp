#include "cli/reference_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/command_line.hpp"
#include "cli/settings.hpp"

namespace kvasir::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReferencePage, ShowsEveryOptionOnceWithItsVariable) {
  CLI::App app("Does things", "thing");
  std::string file;
  int number = 0;
  app.add_option("FILE", file, "What to read")->required();
  app.add_option("-n,--number", number, "How many, 1|2")->type_name("N")->group("Counting");
  EXPECT_THAT(reference_page({{"thing", &app}}), Not(HasSubstr("KVASIR_NUMBER"))) << "it takes no --config";
  add_settings_options(app);
  const std::string page = reference_page({{"thing", &app}});
  EXPECT_THAT(page, HasSubstr("## thing\n\nDoes things.\n\n```\nkvasir thing FILE [options]\n```\n"));
  EXPECT_THAT(page, HasSubstr("Counting\n\n| option | environment | what |\n|---|---|---|\n"
                              "| `--number, -n N` | `KVASIR_NUMBER` | How many, 1\\|2 |\n"));
  EXPECT_THAT(page, HasSubstr("| `--config FILE` |  | "));
}

TEST(ReferencePage, IsUpToDate) {
  const std::string path = std::string(KVASIR_SOURCE_DIR) + "/docs/options.md";
  if (std::getenv("KVASIR_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << options_page();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), options_page()) << "docs/options.md is not what the options say; write it anew:\n"
                                           "  KVASIR_UPDATE_DOCS=1 build/tests/test_cli --gtest_filter='ReferencePage.*'";
}

}  // namespace
}  // namespace kvasir::cli
