# What the engine tests share: engines over tiny models, the continuation cases.
target_sources(test_engine PRIVATE
  "${CMAKE_CURRENT_SOURCE_DIR}/engine/tiny_engine.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/engine/continuation_cases.cpp")

# The examples are compiled by every test build, so they keep compiling.
add_executable(example_generate "${CMAKE_SOURCE_DIR}/examples/generate.cpp")
target_link_libraries(example_generate PRIVATE kvasir_engine kvasir_options)
