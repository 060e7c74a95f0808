// A conversation on a terminal, with its history.
// Thread rule: one thread at a time.
#pragma once

#include "cli/console.hpp"
#include "cli/loading.hpp"
#include "cli/run_flags.hpp"
#include "engine/engine.hpp"
#include "platform/terminal.hpp"

namespace kvasir::cli {

// Lines from console.in until its end, /quit, or Ctrl-C at the prompt; Ctrl-C during an answer ends the answer.
// Returns the exit code. REQUIRES: the model has a chat template.
int chat(const RunFlags& flags, const LoadedModel& loaded, engine::Engine& engine, platform::InterruptScope& interrupt,
         Console& console);

}  // namespace kvasir::cli
