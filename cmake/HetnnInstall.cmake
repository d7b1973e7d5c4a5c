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

# The runtime. Floors are hidden, so the shared library exports what its version script names and the sources mark.
set(version_script ${PROJECT_SOURCE_DIR}/cmake/hetnn_runtime.map)
hetnn_tower_objects(runtime_objects capi)
add_library(hetnn_shared SHARED ${runtime_objects})
add_library(hetnn_static STATIC ${runtime_objects})
foreach(library hetnn_shared hetnn_static)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME hetnn_runtime LINKER_LANGUAGE CXX
                        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${HETNN_INCLUDE_DIR}>)
endforeach()
set_target_properties(hetnn_shared PROPERTIES VERSION ${HETNN_ABI} SOVERSION ${HETNN_ABI} EXPORT_NAME runtime
                      LINK_DEPENDS ${version_script})
set_target_properties(hetnn_static PROPERTIES EXPORT_NAME runtime_static)
target_link_libraries(hetnn_shared PRIVATE Threads::Threads hwy::hwy)
target_link_options(hetnn_shared PRIVATE -Wl,--version-script=${version_script} -Wl,--gc-sections -Wl,--as-needed
                                         -Wl,-Bsymbolic-functions -Wl,-z,now)
target_link_libraries(hetnn_static INTERFACE Threads::Threads)

# A wheel keeps no symbolic links, so there it is linked against by the file that programs load.
set(HETNN_PC_LINK -lhetnn_runtime)
if(SKBUILD)
  set(namelink NAMELINK_SKIP)
  set(HETNN_PC_LINK -l:libhetnn_runtime.so.${HETNN_ABI})
endif()
install(TARGETS hetnn_shared hetnn_static EXPORT hetnn_runtime
        LIBRARY DESTINATION ${HETNN_LIB_DIR} COMPONENT runtime ${namelink}
        ARCHIVE DESTINATION ${HETNN_LIB_DIR} COMPONENT runtime)
install(FILES cpp/hetnn/capi/hetnn.h cpp/hetnn/capi/hetnn.hpp DESTINATION ${HETNN_INCLUDE_DIR}/hetnn
        COMPONENT runtime)
install(EXPORT hetnn_runtime NAMESPACE hetnn:: FILE hetnn-runtime-targets.cmake DESTINATION ${HETNN_CMAKE_DIR}
        COMPONENT runtime)

configure_package_config_file(cmake/hetnn-config.cmake.in ${PROJECT_BINARY_DIR}/hetnn-config.cmake
                              INSTALL_DESTINATION ${HETNN_CMAKE_DIR} NO_SET_AND_CHECK_MACRO
                              NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hetnn-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hetnn-config.cmake ${PROJECT_BINARY_DIR}/hetnn-config-version.cmake
        DESTINATION ${HETNN_CMAKE_DIR} COMPONENT runtime)

# pkg-config finds the prefix from where its file lies.
file(RELATIVE_PATH HETNN_PC_PREFIX /${HETNN_LIB_DIR}/pkgconfig /${HETNN_PREFIX})
file(RELATIVE_PATH HETNN_PC_LIB /${HETNN_PREFIX} /${HETNN_LIB_DIR})
file(RELATIVE_PATH HETNN_PC_INCLUDE /${HETNN_PREFIX} /${HETNN_INCLUDE_DIR})
configure_file(cmake/hetnn-runtime.pc.in ${PROJECT_BINARY_DIR}/hetnn-runtime.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hetnn-runtime.pc DESTINATION ${HETNN_LIB_DIR}/pkgconfig COMPONENT runtime)
