# What is installed, in the components runtime, compiler and python: libraries, headers, and how CMake and pkg-config
# find them. A wheel carries the same files below the package's folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Raised when a program built against an older library no longer runs on a newer one.
set(HETNN_ABI 1)

if(SKBUILD)
  set(HETNN_PYTHON_DIR hetnn)
  set(HETNN_PREFIX hetnn)
  set(HETNN_LIB_DIR hetnn/lib)
  set(HETNN_INCLUDE_DIR hetnn/include)
else()
  set(HETNN_PYTHON_DIR ${CMAKE_INSTALL_LIBDIR}/python3/site-packages/hetnn)
  set(HETNN_PREFIX .)
  set(HETNN_LIB_DIR ${CMAKE_INSTALL_LIBDIR})
  set(HETNN_INCLUDE_DIR ${CMAKE_INSTALL_INCLUDEDIR})
endif()
set(HETNN_CMAKE_DIR ${HETNN_LIB_DIR}/cmake/hetnn)

# The runtime as a shared library. What stands on it, modules for Python too, holds no second copy of its floors but links
# to it, so its version script names what their objects use. Its floors are therefore compiled as visible, with calls
# between them bound at once.
get_property(runtime_tower GLOBAL PROPERTY HETNN_TOWER_capi)
foreach(floor IN LISTS runtime_tower)
  if(NOT floor STREQUAL "kernels")  # of which a few files are, below
    set_target_properties(hetnn_${floor} PROPERTIES CXX_VISIBILITY_PRESET default)
    target_compile_options(hetnn_${floor} PRIVATE -fno-semantic-interposition)
  endif()
endforeach()
hetnn_tower_objects(runtime_objects capi)
hetnn_tower_objects(store_objects store BUT capi)
set(user_objects ${store_objects})
if(HETNN_BUILD_PYTHON)
  hetnn_tower_objects(compiler_objects compiler BUT capi)
  hetnn_tower_objects(serve_objects serve BUT capi)
  list(APPEND user_objects ${compiler_objects} ${serve_objects})
  foreach(module _core _runtime _store)
    list(APPEND user_objects $<TARGET_OBJECTS:hetnn${module}_objects>)
  endforeach()
endif()
set(version_script ${PROJECT_BINARY_DIR}/hetnn_runtime.map)
set(version_script_in ${PROJECT_SOURCE_DIR}/cmake/hetnn_runtime.map.in)
set(exports ${PROJECT_SOURCE_DIR}/cmake/HetnnExports.cmake)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/hetnn_users.txt CONTENT "$<JOIN:${user_objects},\n>\n")
add_custom_command(OUTPUT ${version_script}
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DOBJECTS=${PROJECT_BINARY_DIR}/hetnn_users.txt -DMAP_IN=${version_script_in}
          -DMAP=${version_script} -P ${exports}
  DEPENDS ${user_objects} ${version_script_in} ${exports} ${PROJECT_BINARY_DIR}/hetnn_users.txt VERBATIM)
