find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME artifact.fetch_model COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/artifact/fetch_model_test.py")
set_tests_properties(artifact.fetch_model PROPERTIES TIMEOUT 120)
