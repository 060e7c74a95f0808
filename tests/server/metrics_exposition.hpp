// A strict reader of the Prometheus text format, for tests: what it does not know is a failure.
// Source: Prometheus exposition format 0.0.4.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace kvasir::server {

using LabelSet = std::map<std::string, std::string>;

struct ExposedFamily {
  std::string type;
  std::string help;
  std::vector<std::pair<std::string, LabelSet>> samples;   // name with its suffix, labels
  std::vector<double> values;
};

struct Exposition {
  std::map<std::string, ExposedFamily> families;

  // The value of a series; the labels given must pick exactly one.
  double value(const std::string& sample, const LabelSet& wanted = {}) const {
    double found = std::nan("");
    int count = 0;
    for (const auto& [name, family] : families) {
      for (std::size_t i = 0; i < family.samples.size(); ++i) {
        if (family.samples[i].first != sample) continue;
        bool fits = true;
        for (const auto& [label, value_of] : wanted) {
          const auto it = family.samples[i].second.find(label);
          fits = fits && it != family.samples[i].second.end() && it->second == value_of;
        }
        if (fits) found = family.values[i];
        count += fits ? 1 : 0;
      }
    }
    EXPECT_EQ(count, 1) << sample;
    return found;
  }
};

inline LabelSet parse_labels(std::string text, const std::string& line) {
  static const std::regex kLabel("^([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\\\n]|\\\\[\\\\\"n])*)\"(,|$)");
  LabelSet labels;
  std::smatch match;
  while (!text.empty()) {
    if (!std::regex_search(text, match, kLabel)) {
      ADD_FAILURE() << "bad labels: " << line;
      return labels;
    }
    EXPECT_TRUE(labels.emplace(match[1], match[2]).second) << "a label twice: " << line;
    text = match.suffix();
  }
  return labels;
}

inline Exposition parse_exposition(const std::string& text) {
  static const std::regex kMeta("^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$");
  static const std::regex kSample("^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)\\})? (\\S+)$");
  Exposition exposition;
  std::string family;
  std::set<std::string> seen;
  EXPECT_TRUE(text.ends_with("\n"));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    std::smatch match;
    if (std::regex_match(line, match, kMeta)) {
      ExposedFamily& into = exposition.families[match[2]];
      (match[1] == "HELP" ? into.help : into.type) = match[3];
      EXPECT_TRUE(into.samples.empty()) << "a comment after samples: " << line;
      family = match[2];
    } else if (std::regex_match(line, match, kSample)) {
      const std::string name = match[1];
      const bool histogram = exposition.families[family].type == "histogram";
      EXPECT_TRUE(name == family || (histogram && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count")))
          << line;
      std::size_t used = 0;
      const std::string number = match[3];
      const double value = number == "+Inf" ? INFINITY : std::stod(number, &used);
      EXPECT_EQ(used, number.size()) << line;
      EXPECT_TRUE(seen.insert(name + "{" + match[2].str() + "}").second) << "a series twice: " << line;
      exposition.families[family].samples.emplace_back(name, parse_labels(match[2], line));
      exposition.families[family].values.push_back(value);
    } else {
      ADD_FAILURE() << "neither a comment nor a sample: " << line;
    }
  }
  return exposition;
}

}  // namespace kvasir::server
