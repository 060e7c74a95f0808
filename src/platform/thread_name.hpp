// The name under which the system shows a thread: in top -H, in debuggers, in /proc/PID/task.
// Thread rule: any thread, about itself.
#pragma once

namespace kvasir::platform {

// REQUIRES: at most 15 characters. No error: a name is a convenience.
void name_this_thread(const char* name);

}  // namespace kvasir::platform
