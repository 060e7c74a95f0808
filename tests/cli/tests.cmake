target_sources(test_cli PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/cli/program.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/client/fake_server.cpp")
add_dependencies(test_cli kvasir)   # the tests run the program
# Real clients against the program; skipped where they cannot be installed or the default model is missing.
add_executable(choice_scores "${CMAKE_CURRENT_SOURCE_DIR}/cli/choice_scores.cpp")
target_link_libraries(choice_scores PRIVATE kvasir_cli kvasir_options)
foreach(client python node lm-eval)
  add_test(NAME cli.client.${client}
           COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/cli/serve_client_test.sh" ${client} "${CMAKE_SOURCE_DIR}" $<TARGET_FILE:kvasir>
                   "${CMAKE_SOURCE_DIR}/models/SmolLM2-135M-Instruct-Q4_1.gguf" $<TARGET_FILE:choice_scores>)
  # They wait for downloads, so they begin first, beside the others.
  set_tests_properties(cli.client.${client} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 COST 1000)
endforeach()
# The server beyond its capacity, with rude clients; scripts/soak load is the same for longer.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME cli.server.rude_load
         COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/rude_load.py" $<TARGET_FILE:kvasir>
                 "${CMAKE_SOURCE_DIR}/models/SmolLM2-135M-Instruct-Q4_1.gguf" --seconds 60)
set_tests_properties(cli.server.rude_load PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 1000)
# The planner beside an independent computation, for every model it knows by name.
add_test(NAME cli.plan.twin COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/plan_twin.py" $<TARGET_FILE:kvasir>)
set_tests_properties(cli.plan.twin PROPERTIES TIMEOUT 300)
# The planner's page in a real browser; skipped where none can be installed.
add_test(NAME cli.plan.page COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/plan_page.py" $<TARGET_FILE:kvasir> "${CMAKE_SOURCE_DIR}")
set_tests_properties(cli.plan.page PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 900)
