# hetnn_floor(<name> [DEPENDS floor...] [PRIVATE target...]): the static library of cpp/hetnn/<name>.
# Sources are globbed, so that adding a file to a floor touches no CMake file.
find_program(HETNN_CCACHE ccache)
if(HETNN_CCACHE)
  # By paths within the checkout, so that what one clone has compiled serves the others.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${HETNN_CCACHE})
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(hetnn_flags INTERFACE)
target_compile_features(hetnn_flags INTERFACE cxx_std_20)
target_compile_options(hetnn_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -fno-math-errno
                                             -ffp-contract=off)
# GCC 12 warns falsely about std::string concatenation (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hetnn_flags INTERFACE -Wno-restrict)
endif()
# What is watched: everything, or the floors of HETNN_SANITIZE_FLOORS alone, beside which the others stay as in a release.
add_library(hetnn_sanitizers INTERFACE)
if(HETNN_SANITIZE)
  target_compile_options(hetnn_sanitizers INTERFACE -fsanitize=${HETNN_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(hetnn_flags INTERFACE -fsanitize=${HETNN_SANITIZE})
  # Of what is instrumented GCC 12 says falsely that it may be uninitialized (its bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hetnn_sanitizers INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(NOT HETNN_SANITIZE_FLOORS)
    target_link_libraries(hetnn_flags INTERFACE hetnn_sanitizers)
  endif()
endif()

if(HETNN_FUZZ)
  target_compile_options(hetnn_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(hetnn_floor name)
  cmake_parse_arguments(floor "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/hetnn/${name}/*.cpp)
  # Every floor below this one and itself, in order.
  set(tower)
  foreach(below ${floor_DEPENDS})
    get_property(more GLOBAL PROPERTY HETNN_TOWER_${below})
    list(APPEND tower ${more})
  endforeach()
  list(APPEND tower ${name})
  list(REMOVE_DUPLICATES tower)
  set_property(GLOBAL PROPERTY HETNN_TOWER_${name} ${tower})
  list(TRANSFORM floor_DEPENDS PREPEND hetnn_)
  if(NOT sources)
    add_library(hetnn_${name} INTERFACE)
    target_link_libraries(hetnn_${name} INTERFACE hetnn_flags ${floor_DEPENDS})
    return()
  endif()
  add_library(hetnn_${name} STATIC ${sources})
  target_include_directories(hetnn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/cpp)
  # JSON is header-only and fenced to *_json.cpp by tools/check_house.py, so every floor may reach it.
  target_link_libraries(hetnn_${name} PUBLIC hetnn_flags ${floor_DEPENDS}
                                      PRIVATE nlohmann_json::nlohmann_json ${floor_PRIVATE})
  if(name IN_LIST HETNN_SANITIZE_FLOORS)
    target_link_libraries(hetnn_${name} PRIVATE hetnn_sanitizers)
  endif()
endfunction()

# hetnn_compile_small(<floor> <pattern>... [BUT <pattern>...]): in a release, the sources of a floor that match, and match
# none of the later patterns, are compiled for size.
function(hetnn_compile_small floor)
  cmake_parse_arguments(small "" "" "BUT" ${ARGN})
  list(TRANSFORM small_UNPARSED_ARGUMENTS PREPEND ${PROJECT_SOURCE_DIR}/cpp/hetnn/${floor}/)
  file(GLOB sources CONFIGURE_DEPENDS ${small_UNPARSED_ARGUMENTS})
  if(small_BUT)
    list(TRANSFORM small_BUT PREPEND ${PROJECT_SOURCE_DIR}/cpp/hetnn/${floor}/)
    file(GLOB fast CONFIGURE_DEPENDS ${small_BUT})
    list(REMOVE_ITEM sources ${fast})
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
endfunction()

# hetnn_tower_objects(<variable> <floor> [BUT <floor>]): the objects of a floor and of all below it; not those of the
# second floor and below that.
function(hetnn_tower_objects variable floor)
  cmake_parse_arguments(tower "" "BUT" "" ${ARGN})
  get_property(tower GLOBAL PROPERTY HETNN_TOWER_${floor})
  if(tower_BUT)
    get_property(others GLOBAL PROPERTY HETNN_TOWER_${tower_BUT})
    list(REMOVE_ITEM tower ${others})
  endif()
  set(objects)
  foreach(name ${tower})
    get_target_property(type hetnn_${name} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:hetnn_${name}>)
    endif()
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# hetnn_list(<floor> <file> <macro> <pattern>): hetnn/<floor>/<file>, a line <macro>(name) for each file of the floor that
# matches, or for each folder that holds one where the pattern is */*.cpp. So adding one touches no list.
function(hetnn_list floor file macro pattern)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/hetnn/${floor}/${pattern})
  if(pattern STREQUAL "*/*.cpp")
    list(TRANSFORM found REPLACE "/[^/]*$" "")
    list(REMOVE_DUPLICATES found)
  endif()
  set(lines "// Made from what lies in cpp/hetnn/${floor}.\n")
  foreach(path IN LISTS found)
    get_filename_component(name ${path} NAME_WE)
    # Of folders those that have a table.
    if(IS_DIRECTORY ${path} AND NOT EXISTS ${path}/${name}.h)
      continue()
    endif()
    string(APPEND lines "${macro}(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lists/hetnn/${floor}/${file} CONTENT "${lines}")
  target_include_directories(hetnn_${floor} PRIVATE ${PROJECT_BINARY_DIR}/lists)
endfunction()

# hetnn_texts(<floor> <file> <macro> <pattern>): hetnn/<floor>/<file>, a line <macro>(name, R"(text)") for each file below
# cpp/hetnn that matches.
function(hetnn_texts floor file macro pattern)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/hetnn/${pattern})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${found})
  set(lines "// Made from ${pattern}.\n")
  foreach(path IN LISTS found)
    get_filename_component(name ${path} NAME_WE)
    file(READ ${path} text)
    string(APPEND lines "${macro}(${name}, R\"~(${text})~\")\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lists/hetnn/${floor}/${file} CONTENT "${lines}" @ONLY)
  target_include_directories(hetnn_${floor} PRIVATE ${PROJECT_BINARY_DIR}/lists)
endfunction()
