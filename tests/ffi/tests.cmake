# The Rust library's own tests: each pre-tokenizer against its regular expression. They share cargo's target folder.
add_test(NAME ffi.rust
  COMMAND ${CMAKE_COMMAND} -E env "CARGO_TARGET_DIR=${KVASIR_RUST_TARGET_DIR}" RUSTC_BOOTSTRAP=kvasir_ffi
          "${KVASIR_CARGO}" test --release --locked --jobs 2 --quiet
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}/rust")
set_tests_properties(ffi.rust PROPERTIES TIMEOUT 1800)
