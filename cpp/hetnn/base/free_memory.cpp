// Memory that is free but still the process's.
#include "hetnn/base/free_memory.h"

#include <cstdlib>  // which says whose library it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hetnn {

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace hetnn
