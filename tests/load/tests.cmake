target_sources(test_load PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/client/fake_server.cpp")
