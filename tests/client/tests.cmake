target_sources(test_client PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/client/fake_server.cpp")
