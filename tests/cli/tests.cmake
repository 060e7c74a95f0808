target_sources(test_cli PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/cli/program.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/client/fake_server.cpp")
add_dependencies(test_cli kvasir)   # the tests run the program
