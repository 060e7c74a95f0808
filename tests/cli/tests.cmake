target_sources(test_cli PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/cli/program.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/client/fake_server.cpp")
add_dependencies(test_cli kvasir)   # the tests run the program
# A real client against the program; skipped where it cannot be installed or the default model is missing.
add_test(NAME cli.client.openai
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/cli/serve_client_test.sh" "${CMAKE_SOURCE_DIR}" $<TARGET_FILE:kvasir>
                 "${CMAKE_SOURCE_DIR}/models/SmolLM2-135M-Instruct-Q4_1.gguf")
set_tests_properties(cli.client.openai PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
