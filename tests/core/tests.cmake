# The virtual-clock harness: a core, a simulated machine, clients; and the reader of text scenarios.
target_sources(test_core PRIVATE
  "${CMAKE_CURRENT_SOURCE_DIR}/core/virtual_run.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/core/scenario_player.cpp")
