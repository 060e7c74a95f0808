// Checks of option values for CLI11: each message names the value and what would be valid; CLI11 puts the option's name
// before it. Nothing is clamped.
// Thread rule: pure, any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::cli {

// A whole number in [low, high], decimal digits alone.
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);

// A decimal number in [low, high]; NaN and infinities are refused.
CLI::Validator number(double low, double high);

// One of these words. `reason` may be empty, or say more about the choice.
CLI::Validator one_of(std::vector<std::string> words, std::string reason = "");

// Any text but none.
CLI::Validator not_empty();

// A size as base/units.hpp parses it; becomes plain bytes.
CLI::Validator byte_size();

// Whole numbers in [low, high] separated by commas.
CLI::Validator number_list(std::uint64_t low, std::uint64_t high);

// The parts of "a,b,c". REQUIRES: checked by number_list.
std::vector<std::uint32_t> split_numbers(const std::string& text);

}  // namespace kvasir::cli
