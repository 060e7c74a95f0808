#include "cli/settings.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/suggestion.hpp"
#include "base/units.hpp"
#include "cli/exit_code.hpp"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kMaxConfigBytes = 1 << 20;
constexpr const char* kConfig = "--config";
constexpr const char* kPrint = "--print-config";

std::string long_name(const CLI::Option& option) { return option.get_lnames().empty() ? "" : option.get_lnames().front(); }

// "Tokens of one step (default 512)" -> "512"
std::string default_in(const std::string& description) {
  const std::size_t at = description.rfind("default");
  const std::size_t end = description.rfind(')');
  if (at == std::string::npos || end == std::string::npos || end < at) return "";
  const std::size_t begin = description.find_first_not_of(": ", at + std::string_view("default").size());
  return begin < end ? description.substr(begin, end - begin) : "";
}

std::optional<bool> truth(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* yes : {"1", "true", "on", "yes", "enabled"})
    if (text == yes) return true;
  for (const char* no : {"0", "false", "off", "no", "disabled"})
    if (text == no) return false;
  return std::nullopt;
}

using FileValues = std::map<std::string, std::vector<std::string>>;

Result<std::vector<std::string>> values_of(const std::string& path, const std::string& key, const YAML::Node& node) {
  if (node.IsScalar()) return std::vector<std::string>{node.Scalar()};
  std::vector<std::string> values;
  for (const YAML::Node& item : node) {
    if (!node.IsSequence() || !item.IsScalar())
      return usage_error(fmt::format("{}: {} is a map or a nested list; a value or a list of values is wanted", path, key));
    values.push_back(item.Scalar());
  }
  if (values.empty()) return usage_error(fmt::format("{}: {} has no value", path, key));
  return values;
}

Result<FileValues> read_file(const std::string& path, const std::vector<std::string>& known) {
  FileValues values;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return usage_error(fmt::format("--config: {} is a directory; a YAML file is wanted", path));
  if (const auto bytes = std::filesystem::file_size(path, ignored); !ignored && bytes > kMaxConfigBytes)
    return usage_error(fmt::format("--config: {} has {}; valid: at most {}", path, format_bytes(bytes), format_bytes(kMaxConfigBytes)));
  try {
    std::ifstream file(path);
    if (!file) throw YAML::BadFile(path);
    const std::vector<YAML::Node> documents = YAML::LoadAll(file);
    if (documents.size() > 1) return usage_error(fmt::format("{}: has {} documents ('---'); one is wanted", path, documents.size()));
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    if (!root.IsNull() && !root.IsMap()) return usage_error(fmt::format("{}: a map of option names to values is wanted, as 'threads: 2'", path));
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      if (std::find(known.begin(), known.end(), key) == known.end())
        return usage_error(fmt::format("{}: unknown key '{}'; did you mean '{}'?", path, key, nearest(key, known)));
      if (values.contains(key)) return usage_error(fmt::format("{}: '{}' stands there twice", path, key));
      KV_ASSIGN(values[key], values_of(path, key, entry.second));
    }
  } catch (const YAML::BadFile&) {
    return usage_error(fmt::format("--config: {} cannot be read", path));
  } catch (const YAML::Exception& error) {
    return usage_error(fmt::format("{}: line {}: {}", path, error.mark.line + 1, error.msg));
  }
  return values;
}

// A flag that is switched off is as one that is not there, but it is there: what ranks below it does not count.
Status take_truth(Setting& setting) {
  if (!setting.is_flag || setting.origin == Origin::fallback || setting.origin == Origin::flag) return ok_status();
  const std::optional<bool> on = setting.values.size() == 1 ? truth(setting.values[0]) : std::nullopt;
  if (!on) return usage_error(fmt::format("{}: {} is '{}'; true or false is wanted", setting.source, setting.name, setting.values[0]));
  setting.values = *on ? std::vector<std::string>{"true"} : std::vector<std::string>{};
  return ok_status();
}

