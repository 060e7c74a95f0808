// kvasir record: what was launched, and whether KV of one launch is KV of another.
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>
#include <string>

#include "artifact/record_json.hpp"
#include "cli/artifact_record.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/record_text.hpp"

namespace kvasir::cli {
namespace {

struct ShowFlags {
  std::string file;
  bool json = false;
};

struct DiffFlags {
  std::string one, other;
  bool json = false;
};

int show(const ShowFlags& flags, Console& console) {
  const Result<artifact::ArtifactRecord> record = read_record(flags.file);
  if (!record.ok()) return report_error(console, record.error());
  if (!flags.json) {
    console.out << record_table(*record);
    return kExitOk;
  }
  const Result<std::string> text = artifact::record_text(*record);
  if (!text.ok()) return report_error(console, text.error());
  console.out << report::to_json_line(report::Json::parse(*text)) << '\n';
  return kExitOk;
}

int diff(const DiffFlags& flags, Console& console) {
  const Result<artifact::ArtifactRecord> one = read_record(flags.one), other = read_record(flags.other);
  for (const auto* record : {&one, &other}) {
    if (!record->ok()) return report_error(console, record->error());
  }
  const artifact::RecordDiff found = artifact::diff_records(*one, *other);
  console.out << (flags.json ? report::to_json_line(diff_json(found)) + '\n' : diff_table(found));
  return found.portable ? kExitOk : kExitNo;
}

}  // namespace

Command add_record(CLI::App& root) {
  CLI::App* app = root.add_subcommand("record", "Artifact records: `record show FILE`, `record diff FILE FILE`");
  return {app, nullptr, [](Console& console) {
            return report_error(console, {ErrorCode::usage, "record: what to do is missing; valid: record show FILE, record diff FILE FILE"});
          }};
}

Command add_record_show(CLI::App& record) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* app = record.add_subcommand("show", "Show an artifact record: both ids, all they were made from, the memory");
  app->add_option("FILE", flags->file, "A record, as plan, run and serve write with --record")->required()->type_name("");
  app->add_flag("--json", flags->json, "One JSON object");
  return {app, nullptr, [flags](Console& console) { return show(*flags, console); }};
}

Command add_record_diff(CLI::App& record) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* app = record.add_subcommand("diff", "Tell which differences of two records change bits or bytes, and whether KV is portable between them (exit code 3 if not)");
  app->add_option("FIRST", flags->one, "A record")->required()->type_name("");
  app->add_option("SECOND", flags->other, "Another record")->required()->type_name("");
  app->add_flag("--json", flags->json, "One JSON object");
  return {app, nullptr, [flags](Console& console) { return diff(*flags, console); }};
}

}  // namespace kvasir::cli
