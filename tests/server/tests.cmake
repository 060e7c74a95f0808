# Engines over tiny models, as the engine's own tests have them.
target_sources(test_server PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/engine/tiny_engine.cpp")
