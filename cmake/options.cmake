# One place for what every target of ours is compiled with. The baseline is x86-64-v2: a binary built here runs on any
# such machine, and the kernels pick their instruction class at run time (never -march=native).
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "build type" FORCE)
endif()

# -O2 everywhere; the kernels ask for more themselves (src/kernels/layer.cmake).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(KVASIR_CCACHE ccache)
if(KVASIR_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${KVASIR_CCACHE})
  # Without these ccache leaves sources with a precompiled header alone.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${KVASIR_CCACHE})
endif()

# GoogleTest, JSON and CLI11 take seconds to read, so tests and layers read them once. The dev preset goes without: there a
# source that leaves an include out does not build.
option(KVASIR_PRECOMPILED "read large headers of others once" ON)

add_library(kvasir_options INTERFACE)
target_compile_options(kvasir_options INTERFACE
  -march=x86-64-v2
  -ffp-contract=off            # a fused multiply-add is written, never guessed: the bits are a contract
  -fno-math-errno
  # GCC 12 sees ghosts in moved std::variants and in vectors of bytes; the sanitizers look for the real ones.
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-stringop-overflow>"
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast -Werror)

find_program(KVASIR_MOLD mold)
if(KVASIR_MOLD)
  target_link_options(kvasir_options INTERFACE -fuse-ld=mold)
endif()

if(KVASIR_SANITIZE)
  target_compile_options(kvasir_options INTERFACE -fsanitize=${KVASIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(kvasir_options INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_library(KVASIR_XXHASH xxhash REQUIRED)

# kvasir_precompiled_json(TARGET): its sources find JSON and formatting read already.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/precompiled.cpp" CONTENT "// its precompiled header is what others use\n")
if(KVASIR_PRECOMPILED)
  # For ccache; and GCC 12 sees ghosts in short strings that come out of a precompiled header.
  set(kvasir_precompiled_options "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict>")
  add_library(kvasir_layer_headers OBJECT "${CMAKE_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(kvasir_layer_headers PRIVATE fmt::fmt kvasir_options)
  target_compile_options(kvasir_layer_headers PRIVATE ${kvasir_precompiled_options})
  target_precompile_headers(kvasir_layer_headers PRIVATE <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp> <functional> <optional> <string> <vector>)
endif()
function(kvasir_precompiled_json target)
  if(KVASIR_PRECOMPILED)
    target_compile_options(${target} PRIVATE ${kvasir_precompiled_options})
    target_precompile_headers(${target} REUSE_FROM kvasir_layer_headers)
  endif()
endfunction()