std::string comment(const Setting& setting) {
  switch (setting.origin) {
    case Origin::flag: return "command line";
    case Origin::environment: return "environment, " + setting.source;
    case Origin::file: return setting.source;
    case Origin::fallback: return "default";
  }
  return "";
}

// A plain YAML scalar where that is unambiguous, else in double quotes.
std::string scalar(const std::string& value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '/' || c == '-' || c == '+';
  });
  if (plain && value[0] != '-') return value;
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << value;
  return emitter.c_str();
}

std::string yaml_value(const Setting& setting) {
  if (setting.is_secret) return "\"(not shown)\"";
  if (setting.is_flag) return setting.values.empty() ? "false" : "true";
  if (setting.values.size() == 1) return scalar(setting.values[0]);
  std::string list = "[";
  for (const std::string& value : setting.values) list += (list.size() > 1 ? ", " : "") + scalar(value);
  return list + "]";
}

}  // namespace

bool is_setting(const std::string& name) {
  static constexpr std::array kNotSettings = {"help", "config", "print-config", "json", "version"};
  return !name.empty() && std::find(kNotSettings.begin(), kNotSettings.end(), name) == kNotSettings.end();
}

std::string environment_name(const std::string& option) {
  std::string name = "KVASIR_";
  for (const char c : option) name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Result<std::vector<Setting>> resolve_settings(const CLI::App& command, const Environment& environment) {
  const CLI::Option* config = command.get_option_no_throw(kConfig);
  if (config == nullptr) return std::vector<Setting>{};
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    if (is_setting(long_name(*option))) known.push_back(long_name(*option));
  FileValues file;
  const std::string path = config->count() > 0 ? config->results().front() : environment(environment_name("config")).value_or("");
  if (!path.empty()) {
    KV_ASSIGN(file, read_file(path, known));
  }

  std::vector<Setting> settings;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = long_name(*option);
    if (!is_setting(name)) continue;
    Setting setting;
    setting.name = name;
    setting.fallback = default_in(option->get_description());
    setting.is_flag = option->get_expected_max() == 0;
    setting.is_secret = name == "api-key" || name == "admin-key";
    if (option->count() > 0) {
      setting.origin = Origin::flag;
      setting.values = option->results();
    } else if (const auto value = environment(environment_name(name))) {
      setting.origin = Origin::environment;
      setting.source = environment_name(name);
      setting.values = {*value};
    } else if (const auto found = file.find(name); found != file.end()) {
      setting.origin = Origin::file;
      setting.source = path;
      setting.values = found->second;
    }
    KV_TRY(take_truth(setting));
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<std::string> as_arguments(const std::vector<Setting>& settings) {
  std::vector<std::string> words;
  for (const Setting& setting : settings) {
    if (setting.origin == Origin::flag || setting.origin == Origin::fallback) continue;
    for (const std::string& value : setting.values)
      words.push_back(setting.is_flag ? "--" + setting.name : fmt::format("--{}={}", setting.name, value));
  }
  return words;
}

std::string print_settings(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    const bool set = setting.origin != Origin::fallback;
    std::string line = set || setting.is_flag ? fmt::format("{}: {}", setting.name, yaml_value(setting))
                                              : fmt::format("# {}: {}", setting.name, setting.fallback);
    text += fmt::format("{:<44}  # {}\n", line, comment(setting));
  }
  return text;
}

void add_settings_options(CLI::App& command) {
  command.add_option(kConfig, "A YAML file of options: 'threads: 2'. An option on the command line or in the environment (KVASIR_THREADS=2) outranks it")
      ->type_name("FILE")->group("Configuration");
  command.add_flag(std::string(kPrint))
      ->description("Print every option's value and where it comes from, as a file for --config, and exit")->group("Configuration");
}

bool wants_settings_printed(const CLI::App& command) {
  const CLI::Option* option = command.get_option_no_throw(kPrint);
  return option != nullptr && option->count() > 0;
}

}  // namespace kvasir::cli
