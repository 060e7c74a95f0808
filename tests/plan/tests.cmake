# The library's example sees public headers alone, and runs.
add_executable(example_plan "${CMAKE_SOURCE_DIR}/examples/plan.cpp")
target_link_libraries(example_plan PRIVATE kvasir_public kvasir_options)
add_test(NAME plan.example COMMAND example_plan llama-3-8b 80)
set_tests_properties(plan.example PROPERTIES PASS_REGULAR_EXPRESSION "total\n[1-9][0-9]* sequences fit")
add_test(NAME plan.example_refuses COMMAND example_plan lama-3-8b)
set_tests_properties(plan.example_refuses PROPERTIES PASS_REGULAR_EXPRESSION "Llama-3-8B")
# The plan beside an engine: the engine's own small models.
target_link_libraries(test_plan PRIVATE kvasir_engine)
target_sources(test_plan PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/engine/tiny_engine.cpp")
