# Checks of the tree itself, and of the checkers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME tree.layers COMMAND ${Python3_EXECUTABLE} "${CMAKE_SOURCE_DIR}/scripts/check-layers" "${CMAKE_SOURCE_DIR}")
add_test(NAME tree.tidy COMMAND ${Python3_EXECUTABLE} "${CMAKE_SOURCE_DIR}/scripts/tidy" "${CMAKE_SOURCE_DIR}")
add_test(NAME tree.checkers COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/scripts/scripts_test.py")
