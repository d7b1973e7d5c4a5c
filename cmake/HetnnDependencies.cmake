# Packages hetnn builds with: found on the system, or fetched at a pinned release when HETNN_FETCH_DEPENDENCIES is on.
include(FetchContent)

# hetnn_dependency(<package> <target> <version> <url>): make <target> available.
function(hetnn_dependency package target version url)
  find_package(${package} ${version} QUIET)
  if(TARGET ${target})
    return()
  endif()
  if(NOT HETNN_FETCH_DEPENDENCIES)
    message(FATAL_ERROR "${package} ${version} or newer was not found. Install it (Debian and Ubuntu: see 'make setup') "
                        "or configure with -DHETNN_FETCH_DEPENDENCIES=ON to fetch a pinned release.")
  endif()
  FetchContent_Declare(${package} URL ${url})
  FetchContent_MakeAvailable(${package})
  # As of what is installed, warnings about its headers are not ours.
  if(TARGET ${target})
    get_target_property(fetched ${target} ALIASED_TARGET)
    if(fetched)
      set_target_properties(${fetched} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
                                                  $<TARGET_PROPERTY:${fetched},INTERFACE_INCLUDE_DIRECTORIES>)
    endif()
  endif()
endfunction()

set(HWY_ENABLE_TESTS OFF)
set(HWY_ENABLE_EXAMPLES OFF)
set(HWY_ENABLE_CONTRIB OFF)
set(JSON_BuildTests OFF)
hetnn_dependency(Eigen3 Eigen3::Eigen 3.4 https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.gz)
hetnn_dependency(nlohmann_json nlohmann_json::nlohmann_json 3.10
                 https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
set(HETNN_THREAD_LIBRARIES Threads::Threads)
if(HETNN_THREADS STREQUAL "openmp")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  list(APPEND HETNN_THREAD_LIBRARIES ${OpenMP_CXX_LIBRARIES})
elseif(NOT HETNN_THREADS STREQUAL "own")
  message(FATAL_ERROR "HETNN_THREADS is '${HETNN_THREADS}'; expected own or openmp")
endif()

# The static library where there is one: of it the linker takes SHA-256 alone.
set(OPENSSL_USE_STATIC_LIBS ON)
find_package(OpenSSL 1.1 QUIET COMPONENTS Crypto)
if(NOT TARGET OpenSSL::Crypto)
  unset(OPENSSL_USE_STATIC_LIBS)
  find_package(OpenSSL 1.1 REQUIRED COMPONENTS Crypto)
endif()

# Debian ships Highway with a pkg-config file only, so look for its header and library before fetching.
find_package(hwy QUIET)
if(NOT TARGET hwy::hwy)
  find_path(HWY_INCLUDE_DIR hwy/highway.h)
  find_library(HWY_LIBRARY NAMES libhwy.a hwy)
  if(HWY_INCLUDE_DIR AND HWY_LIBRARY)
    add_library(hwy::hwy UNKNOWN IMPORTED)
    set_target_properties(hwy::hwy PROPERTIES IMPORTED_LOCATION ${HWY_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${HWY_INCLUDE_DIR})
  else()
    hetnn_dependency(hwy hwy::hwy 1.0 https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz)
    if(NOT TARGET hwy::hwy)
      add_library(hwy::hwy ALIAS hwy)
    endif()
  endif()
endif()

# Only the floor `store` links SQLite, and always the one copy that the process has: two would drop each other's locks.
find_package(SQLite3 3.35 QUIET)
# Releases of CMake before 4.3 have its older name alone.
if(NOT TARGET SQLite3::SQLite3 AND TARGET SQLite::SQLite3)
  add_library(SQLite3::SQLite3 ALIAS SQLite::SQLite3)
endif()
if(NOT TARGET SQLite3::SQLite3)
  message(FATAL_ERROR "SQLite 3.35 or newer was not found. Install libsqlite3-dev (Debian and Ubuntu: 'make setup').")
endif()