add_custom_target(hetnn_version_script DEPENDS ${version_script})
add_library(hetnn_shared SHARED ${runtime_objects})
add_dependencies(hetnn_shared hetnn_version_script)
set_target_properties(hetnn_shared PROPERTIES OUTPUT_NAME hetnn_runtime LINKER_LANGUAGE CXX EXPORT_NAME runtime
                      VERSION ${HETNN_ABI} SOVERSION ${HETNN_ABI} LINK_DEPENDS ${version_script}
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_include_directories(hetnn_shared INTERFACE $<INSTALL_INTERFACE:${HETNN_INCLUDE_DIR}>)
target_link_libraries(hetnn_shared PRIVATE ${HETNN_THREAD_LIBRARIES} hwy::hwy OpenSSL::Crypto)
target_link_options(hetnn_shared PRIVATE LINKER:--version-script=${version_script} LINKER:--gc-sections
                                         LINKER:--as-needed LINKER:-Bsymbolic-functions LINKER:--exclude-libs,libcrypto.a)
if(HETNN_SANITIZE)  # the floors in it are watched
  target_link_options(hetnn_shared PRIVATE -fsanitize=${HETNN_SANITIZE})
endif()

# And as a static one: a single object whose only global names are those of the C interface, so that nothing in it meets
# the same library in another release elsewhere in a program.
set(static_library ${PROJECT_BINARY_DIR}/lib/libhetnn_runtime.a)
set(static_object ${PROJECT_BINARY_DIR}/lib/hetnn_runtime.o)
add_custom_command(OUTPUT ${static_library}
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${static_object} ${runtime_objects}
          $<TARGET_FILE:OpenSSL::Crypto>
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=hetnn_* ${static_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${static_library}
  COMMAND ${CMAKE_AR} qcs ${static_library} ${static_object}
  DEPENDS ${runtime_objects} COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(hetnn_static ALL DEPENDS ${static_library})

# A wheel keeps no symbolic links, so there it is linked against by the file that programs load.
set(HETNN_PC_LINK -lhetnn_runtime)
if(SKBUILD)
  set(namelink NAMELINK_SKIP)
  set(HETNN_PC_LINK -l:libhetnn_runtime.so.${HETNN_ABI})
endif()
install(TARGETS hetnn_shared EXPORT hetnn_runtime LIBRARY DESTINATION ${HETNN_LIB_DIR} COMPONENT runtime ${namelink})
install(FILES ${static_library} DESTINATION ${HETNN_LIB_DIR} COMPONENT runtime)
install(FILES cpp/hetnn/capi/hetnn.h cpp/hetnn/capi/hetnn.hpp cpp/hetnn/capi/backend.h
        DESTINATION ${HETNN_INCLUDE_DIR}/hetnn COMPONENT runtime)
install(FILES cpp/hetnn/base/dtypes.inc DESTINATION ${HETNN_INCLUDE_DIR}/hetnn/base COMPONENT runtime)
install(EXPORT hetnn_runtime NAMESPACE hetnn:: FILE hetnn-runtime-targets.cmake DESTINATION ${HETNN_CMAKE_DIR}
        COMPONENT runtime)

file(RELATIVE_PATH HETNN_LIB_FROM_CMAKE /${HETNN_CMAKE_DIR} /${HETNN_LIB_DIR})
file(RELATIVE_PATH HETNN_INCLUDE_FROM_CMAKE /${HETNN_CMAKE_DIR} /${HETNN_INCLUDE_DIR})
configure_file(cmake/hetnn-config.cmake.in ${PROJECT_BINARY_DIR}/hetnn-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hetnn-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hetnn-config.cmake ${PROJECT_BINARY_DIR}/hetnn-config-version.cmake
        DESTINATION ${HETNN_CMAKE_DIR} COMPONENT runtime)

# pkg-config finds the prefix from where its file lies.
file(RELATIVE_PATH HETNN_PC_PREFIX /${HETNN_LIB_DIR}/pkgconfig /${HETNN_PREFIX})
file(RELATIVE_PATH HETNN_PC_LIB /${HETNN_PREFIX} /${HETNN_LIB_DIR})
file(RELATIVE_PATH HETNN_PC_INCLUDE /${HETNN_PREFIX} /${HETNN_INCLUDE_DIR})
configure_file(cmake/hetnn-runtime.pc.in ${PROJECT_BINARY_DIR}/hetnn-runtime.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hetnn-runtime.pc DESTINATION ${HETNN_LIB_DIR}/pkgconfig COMPONENT runtime)

# The component `store`: a library of its own, since it needs SQLite. The runtime's objects are not in it.
set(store_script ${PROJECT_SOURCE_DIR}/cmake/hetnn_store.map)
add_library(hetnn_store_shared SHARED ${store_objects})
set_target_properties(hetnn_store_shared PROPERTIES OUTPUT_NAME hetnn_store LINKER_LANGUAGE CXX EXPORT_NAME store
                      INSTALL_RPATH $ORIGIN
                      VERSION ${HETNN_ABI} SOVERSION ${HETNN_ABI} LINK_DEPENDS ${store_script}
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_libraries(hetnn_store_shared PUBLIC hetnn_shared PRIVATE ${HETNN_THREAD_LIBRARIES} SQLite3::SQLite3)
target_link_options(hetnn_store_shared PRIVATE LINKER:--version-script=${store_script} LINKER:--gc-sections
                                               LINKER:--as-needed LINKER:--no-undefined)
install(TARGETS hetnn_store_shared EXPORT hetnn_store LIBRARY DESTINATION ${HETNN_LIB_DIR} COMPONENT store ${namelink})
install(FILES cpp/hetnn/store/store.hpp DESTINATION ${HETNN_INCLUDE_DIR}/hetnn COMPONENT store)
install(FILES cpp/hetnn/store/exported.h DESTINATION ${HETNN_INCLUDE_DIR}/hetnn RENAME store.h COMPONENT store)
install(EXPORT hetnn_store NAMESPACE hetnn:: FILE hetnn-store-targets.cmake DESTINATION ${HETNN_CMAKE_DIR}
        COMPONENT store)
