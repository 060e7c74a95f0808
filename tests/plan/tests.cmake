# The plan beside an engine: the engine's own small models.
target_link_libraries(test_plan PRIVATE kvasir_engine)
target_sources(test_plan PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/engine/tiny_engine.cpp")
