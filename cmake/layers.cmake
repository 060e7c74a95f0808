# The layer table: folder = layer = target. Each row says which of the project's own layers a file of that folder
# may include directly (MAY_INCLUDE) and which third-party header roots (THIRD_PARTY). The same rows link the targets
# and feed the include-edge test (scripts/check-layers), so a wrong edge fails twice.
kvasir_layer(base      MAY_INCLUDE                                  THIRD_PARTY fmt xxhash openssl)
kvasir_layer(stats     MAY_INCLUDE base)
kvasir_layer(platform  MAY_INCLUDE base                             THIRD_PARTY fmt)
kvasir_layer(format    MAY_INCLUDE base                             THIRD_PARTY fmt)
kvasir_layer(artifact  MAY_INCLUDE base platform format             THIRD_PARTY fmt nlohmann)
kvasir_layer(cache     MAY_INCLUDE base format                      THIRD_PARTY fmt)
kvasir_layer(store     MAY_INCLUDE base platform format             THIRD_PARTY fmt)
kvasir_layer(kernels   MAY_INCLUDE base platform format             THIRD_PARTY simde)   # in tests' builds alone
kvasir_layer(ffi       MAY_INCLUDE base                             THIRD_PARTY fmt)
kvasir_layer(text      MAY_INCLUDE base ffi artifact                THIRD_PARTY fmt nlohmann)
kvasir_layer(model     MAY_INCLUDE base platform format artifact kernels  THIRD_PARTY fmt)
kvasir_layer(sched     MAY_INCLUDE base cache                       THIRD_PARTY fmt)
kvasir_layer(core      MAY_INCLUDE base format cache sched          THIRD_PARTY fmt)
kvasir_layer(engine    MAY_INCLUDE base stats platform format artifact core cache sched store model text  THIRD_PARTY fmt)
kvasir_layer(quality   MAY_INCLUDE base stats format artifact text model engine  THIRD_PARTY fmt)
kvasir_layer(report    MAY_INCLUDE base stats                       THIRD_PARTY fmt nlohmann)
kvasir_layer(trace     MAY_INCLUDE base                             THIRD_PARTY fmt nlohmann)
# Adds up what the layers' footprint.hpp say, which it may include of every layer.
kvasir_layer(plan      MAY_INCLUDE base stats format artifact trace report  THIRD_PARTY fmt nlohmann
                       FOOTPRINTS cache store model engine)
kvasir_layer(client    MAY_INCLUDE base platform                    THIRD_PARTY fmt nlohmann boost openssl)
kvasir_layer(load      MAY_INCLUDE base platform client stats trace report  THIRD_PARTY fmt nlohmann)
kvasir_layer(server    MAY_INCLUDE base stats platform artifact text model engine report  THIRD_PARTY fmt nlohmann boost prometheus yaml openssl)
kvasir_layer(cli       MAY_INCLUDE base stats platform format artifact cache store kernels ffi text model sched core engine quality report
                                   trace client load server plan
                       THIRD_PARTY fmt nlohmann CLI yaml)
