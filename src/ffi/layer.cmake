# The Rust library: one static archive built by cargo, shared by all build folders (its own sources decide when it is
# rebuilt). Sanitizer builds link the same archive: what is instrumented is our C++.
# RUSTC_BOOTSTRAP names the one crate, ours, that may use an unstable feature: rust/src/budget.rs says which and why.
find_program(KVASIR_CARGO NAMES cargo cargo-web HINTS "$ENV{HOME}/.cargo/bin" REQUIRED)
set(KVASIR_RUST_DIR "${CMAKE_SOURCE_DIR}/rust")
set(KVASIR_RUST_TARGET_DIR "${KVASIR_RUST_DIR}/target" CACHE PATH "cargo's target folder")
set(kvasir_rust_archive "${KVASIR_RUST_TARGET_DIR}/release/libkvasir_ffi.a")
file(GLOB kvasir_rust_sources CONFIGURE_DEPENDS "${KVASIR_RUST_DIR}/src/*.rs")

add_custom_command(
  OUTPUT "${kvasir_rust_archive}"
  COMMAND ${CMAKE_COMMAND} -E env "CARGO_TARGET_DIR=${KVASIR_RUST_TARGET_DIR}" RUSTC_BOOTSTRAP=kvasir_ffi
          "${KVASIR_CARGO}" build --release --locked --jobs 2 --quiet
  WORKING_DIRECTORY "${KVASIR_RUST_DIR}"
  DEPENDS ${kvasir_rust_sources} "${KVASIR_RUST_DIR}/Cargo.toml" "${KVASIR_RUST_DIR}/Cargo.lock"
  COMMENT "Building the Rust library (minutes the first time)"
  VERBATIM)
add_custom_target(kvasir_rust DEPENDS "${kvasir_rust_archive}")

add_dependencies(kvasir_ffi kvasir_rust)
target_link_libraries(kvasir_ffi PUBLIC "${kvasir_rust_archive}" Threads::Threads m ${CMAKE_DL_LIBS})
